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

from kernelgen.composite.description import KernelDesc, number_of
from kernelgen.composite.rewriting import Rewriting, kept_values
from kernelgen.composite.vocabulary import STANDARD_NORMAL
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.effects import ASSIGN
from kernelgen.tensor.operators.elemwise import ADD, MUL, TENSOR_MOVE
from kernelgen.tensor.operators.select import EQUAL, LOGICAL_AND, LOGICAL_OR, NOT_EQUAL

COMMUTATIVE = frozenset({ADD, MUL, EQUAL, NOT_EQUAL, LOGICAL_AND, LOGICAL_OR})
UNIQUE = frozenset({ASSIGN, STANDARD_NORMAL, TENSOR_MOVE})
"""Operators that are not shared: effects, random numbers, and copies, which hold outputs."""


def share_subexpressions(desc: KernelDesc) -> KernelDesc:
    """The description in which no two operators compute the same."""
    walk, kept = Rewriting(desc), kept_values(desc)
    first: dict[Hashable, Node] = {}
    equal: dict[Value, Value] = {}
    for node in desc.operators:
        args = tuple(equal.get(value, value) for value in walk.args(node))
        key = node if node.op in UNIQUE else _key(node, args)
        if key not in first:
            first[key] = walk.keep(node, args)
            continue
        earlier = first[key]
        for same, result in zip(earlier.outs, node.outs, strict=True):
            if result in kept:
                copy = walk.make(TENSOR_MOVE, (same,), result.type, name=result.name)
                equal[copy] = same
                walk.becomes(result, copy)
            else:
                walk.becomes(result, same)
    return walk.done()


def _key(node: Node, args: tuple[Value, ...]) -> Hashable:
    operands: Hashable = tuple(map(_operand, args))
    if node.op in COMMUTATIVE:
        operands = frozenset(Counter(map(_operand, args)).items())
    return node.op, node.attrs.text, operands, node.types


def _operand(value: Value) -> Hashable:
    """A value, or what a constant is; ``repr`` tells 1 from 1.0 and 0.0 from -0.0."""
    number = number_of(value)
    return value if number is None else (repr(number), value.dtype.name)
