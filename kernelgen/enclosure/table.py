"""Operator -> its rule on intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

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
    by_operator,
)
from kernelgen.enclosure import arithmetic, conditions, functions, reduced, stored
from kernelgen.enclosure.complexes import joined, on_complex, parts_of
from kernelgen.enclosure.integers import on_integers
from kernelgen.enclosure.interval import Array, Interval
from kernelgen.enclosure.moves import MOVES, moved
from kernelgen.enclosure.rounding import rounded
from kernelgen.errors import UnsupportedError
from kernelgen.semantics.table import MEANINGS
from kernelgen.tensor.dtypes import FLOAT64, Category, DType, dtype
from kernelgen.tensor.operator import Application, Operator
from kernelgen.tensor.operators import catalogue as basic

Rule = Callable[[Sequence[Interval], Application], Interval | tuple[Interval, ...]]
Rules = Mapping[Operator, Rule]
OnFloats = Callable[[Sequence[Interval], DType], Interval]


def _sum_of_all(x: Sequence[Interval], kind: DType) -> Interval:
    total = x[0]
    for term in x[1:]:
        total = arithmetic.add(total, term, kind)
    return total


FLOATS: Mapping[Operator, OnFloats] = by_operator(
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

INTEGERS: Mapping[Operator, Callable[..., object]] = by_operator({
    basic.ADD: np.add, basic.SUB: np.subtract, basic.MUL: np.multiply, basic.POW: np.power, basic.MAXIMUM: np.maximum,
    basic.MINIMUM: np.minimum, basic.NEG: np.negative, basic.ABS: np.abs, basic.SIGN: np.sign,
    basic.FLOOR_DIV: np.floor_divide, basic.MOD: np.fmod, basic.FLOOR_MOD: np.mod,
    basic.DIV: lambda x, y: np.trunc(np.divide(x, y)), SQUARE: lambda x: x * x, ADD_N: lambda *x: sum(x[1:], x[0]),
    basic.TENSOR_MOVE: lambda x: x, ZEROS_LIKE: np.zeros_like,
    (basic.FLOOR, basic.CEIL, basic.TRUNC, basic.ROUND): lambda x: x,
})  # fmt: skip
"""Operators whose integers stay integers; the others compute in float64."""

REPEATING = frozenset({basic.MOD, basic.FLOOR_MOD, basic.POW})
"""Operators of integers that rise and fall."""

TURNING = frozenset({basic.ABS, SQUARE, basic.DIV, basic.FLOOR_DIV})
"""Those that do so at 0, or are not defined there."""

ONE_OPERAND = frozenset({*functions.RISING, *functions.FALLING, *functions.WAVES, basic.COSH, basic.TAN})


def _scalar(operands: Sequence[Interval], node: Application) -> Interval:
    kind = _operand_kind(node)
    if kind.category is Category.COMPLEX:
        found = on_complex(node.op, operands, kind)
        return _unruled(operands, node) if found is None else found
    if not kind.is_float:
        if node.op in INTEGERS:
            given = [x.map(lambda bound: bound.astype(kind.numpy)) for x in operands]
            return on_integers(INTEGERS[node.op], given, kind, _monotone(node.op, given))
        kind = FLOAT64
    wide = [x if x.low.dtype == np.float64 else x.map(lambda bound: bound.astype(np.float64)) for x in operands]
    if node.op in ONE_OPERAND:
        return functions.function(node.op, wide[0], kind)
    return FLOATS[node.op](wide, kind)


def _monotone(op: Operator, operands: Sequence[Interval]) -> Array | bool:
    """Where an operator of integers takes its extremes at the bounds of its operands."""
    if op not in TURNING:
        return op not in REPEATING
    return ~np.logical_or.reduce(np.broadcast_arrays(*((x.low <= 0) & (x.high >= 0) & ~x.points for x in operands)))


def _operand_kind(node: Application) -> DType:
    kinds = {t.dtype for t in node.args}
    return kinds.pop() if len(kinds) == 1 else dtype(np.result_type(*(kind.numpy for kind in kinds)))


def _comparison(operands: Sequence[Interval], node: Application) -> Interval:
    return conditions.COMPARISONS[node.op](*operands)


def _test(operands: Sequence[Interval], node: Application) -> Interval:
    return conditions.test(node.op, operands[0])


def _and(operands: Sequence[Interval], node: Application) -> Interval:
    x, y = map(conditions.condition, operands)
    return Interval(x.low & y.low, x.high & y.high)


def _or(operands: Sequence[Interval], node: Application) -> Interval:
    x, y = map(conditions.condition, operands)
    return Interval(x.low | y.low, x.high | y.high)


def _not(operands: Sequence[Interval], node: Application) -> Interval:
    return conditions.inverted(operands[0])


def _select(operands: Sequence[Interval], node: Application) -> Interval:
    return conditions.select(*operands)


def _select_by(comparison: Operator) -> Rule:
    def rule(operands: Sequence[Interval], node: Application) -> Interval:
        return conditions.select(conditions.COMPARISONS[comparison](*operands[:2]), *operands[2:])

    return rule


def _complex(operands: Sequence[Interval], node: Application) -> Interval:
    return joined(*operands)


def _real(operands: Sequence[Interval], node: Application) -> Interval:
    return parts_of(operands[0])[0]


def _imaginary(operands: Sequence[Interval], node: Application) -> Interval:
    return parts_of(operands[0])[1]


def _normal(operands: Sequence[Interval], node: Application) -> Interval:
    """Numbers of at most 5.8 from a logarithm, a root and a cosine in float32."""
    value = np.asarray(MEANINGS[node.op]([], node), np.float64)
    slack = 6 * 2.0**-20
    return rounded(Interval(value - slack, value + slack), node.out.dtype)


def _unruled(operands: Sequence[Interval], node: Application) -> Interval:
    raise UnsupportedError("unsupported-op", f"operator {node.op.name!r} has no error bound on these operands")


RULES: Rules = MappingProxyType({
    **dict.fromkeys((*FLOATS, *ONE_OPERAND), _scalar), **dict.fromkeys(MOVES, moved),
    **dict.fromkeys(conditions.COMPARISONS, _comparison), **dict.fromkeys(conditions.TESTS, _test),
    **dict.fromkeys(REDUCTIONS, reduced.reduction),
    **by_operator({
        basic.LOGICAL_AND: _and, basic.LOGICAL_OR: _or, basic.LOGICAL_NOT: _not, basic.SELECT: _select,
        basic.CAST: lambda operands, node: operands[0], basic.ASSIGN: lambda operands, node: operands[1],
        SELECT_GT: _select_by(basic.GREATER), SELECT_LT: _select_by(basic.LESS),
        SELECT_GE: _select_by(basic.GREATER_EQUAL), SELECT_LE: _select_by(basic.LESS_EQUAL), basic.COMPLEX: _complex,
        basic.C_REAL: _real, basic.C_IMAG: _imaginary, (basic.CUM_SUM, basic.CUM_PROD): reduced.scan,
        (basic.ARGMAX, basic.ARGMIN): reduced.position,
        (basic.MATMUL, basic.BATCH_MATMUL, basic.CONV2D, basic.CSR_MV, basic.CSR_MM): reduced.matrix_product,
        basic.MATMUL_INTEGER: reduced.matrix_product,
        basic.STORED_MATMUL: stored.stored_product,
        (basic.UNSORTED_SEGMENT_SUM, basic.TENSOR_SCATTER_ADD, basic.CSR_REDUCE_SUM): reduced.gathered_sum,
        (basic.CSR_MUL, basic.CSR_DIV): reduced.sparse_elementwise, (basic.ELEM_ANY, ELEM_ALL): reduced.any_positive,
        basic.POOL2D: reduced.pooled, STANDARD_NORMAL: _normal,
    }),
})  # fmt: skip

ON_FIXED_POINT: Rules = MappingProxyType({
    **RULES, basic.STORED_MATMUL: stored.product_of_fixed_point,
})  # fmt: skip
"""The same for kernels that take rows as fixed point."""
