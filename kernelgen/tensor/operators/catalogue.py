"""All basic operators in one namespace, for tables of many: ``basic.GATHER``."""

from __future__ import annotations

from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.complex_numbers import (
    C_ABS,
    C_ADD,
    C_DIV,
    C_IMAG,
    C_MUL,
    C_REAL,
    C_REAL_DIV,
    C_SUB,
    COMPLEX,
)
from kernelgen.tensor.operators.creation import (
    CONSTANT_OF_SHAPE,
    EXTENT,
    FILL_V2,
    REPEAT_INTERLEAVE_INT,
    SHAPE,
    ZEROS_LIKE_EXT,
)
from kernelgen.tensor.operators.csr import (
    COO_TO_CSR,
    CSR_DIV,
    CSR_GATHER,
    CSR_MM,
    CSR_MUL,
    CSR_MV,
    CSR_REDUCE_SUM,
    CSR_TO_COO,
)
from kernelgen.tensor.operators.effects import ASSIGN, ASSIGN_ADD
from kernelgen.tensor.operators.elemwise import (
    ABS,
    ACOS,
    ACOSH,
    ADD,
    ASIN,
    ASINH,
    ATAN,
    ATAN2,
    ATANH,
    CEIL,
    COS,
    COSH,
    DIV,
    ERF,
    ERFC,
    EXP,
    EXPM1,
    FLOOR,
    FLOOR_DIV,
    FLOOR_MOD,
    IS_FINITE,
    IS_INF,
    IS_NAN,
    LOG,
    LOG1P,
    MAXIMUM,
    MINIMUM,
    MOD,
    MUL,
    NEG,
    POW,
    REAL_DIV,
    RECIPROCAL,
    ROUND,
    RSQRT,
    SIGN,
    SIN,
    SINH,
    SQRT,
    SUB,
    TAN,
    TANH,
    TENSOR_MOVE,
    TRUNC,
)
from kernelgen.tensor.operators.indexing import GATHER, ONE_HOT
from kernelgen.tensor.operators.layout import LAYOUT_TRANSFORM, TRANS_DATA
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL, MATMUL_INTEGER, STORED_MATMUL
from kernelgen.tensor.operators.nn import AVG_POOL, CONV2D, MAX_POOL
from kernelgen.tensor.operators.padding import PAD_AKG, UNPAD_AKG
from kernelgen.tensor.operators.pieces import CONCAT, PAD, SLICE, SPLIT, STRIDED_SLICE
from kernelgen.tensor.operators.pool import POOL2D
from kernelgen.tensor.operators.reduce import (
    ARGMAX,
    ARGMIN,
    REDUCE_ALL,
    REDUCE_ANY,
    REDUCE_MAX,
    REDUCE_MIN,
    REDUCE_PROD,
    REDUCE_SUM,
)
from kernelgen.tensor.operators.scan import CUM_PROD, CUM_SUM
from kernelgen.tensor.operators.scatter import GATHER_ND, TENSOR_SCATTER_ADD, UNSORTED_SEGMENT_SUM
from kernelgen.tensor.operators.select import (
    EQUAL,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    LOGICAL_AND,
    LOGICAL_NOT,
    LOGICAL_OR,
    NOT_EQUAL,
    SELECT,
)
from kernelgen.tensor.operators.shape import BROADCAST_TO, EXPAND_DIMS, FLATTEN, RESHAPE, SQUEEZE, TILE, TRANSPOSE
from kernelgen.tensor.operators.status import ELEM_ANY, FLOAT_STATUS

OPERATORS: tuple[Operator, ...] = (
    ABS, ACOS, ACOSH, ADD, ARGMAX, ARGMIN, ASIN, ASINH, ASSIGN, ASSIGN_ADD, ATAN, ATAN2, ATANH, AVG_POOL, BATCH_MATMUL,
    BROADCAST_TO, CAST, CEIL, COMPLEX, CONCAT, CONSTANT_OF_SHAPE, CONV2D, COO_TO_CSR, COS, COSH, CSR_DIV, CSR_GATHER,
    CSR_MM, CSR_MUL, CSR_MV, CSR_REDUCE_SUM, CSR_TO_COO, CUM_PROD, CUM_SUM, C_ABS, C_ADD, C_DIV, C_IMAG, C_MUL, C_REAL,
    C_REAL_DIV, C_SUB, DIV, ELEM_ANY, EQUAL, ERF, ERFC, EXP, EXPAND_DIMS, EXPM1, EXTENT, FILL_V2, FLATTEN, FLOAT_STATUS,
    FLOOR, FLOOR_DIV, FLOOR_MOD, GATHER, GATHER_ND, GREATER, GREATER_EQUAL, IS_FINITE, IS_INF, IS_NAN, LAYOUT_TRANSFORM,
    LESS, LESS_EQUAL, LOG, LOG1P, LOGICAL_AND, LOGICAL_NOT, LOGICAL_OR, MATMUL, MATMUL_INTEGER, MAXIMUM, MAX_POOL, MINIMUM, MOD,
    MUL, NEG, NOT_EQUAL, ONE_HOT, PAD, PAD_AKG, POOL2D, POW, REAL_DIV, RECIPROCAL, REDUCE_ALL, REDUCE_ANY, REDUCE_MAX,
    REDUCE_MIN, REDUCE_PROD, REDUCE_SUM, REPEAT_INTERLEAVE_INT, RESHAPE, ROUND, RSQRT, SELECT, SHAPE, SIGN, SIN, SINH, SLICE,
    SPLIT, SQRT, SQUEEZE, STORED_MATMUL, STRIDED_SLICE, SUB, TAN, TANH, TENSOR_MOVE, TENSOR_SCATTER_ADD, TILE, TRANSPOSE,
    TRANS_DATA, TRUNC, UNPAD_AKG, UNSORTED_SEGMENT_SUM, ZEROS_LIKE_EXT,
)  # fmt: skip
