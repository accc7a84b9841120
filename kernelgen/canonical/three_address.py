"""Compound operators as basic ones: one scalar function an operator.

Before and after::

                                              s: f32[8] = Add(x, y)
    a: f32[8] = AddN(x, y, z)                 a: f32[8] = Add(s, z)
    b: f32[8] = SelectGT(a, x, y, z)    ->    c: bool[8] = Greater(a, x)
                                              b: f32[8] = Select(c, y, z)

Also Square, AddMinValue and FastGeLU. The steps are those of the operator's scalar rule, so that results keep their bits;
what they share with other operators is found by the later passes. Source: AKG's three-address code, fused ``SelectXX`` read
backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelgen.composite.description import KernelDesc, constant
from kernelgen.composite.rewriting import Rewriting
from kernelgen.composite.scalar_rules import ELEMENTWISE, OPERATOR_OF, operand_dtypes
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
from kernelgen.nest.scalars import SCALARS, Result
from kernelgen.tensor.dtypes import BOOL, DType
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.elemwise import TENSOR_MOVE
from kernelgen.tensor.operators.type_rules import broadcast_shapes
from kernelgen.tensor.types import TensorType

COMPARING = frozenset({SELECT_GT, SELECT_LT, SELECT_GE, SELECT_LE})
"""Compound operators that compare their first two operands, and give one of the others."""

FLOATING = frozenset({ADD_MIN_VALUE, FAST_GELU})
"""Compound operators whose constants are no integers."""

COMPOUND = frozenset({ADD_N, SQUARE}) | FLOATING | COMPARING


def three_address(desc: KernelDesc) -> KernelDesc:
    """The description without compound operators."""
    walk = Rewriting(desc)
    steps = OperatorAlgebra(walk)
    for node in desc.operators:
        if node.op not in COMPOUND or not _is_plain(node):
            walk.keep(node)
            continue
        args = walk.args(node)
        value = steps.cast(ELEMENTWISE[node.op](steps, args, node), node.out.dtype)
        last = (steps.make(TENSOR_MOVE, args, value.dtype) if value in args else value).node
        assert walk.operators.pop() is last, "the last step is the value"
        walk.becomes(node.out, walk.make(last.op, last.args, node.out.type, name=node.name))
    return walk.done()


def _is_plain(node: Node) -> bool:
    """Whether operands and result have one data type, so that no step promotes or converts."""
    compared, valued = (node.args[:2], node.args[2:]) if node.op in COMPARING else ((), node.args)
    real = node.out.dtype.is_float or node.op not in FLOATING
    return real and all(v.dtype == node.out.dtype for v in valued) and len({v.dtype for v in compared}) <= 1


@dataclass
class OperatorAlgebra:
    """An :class:`~kernelgen.tensor.algebra.Algebra` of values of a kernel: what is called becomes an operator."""

    walk: Rewriting

    def call(self, function: str, *args: Value | float) -> Value:
        """The result of the operator that is this function of its operands."""
        kinds = operand_dtypes(function, tuple(arg.dtype if isinstance(arg, Value) else None for arg in args))
        given = [
            self.cast(arg, kind) if isinstance(arg, Value) else self.literal(arg, kind)
            for arg, kind in zip(args, kinds, strict=True)
        ]
        return self.make(OPERATOR_OF[function], given, BOOL if SCALARS[function].result is Result.BOOL else kinds[-1])

    def cast(self, value: Value, target: DType) -> Value:
        """The value in another data type; itself where it has that."""
        return value if value.dtype == target else self.make(CAST, (value,), target)

    def literal(self, value: float, target: DType) -> Value:
        """A constant of one element."""
        return constant(value, TensorType((1,), target), self.walk.fresh())

    def dtype(self, value: Value) -> DType:
        """The value's data type."""
        return value.dtype

    def make(self, operator: Operator, operands: Sequence[Value], kind: DType) -> Value:
        """Appends an operator; its result has the shape that the operands broadcast to."""
        return self.walk.make(operator, operands, TensorType(broadcast_shapes(v.shape for v in operands), kind))
