"""Operator -> its rule on intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from kernelgen.composite.description import OpDesc
from kernelgen.composite.scalar_rules import REDUCTIONS
from kernelgen.composite.vocabulary import (
    ADD_MIN_VALUE,
    ADD_N,
    ELEM_ALL,
    FAST_GELU,
    SELECT_GE,
    SELECT_GT,
    SELECT_LE,
    SELECT_LT,
    SQUARE,
    STANDARD_NORMAL,
    ZEROS_LIKE,
    by_name,
)
from kernelgen.enclosure import arithmetic, conditions, functions, reduced
from kernelgen.enclosure.complexes import joined, on_complex, parts_of
from kernelgen.enclosure.integers import on_integers
from kernelgen.enclosure.interval import Interval
from kernelgen.enclosure.moves import MOVES, moved
from kernelgen.enclosure.rounding import rounded
from kernelgen.errors import UnsupportedError
from kernelgen.semantics.table import MEANINGS
from kernelgen.tensor.dtypes import FLOAT64, Category, DType, dtype
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import catalogue as basic

Rule = Callable[[Sequence[Interval], OpDesc], Interval | tuple[Interval, ...]]
OnFloats = Callable[[Sequence[Interval], DType], Interval]


def _sum_of_all(x: Sequence[Interval], kind: DType) -> Interval:
    total = x[0]
    for term in x[1:]:
        total = arithmetic.add(total, term, kind)
    return total


FLOATS: Mapping[str, OnFloats] = by_name(
    {
        basic.ADD: lambda x, kind: arithmetic.add(x[0], x[1], kind),
        basic.SUB: lambda x, kind: arithmetic.subtract(x[0], x[1], kind),
        basic.MUL: lambda x, kind: arithmetic.multiply(x[0], x[1], kind),
        basic.REAL_DIV: lambda x, kind: arithmetic.divide(x[0], x[1], kind),
        basic.DIV: lambda x, kind: arithmetic.divide(x[0], x[1], kind),
        basic.FLOOR_DIV: lambda x, kind: arithmetic.whole_quotient(x[0], x[1], kind),
        basic.MOD: lambda x, kind: arithmetic.remainder(x[0], x[1], False, kind),
        basic.FLOOR_MOD: lambda x, kind: arithmetic.remainder(x[0], x[1], True, kind),
        basic.MAXIMUM: lambda x, kind: arithmetic.larger(x[0], x[1]),
        basic.MINIMUM: lambda x, kind: arithmetic.smaller(x[0], x[1]),
        ADD_N: _sum_of_all,
        basic.NEG: lambda x, kind: arithmetic.negated(x[0]),
        basic.ABS: lambda x, kind: arithmetic.absolute(x[0]),
        SQUARE: lambda x, kind: arithmetic.square(x[0], kind),
        ADD_MIN_VALUE: lambda x, kind: arithmetic.add_smallest(x[0], kind),
        basic.SIGN: lambda x, kind: arithmetic.sign(x[0]),
        basic.FLOOR: lambda x, kind: x[0].map(np.floor),
        basic.CEIL: lambda x, kind: x[0].map(np.ceil),
        basic.TRUNC: lambda x, kind: x[0].map(np.trunc),
        basic.ROUND: lambda x, kind: x[0].map(np.rint),
        basic.TENSOR_MOVE: lambda x, kind: x[0],
        ZEROS_LIKE: lambda x, kind: Interval.exact(np.zeros(x[0].low.shape)),
        basic.SQRT: lambda x, kind: functions.root(x[0], kind),
        basic.RECIPROCAL: lambda x, kind: functions.reciprocal(x[0], kind),
        basic.POW: lambda x, kind: functions.power(x[0], x[1], kind),
        basic.ATAN2: lambda x, kind: functions.angle(x[0], x[1], kind),
        FAST_GELU: lambda x, kind: functions.fast_gelu(x[0], kind),
    }
)
"""Operators of floats that are no function of one operand."""

INTEGERS: Mapping[str, Callable[..., object]] = by_name({
    basic.ADD: np.add, basic.SUB: np.subtract, basic.MUL: np.multiply, basic.POW: np.power, basic.MAXIMUM: np.maximum,
    basic.MINIMUM: np.minimum, basic.NEG: np.negative, basic.ABS: np.abs, basic.SIGN: np.sign,
    basic.FLOOR_DIV: np.floor_divide, basic.MOD: np.fmod, basic.FLOOR_MOD: np.mod,
    basic.DIV: lambda x, y: np.trunc(np.divide(x, y)), SQUARE: lambda x: x * x, ADD_N: lambda *x: sum(x[1:], x[0]),
    basic.TENSOR_MOVE: lambda x: x, ZEROS_LIKE: np.zeros_like,
    (basic.FLOOR, basic.CEIL, basic.TRUNC, basic.ROUND): lambda x: x,
})  # fmt: skip
"""Operators whose integers stay integers; the others compute in float64."""

ONE_OPERAND = frozenset({*functions.RISING, *functions.FALLING, *functions.WAVES, basic.COSH.name, basic.TAN.name})


def _scalar(operands: Sequence[Interval], op: OpDesc) -> Interval:
    kind = _operand_kind(op)
    if kind.category is Category.COMPLEX:
        found = on_complex(op.name, operands, kind)
        return _unruled(operands, op) if found is None else found
    if not kind.is_float:
        if op.name in INTEGERS:
            given = [x.map(lambda bound: bound.astype(kind.numpy)) for x in operands]
            return on_integers(INTEGERS[op.name], given, kind)
        kind = FLOAT64
    wide = [x if x.low.dtype == np.float64 else x.map(lambda bound: bound.astype(np.float64)) for x in operands]
    if op.name in ONE_OPERAND:
        return functions.function(op.name, wide[0], kind)
    return FLOATS[op.name](wide, kind)


def _operand_kind(op: OpDesc) -> DType:
    kinds = {t.dtype for t in op.inputs}
    return kinds.pop() if len(kinds) == 1 else dtype(np.result_type(*(kind.numpy for kind in kinds)))


def _comparison(operands: Sequence[Interval], op: OpDesc) -> Interval:
    return conditions.COMPARISONS[op.name](*operands)


def _test(operands: Sequence[Interval], op: OpDesc) -> Interval:
    return conditions.test(op.name, operands[0])


def _and(operands: Sequence[Interval], op: OpDesc) -> Interval:
    x, y = map(conditions.condition, operands)
    return Interval(x.low & y.low, x.high & y.high)


def _or(operands: Sequence[Interval], op: OpDesc) -> Interval:
    x, y = map(conditions.condition, operands)
    return Interval(x.low | y.low, x.high | y.high)


def _not(operands: Sequence[Interval], op: OpDesc) -> Interval:
    return conditions.inverted(operands[0])


def _select(operands: Sequence[Interval], op: OpDesc) -> Interval:
    return conditions.select(*operands)


def _select_by(comparison: Operator) -> Rule:
    def rule(operands: Sequence[Interval], op: OpDesc) -> Interval:
        return conditions.select(conditions.COMPARISONS[comparison.name](*operands[:2]), *operands[2:])

    return rule


def _complex(operands: Sequence[Interval], op: OpDesc) -> Interval:
    return joined(*operands)


def _real(operands: Sequence[Interval], op: OpDesc) -> Interval:
    return parts_of(operands[0])[0]


def _imaginary(operands: Sequence[Interval], op: OpDesc) -> Interval:
    return parts_of(operands[0])[1]


def _normal(operands: Sequence[Interval], op: OpDesc) -> Interval:
    """Numbers of at most 5.8 from a logarithm, a root and a cosine in float32."""
    value = np.asarray(MEANINGS[op.name]([], op), np.float64)
    slack = 6 * 2.0**-20
    return rounded(Interval(value - slack, value + slack), op.output.dtype)


def _unruled(operands: Sequence[Interval], op: OpDesc) -> Interval:
    raise UnsupportedError("unsupported-op", f"operator {op.name!r} has no error bound on these operands")


RULES: Mapping[str, Rule] = MappingProxyType({
    **dict.fromkeys((*FLOATS, *ONE_OPERAND), _scalar), **dict.fromkeys(MOVES, moved),
    **dict.fromkeys(conditions.COMPARISONS, _comparison), **dict.fromkeys(conditions.TESTS, _test),
    **dict.fromkeys(REDUCTIONS, reduced.reduction),
    **by_name({
        basic.LOGICAL_AND: _and, basic.LOGICAL_OR: _or, basic.LOGICAL_NOT: _not, basic.SELECT: _select,
        basic.CAST: lambda operands, op: operands[0], SELECT_GT: _select_by(basic.GREATER), SELECT_LT: _select_by(basic.LESS),
        SELECT_GE: _select_by(basic.GREATER_EQUAL), SELECT_LE: _select_by(basic.LESS_EQUAL), basic.COMPLEX: _complex,
        basic.C_REAL: _real, basic.C_IMAG: _imaginary, (basic.CUM_SUM, basic.CUM_PROD): reduced.scan,
        (basic.ARGMAX, basic.ARGMIN): reduced.position,
        (basic.MATMUL, basic.BATCH_MATMUL, basic.CONV2D, basic.CSR_MV, basic.CSR_MM): reduced.matrix_product,
        (basic.UNSORTED_SEGMENT_SUM, basic.TENSOR_SCATTER_ADD, basic.CSR_REDUCE_SUM): reduced.gathered_sum,
        (basic.CSR_MUL, basic.CSR_DIV): reduced.sparse_elementwise, (basic.ELEM_ANY, ELEM_ALL): reduced.any_positive,
        basic.POOL2D: reduced.pooled, STANDARD_NORMAL: _normal,
    }),
})  # fmt: skip
