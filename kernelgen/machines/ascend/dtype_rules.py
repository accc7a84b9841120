"""Which data types an operation computes in, per family of machines (spec/gpu-ascend.md 4, spec/akg.md 3.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernelgen.ascendc.instructions import GATHER, SELECT, TRANSPOSE
from kernelgen.tensor.dtypes import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
)

Operations = Mapping[str, frozenset[DType]]
Casts = Mapping[tuple[DType, DType], frozenset[str]]

FLOATS = frozenset({FLOAT16, FLOAT32})
WORDS_16 = frozenset({INT16, UINT16})
MOVABLE = frozenset({FLOAT16, BFLOAT16, FLOAT32, INT16, UINT16, INT32, UINT32})
COPIED = MOVABLE | {INT8, UINT8, INT64, UINT64}
ARITHMETIC = ("Add", "Sub", "Mul", "Max", "Min", "Adds", "Muls", "Maxs", "Mins")
REDUCTIONS = tuple(f"{reach}Reduce{what}" for reach in ("Whole", "Block") for what in ("Sum", "Max", "Min"))

EXACT = frozenset({"CAST_NONE"})
ROUNDED = frozenset({"CAST_RINT", "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", "CAST_TRUNC"})


def _rows(*rows: tuple[Iterable[str], frozenset[DType]]) -> dict[str, frozenset[DType]]:
    return {name: dtypes for names, dtypes in rows for name in names}


A2_OPERATIONS: Operations = _rows(
    (ARITHMETIC, FLOATS | {INT16, INT32}),
    (("Div", "Exp", "Ln", "Sqrt", "Rsqrt", "Reciprocal", "Abs", "LeakyRelu"), FLOATS),
    (("Relu",), FLOATS | {INT32}),
    (("And", "Or", "Not"), WORDS_16),
    (("ShiftLeft", "ShiftRight"), WORDS_16 | {INT32, UINT32}),
    (("Compare", "CompareScalar"), FLOATS | {INT32}),
    ((SELECT,), FLOATS),
    (REDUCTIONS, FLOATS),
    (("Duplicate", "Brcb", GATHER, "Copy"), MOVABLE),
    ((TRANSPOSE,), frozenset({FLOAT16, INT16, UINT16})),
    (("DataCopy", "DataCopyPad"), COPIED),
    (("LoadData",), frozenset({FLOAT16, BFLOAT16})),
    (("InitConstValue",), MOVABLE),
    (("Mmad",), frozenset({FLOAT16, BFLOAT16})),
    (("Fixpipe",), frozenset({FLOAT16, BFLOAT16, FLOAT32})),
)
A2_CASTS: Casts = {
    (FLOAT16, FLOAT32): EXACT,
    (FLOAT16, INT16): ROUNDED,
    (FLOAT16, INT32): ROUNDED,
    (FLOAT16, INT8): ROUNDED | EXACT,
    (FLOAT16, UINT8): ROUNDED | EXACT,
    (FLOAT32, FLOAT16): ROUNDED | EXACT | {"CAST_ODD"},
    (INT16, FLOAT16): ROUNDED | EXACT,
    (INT8, FLOAT16): EXACT,
    (UINT8, FLOAT16): EXACT,
    (FLOAT32, BFLOAT16): ROUNDED,
    (FLOAT32, INT16): ROUNDED,
    (FLOAT32, INT32): ROUNDED,
    (FLOAT32, INT64): ROUNDED,
    (INT16, FLOAT32): EXACT,
    (INT32, FLOAT32): ROUNDED | EXACT,
    (INT64, FLOAT32): ROUNDED,
    (INT32, INT16): EXACT,
    (INT32, INT64): EXACT,
    (INT64, INT32): EXACT,
    (BFLOAT16, FLOAT32): EXACT,
    (BFLOAT16, INT32): ROUNDED,
}

A1_OPERATIONS: Operations = {
    name: dtypes - {INT16, BFLOAT16}
    if name in ARITHMETIC
    else dtypes - {FLOAT32}
    if name in REDUCTIONS
    else dtypes - {BFLOAT16}
    for name, dtypes in A2_OPERATIONS.items()
    if name not in ("DataCopyPad", "Fixpipe")
}
"""910A: no int16 arithmetic, no float in reductions, no bfloat16, no padded copies, no fixpipe."""
A1_CASTS: Casts = {pair: modes for pair, modes in A2_CASTS.items() if BFLOAT16 not in pair and INT64 not in pair}

A5_OPERATIONS: Operations = {
    **A2_OPERATIONS,
    **_rows(
        (ARITHMETIC, FLOATS | {BFLOAT16, INT8, UINT8, INT16, UINT16, INT32, UINT32}),
        (("Compare", "CompareScalar", SELECT), MOVABLE),
        (("And", "Or", "Not"), MOVABLE - FLOATS - {BFLOAT16}),
    ),
}
"""950: nearly all integer widths and bfloat16."""
