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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kernelgen.composite.description import KernelDesc, constant
from kernelgen.composite.rewriting import Rewriting
from kernelgen.composite.vocabulary import (
    ADD_MIN_VALUE,
    ADD_N,
    FAST_GELU,
    SELECT_GE,
    SELECT_GT,
    SELECT_LE,
    SELECT_LT,
    SQUARE,
)
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, DType
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import catalogue as basic
from kernelgen.tensor.operators.type_rules import broadcast_shapes
from kernelgen.tensor.types import TensorType


def three_address(desc: KernelDesc) -> KernelDesc:
    """The description without compound operators."""
    walk = Rewriting(desc)
    for node in desc.operators:
        expansion = EXPANSIONS.get(node.op)
        if expansion is None or not _is_plain(node):
            walk.keep(node)
            continue
        last = expansion(_Steps(walk), walk.args(node), node.out).node
        assert walk.operators.pop() is last, "the last step is the value"
        walk.becomes(node.out, walk.make(last.op, last.args, node.out.type, name=node.name))
    return walk.done()


@dataclass
class _Steps:
    """The operators that take the place of one."""

    walk: Rewriting

    def op(self, operator: Operator, *operands: Value, kind: DType | None = None) -> Value:
        """Appends an operator; its result has the shape that the operands broadcast to."""
        shape = broadcast_shapes(value.shape for value in operands)
        return self.walk.make(operator, operands, TensorType(shape, kind or operands[0].dtype))

    def number(self, value: float, like: Value) -> Value:
        """A constant of the data type of another value."""
        return constant(value, TensorType((1,), like.dtype), self.walk.fresh())


Expansion = Callable[[_Steps, Sequence[Value], Value], Value]
"""``(steps, operands, result) -> value``, which is the last step's result."""


def _is_plain(node: Node) -> bool:
    """Whether operands and result have one data type, so that no step promotes or converts."""
    valued = node.args[2:] if node.op in COMPARISONS else node.args
    compared = node.args[:2] if node.op in COMPARISONS else ()
    real = node.out.dtype.is_float or node.op not in FLOATING
    return real and all(v.dtype == node.out.dtype for v in valued) and len({v.dtype for v in compared}) <= 1


def _add_n(steps: _Steps, operands: Sequence[Value], result: Value) -> Value:
    total = operands[0]
    for operand in operands[1:]:
        total = steps.op(basic.ADD, total, operand)
    return total if operands[1:] else steps.op(basic.TENSOR_MOVE, total)


def _square(steps: _Steps, operands: Sequence[Value], result: Value) -> Value:
    return steps.op(basic.MUL, operands[0], operands[0])


def _add_min_value(steps: _Steps, operands: Sequence[Value], result: Value) -> Value:
    (x,) = operands
    return steps.op(basic.ADD, x, steps.number(2.0**-24 if x.dtype == FLOAT16 else 2.0**-126, x))


def _fast_gelu(steps: _Steps, operands: Sequence[Value], result: Value) -> Value:
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
    def expand(steps: _Steps, operands: Sequence[Value], result: Value) -> Value:
        a, b, x, y = operands
        return steps.op(basic.SELECT, steps.op(comparison, a, b, kind=BOOL), x, y, kind=x.dtype)

    return expand


COMPARISONS: Mapping[Operator, Operator] = {
    SELECT_GT: basic.GREATER, SELECT_LT: basic.LESS, SELECT_GE: basic.GREATER_EQUAL, SELECT_LE: basic.LESS_EQUAL,
}  # fmt: skip
"""Fused comparison and Select -> the comparison."""

FLOATING = frozenset({ADD_MIN_VALUE, FAST_GELU})
"""Compound operators whose constants are no integers."""

EXPANSIONS: Mapping[Operator, Expansion] = {
    ADD_N: _add_n, SQUARE: _square, ADD_MIN_VALUE: _add_min_value, FAST_GELU: _fast_gelu,
    **{operator: _select_by(comparison) for operator, comparison in COMPARISONS.items()},
}  # fmt: skip
"""Compound operator -> how its steps are written."""
