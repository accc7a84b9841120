"""Operator -> its rule on intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from kernelgen.composite.description import OpDesc
from kernelgen.enclosure import arithmetic, conditions, functions, reduced
from kernelgen.enclosure.complexes import joined, on_complex, parts_of
from kernelgen.enclosure.integers import on_integers
from kernelgen.enclosure.interval import Interval
from kernelgen.enclosure.moves import MOVES, moved
from kernelgen.enclosure.rounding import rounded
from kernelgen.errors import UnsupportedError
from kernelgen.semantics.table import MEANINGS
from kernelgen.tensor.dtypes import FLOAT64, Category, DType, dtype

Rule = Callable[[Sequence[Interval], OpDesc], Interval | tuple[Interval, ...]]
OnFloats = Callable[[Sequence[Interval], DType], Interval]


def _sum_of_all(x: Sequence[Interval], kind: DType) -> Interval:
    total = x[0]
    for term in x[1:]:
        total = arithmetic.add(total, term, kind)
    return total


FLOATS: Mapping[str, OnFloats] = {
    "Add": lambda x, kind: arithmetic.add(x[0], x[1], kind),
    "TensorAdd": lambda x, kind: arithmetic.add(x[0], x[1], kind),
    "Sub": lambda x, kind: arithmetic.subtract(x[0], x[1], kind),
    "Mul": lambda x, kind: arithmetic.multiply(x[0], x[1], kind),
    "RealDiv": lambda x, kind: arithmetic.divide(x[0], x[1], kind),
    "Div": lambda x, kind: arithmetic.divide(x[0], x[1], kind),
    "FloorDiv": lambda x, kind: arithmetic.whole_quotient(x[0], x[1], kind),
    "Mod": lambda x, kind: arithmetic.remainder(x[0], x[1], False, kind),
    "FloorMod": lambda x, kind: arithmetic.remainder(x[0], x[1], True, kind),
    "Maximum": lambda x, kind: arithmetic.larger(x[0], x[1]),
    "Minimum": lambda x, kind: arithmetic.smaller(x[0], x[1]),
    "AddN": _sum_of_all,
    "Neg": lambda x, kind: arithmetic.negated(x[0]),
    "Abs": lambda x, kind: arithmetic.absolute(x[0]),
    "Square": lambda x, kind: arithmetic.square(x[0], kind),
    "AddMinValue": lambda x, kind: arithmetic.add_smallest(x[0], kind),
    "Sign": lambda x, kind: arithmetic.sign(x[0]),
    "Floor": lambda x, kind: x[0].map(np.floor),
    "Ceil": lambda x, kind: x[0].map(np.ceil),
    "Trunc": lambda x, kind: x[0].map(np.trunc),
    "Round": lambda x, kind: x[0].map(np.rint),
    "TensorMove": lambda x, kind: x[0],
    "ZerosLike": lambda x, kind: Interval.exact(np.zeros(x[0].low.shape)),
    "Sqrt": lambda x, kind: functions.root(x[0], kind),
    "Reciprocal": lambda x, kind: functions.reciprocal(x[0], kind),
    "Pow": lambda x, kind: functions.power(x[0], x[1], kind),
    "Atan2": lambda x, kind: functions.angle(x[0], x[1], kind),
    "FastGeLU": lambda x, kind: functions.fast_gelu(x[0], kind),
}
"""Operators of floats that are no function of one operand."""

INTEGERS: Mapping[str, Callable[..., object]] = {
    "Add": np.add, "TensorAdd": np.add, "Sub": np.subtract, "Mul": np.multiply, "Pow": np.power, "Maximum": np.maximum,
    "Minimum": np.minimum, "Neg": np.negative, "Abs": np.abs, "Sign": np.sign, "FloorDiv": np.floor_divide, "Mod": np.fmod,
    "FloorMod": np.mod, "Div": lambda x, y: np.trunc(np.divide(x, y)), "Square": lambda x: x * x,
    "AddN": lambda *x: sum(x[1:], x[0]), "TensorMove": lambda x: x, "ZerosLike": np.zeros_like,
    **dict.fromkeys(("Floor", "Ceil", "Trunc", "Round"), lambda x: x),
}  # fmt: skip
"""Operators whose integers stay integers; the others compute in float64."""

ONE_OPERAND = frozenset({*functions.RISING, *functions.FALLING, *functions.WAVES, "Cosh", "Tan"})


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


def _select_by(comparison: str) -> Rule:
    def rule(operands: Sequence[Interval], op: OpDesc) -> Interval:
        return conditions.select(conditions.COMPARISONS[comparison](*operands[:2]), *operands[2:])

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
    "LogicalAnd": _and, "LogicalOr": _or, "LogicalNot": _not, "Select": _select, "Cast": lambda operands, op: operands[0],
    "SelectGT": _select_by("Greater"), "SelectLT": _select_by("Less"), "SelectGE": _select_by("GreaterEqual"),
    "SelectLE": _select_by("LessEqual"), "Complex": _complex, "CReal": _real, "CImag": _imaginary,
    **dict.fromkeys(
        ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReducePrd", "ReduceAll", "ReduceAny"), reduced.reduction
    ),
    **dict.fromkeys(("CumSum", "CumProd"), reduced.scan), **dict.fromkeys(("Argmax", "Argmin"), reduced.position),
    **dict.fromkeys(("MatMul", "BatchMatMul", "Conv2D", "CSRMV", "CSRMM"), reduced.matrix_product),
    **dict.fromkeys(("UnsortedSegmentSum", "TensorScatterAdd", "CSRReduceSum"), reduced.gathered_sum),
    **dict.fromkeys(("CSRMul", "CSRDiv"), reduced.sparse_elementwise),
    **dict.fromkeys(("ElemAny", "ElemAll"), reduced.any_positive), "Pool2D": reduced.pooled, "StandardNormal": _normal,
})  # fmt: skip
