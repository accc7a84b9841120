"""Computes equal things once.

Before and after::

    a: f32[8] = Exp(x)                    a: f32[8] = Exp(x)
    b: f32[8] = Exp(x)            ->      y: f32[8] = Add(a, a)
    y: f32[8] = Add(a, b)

Two operators are equal when name, attributes, operands and the shapes and data types of their results are. Operands of
commutative operators are compared without regard to their order. An output keeps its name: the second of two equal ones
is a copy. An input that the kernel updates counts as another operand after each update; in-place and random operators
are never equal. Source: common subexpression elimination.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from kernelgen.canonical.rewrite import kept_names, operands_replaced, with_ops
from kernelgen.composite.description import IN_PLACE_OPS, KernelDesc, OpDesc, TensorDesc
from kernelgen.composite.vocabulary import STANDARD_NORMAL, names_of
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.operators.elemwise import ADD, MUL, TENSOR_MOVE
from kernelgen.tensor.operators.select import EQUAL, LOGICAL_AND, LOGICAL_OR, NOT_EQUAL

COMMUTATIVE = names_of(ADD, MUL, EQUAL, NOT_EQUAL, LOGICAL_AND, LOGICAL_OR)
UNIQUE = frozenset({*IN_PLACE_OPS, STANDARD_NORMAL.name, TENSOR_MOVE.name})
"""Operators that are not shared: effects, random numbers, and copies, which hold outputs."""


def share_subexpressions(desc: KernelDesc) -> KernelDesc:
    """The description in which no two operators compute the same."""
    kept = kept_names(desc)
    updates: Counter[str] = Counter()
    first: dict[Hashable, OpDesc] = {}
    equal: dict[str, TensorDesc] = {}
    ops: list[OpDesc] = []
    for op in desc.ops:
        op = operands_replaced(op, equal)
        if op.name in UNIQUE:
            ops.append(op)
            if op.name in IN_PLACE_OPS:
                updates[op.inputs[0].name] += 1
            continue
        earlier = first.setdefault(_key(op, updates), op)
        if earlier is op:
            ops.append(op)
            continue
        for same, result in zip(earlier.outputs, op.outputs, strict=True):
            equal[result.name] = same
            if result.name in kept:
                ops.append(OpDesc(TENSOR_MOVE.name, (same,), (result,), Attrs()))
    return with_ops(desc, ops)


def _key(op: OpDesc, updates: Counter[str]) -> Hashable:
    operands = tuple(_operand(t, updates) for t in op.inputs)
    if op.name in COMMUTATIVE:
        operands = tuple(sorted(operands, key=repr))
    results = tuple((t.shape, t.dtype, t.format) for t in op.outputs)
    return op.name, repr(op.attrs), operands, results


def _operand(tensor: TensorDesc, updates: Counter[str]) -> Hashable:
    """A name with the number of updates before, or a constant; ``repr`` tells 1 from 1.0 and 0.0 from -0.0."""
    if tensor.value is None:
        return tensor.name, updates[tensor.name]
    return repr(tensor.value), tensor.dtype.name
