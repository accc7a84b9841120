"""Compound operators as basic ones: one scalar function an operator.

Before and after::

                                              s: f32[8] = Add(x, y)
    a: f32[8] = AddN(x, y, z)                 a: f32[8] = Add(s, z)
    b: f32[8] = SelectGT(a, x, y, z)    ->    c: bool[8] = Greater(a, x)
                                              b: f32[8] = Select(c, y, z)

Also Square, AddMinValue and FastGeLU, the last one for half precision in float32 as its rule says. Every step rounds as
the compound operator does between its scalar functions, so that results keep their bits; what the steps share with other
operators is found by the later passes. Source: AKG's three-address code, fused ``SelectXX`` read backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelgen.canonical.rewrite import fresh_names, with_ops
from kernelgen.composite.axes import broadcast
from kernelgen.composite.description import KernelDesc, OpDesc, TensorDesc
from kernelgen.composite.vocabulary import (
    ADD_MIN_VALUE,
    ADD_N,
    FAST_GELU,
    SELECT_GE,
    SELECT_GT,
    SELECT_LE,
    SELECT_LT,
    SQUARE,
    by_name,
    names_of,
)
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, DType
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import catalogue as basic


def three_address(desc: KernelDesc) -> KernelDesc:
    """The description without compound operators."""
    names = fresh_names(desc, "step")
    return with_ops(desc, [step for op in desc.ops for step in _steps(op, names)])


@dataclass
class _Steps:
    """The operators that take the place of one."""

    names: Iterator[str]
    ops: list[OpDesc] = field(default_factory=list[OpDesc])

    def op(self, operator: Operator, *operands: TensorDesc, kind: DType | None = None) -> TensorDesc:
        """Appends an operator; its result has the shape that the operands broadcast to."""
        shape = broadcast(*(t.shape for t in operands))
        result = TensorDesc(next(self.names), shape, kind or operands[0].dtype)
        self.ops.append(OpDesc(operator.name, operands, (result,), Attrs()))
        return result

    def number(self, value: float, like: TensorDesc) -> TensorDesc:
        """A constant of the data type of another tensor."""
        return TensorDesc(next(self.names), (1,), like.dtype, value=value)


Expansion = Callable[[_Steps, Sequence[TensorDesc], TensorDesc], TensorDesc]
"""``(steps, operands, result) -> value``; the last step's result becomes the operator's result."""


def _steps(op: OpDesc, names: Iterator[str]) -> Sequence[OpDesc]:
    """The operator itself when it is basic, or not of one data type."""
    expansion = EXPANSIONS.get(op.name)
    if expansion is None or not _is_plain(op):
        return (op,)
    steps = _Steps(names)
    expansion(steps, op.inputs, op.output)
    *first, last = steps.ops
    return (*first, replace(last, outputs=op.outputs))


def _is_plain(op: OpDesc) -> bool:
    """Whether operands and result have one data type, so that no step promotes or converts."""
    valued = op.inputs[2:] if op.name in COMPARISONS else op.inputs
    compared = op.inputs[:2] if op.name in COMPARISONS else ()
    real = op.output.dtype.is_float or op.name not in FLOATING
    return real and all(t.dtype == op.output.dtype for t in valued) and len({t.dtype for t in compared}) <= 1


def _add_n(steps: _Steps, operands: Sequence[TensorDesc], result: TensorDesc) -> TensorDesc:
    total = operands[0]
    for operand in operands[1:]:
        total = steps.op(basic.ADD, total, operand)
    return total if steps.ops else steps.op(basic.TENSOR_MOVE, total)


def _square(steps: _Steps, operands: Sequence[TensorDesc], result: TensorDesc) -> TensorDesc:
    return steps.op(basic.MUL, operands[0], operands[0])


def _add_min_value(steps: _Steps, operands: Sequence[TensorDesc], result: TensorDesc) -> TensorDesc:
    (x,) = operands
    return steps.op(basic.ADD, x, steps.number(2.0**-24 if x.dtype == FLOAT16 else 2.0**-126, x))


def _fast_gelu(steps: _Steps, operands: Sequence[TensorDesc], result: TensorDesc) -> TensorDesc:
    """``x * exp(1.702 * min(x, 0)) / (1 + exp(-1.702 * |x|))``: AKG's ``x - |x|`` is twice the minimum, and NaN at infinity."""
    (given,) = operands
    half = given.dtype in (FLOAT16, BFLOAT16)
    x = steps.op(basic.CAST, given, kind=FLOAT32) if half else given
    size = steps.op(basic.ABS, x)
    growth = steps.op(
        basic.EXP, steps.op(basic.MUL, steps.op(basic.MINIMUM, x, steps.number(0.0, x)), steps.number(1.702, x))
    )
    decay = steps.op(basic.EXP, steps.op(basic.MUL, size, steps.number(-1.702, x)))
    denominator = steps.op(basic.ADD, decay, steps.number(1.0, x))
    value = steps.op(basic.REAL_DIV, steps.op(basic.MUL, x, growth), denominator)
    return steps.op(basic.CAST, value, kind=result.dtype) if half else value


def _select_by(comparison: Operator) -> Expansion:
    def expand(steps: _Steps, operands: Sequence[TensorDesc], result: TensorDesc) -> TensorDesc:
        a, b, x, y = operands
        return steps.op(basic.SELECT, steps.op(comparison, a, b, kind=BOOL), x, y, kind=x.dtype)

    return expand


COMPARISONS = by_name(
    {SELECT_GT: basic.GREATER, SELECT_LT: basic.LESS, SELECT_GE: basic.GREATER_EQUAL, SELECT_LE: basic.LESS_EQUAL}
)
"""Fused comparison and Select -> the comparison."""

FLOATING = names_of(ADD_MIN_VALUE, FAST_GELU)
"""Compound operators whose constants are no integers."""

EXPANSIONS: Mapping[str, Expansion] = {
    **by_name({ADD_N: _add_n, SQUARE: _square, ADD_MIN_VALUE: _add_min_value, FAST_GELU: _fast_gelu}),
    **{name: _select_by(comparison) for name, comparison in COMPARISONS.items()},
}
"""Compound operator -> how its steps are written."""
