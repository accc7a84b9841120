"""Computes equal things once.

Before and after::

    a: f32[8] = Exp(x)                    a: f32[8] = Exp(x)
    b: f32[8] = Exp(x)            ->      y: f32[8] = Add(a, a)
    y: f32[8] = Add(a, b)

Which operators are equal says :func:`kernelgen.tensor.compare.computation`. An output keeps its name: the second of two
equal ones is a copy. An input that the kernel updates counts as another operand after each update; in-place and random
operators are never equal. Source: common subexpression elimination.
"""

from __future__ import annotations

from collections.abc import Hashable

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.rewriting import Rewriting, kept_values
from kernelgen.composite.vocabulary import STANDARD_NORMAL
from kernelgen.tensor.compare import computation
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.effects import ASSIGN
from kernelgen.tensor.operators.elemwise import TENSOR_MOVE

UNIQUE = frozenset({ASSIGN, STANDARD_NORMAL, TENSOR_MOVE})
"""Operators that are not shared: effects, random numbers, and copies, which hold outputs."""


def share_subexpressions(desc: KernelDesc) -> KernelDesc:
    """The description in which no two operators compute the same."""
    walk, kept = Rewriting(desc), kept_values(desc)
    first: dict[Hashable, Node] = {}
    equal: dict[Value, Value] = {}
    for node in desc.operators:
        args = tuple(equal.get(value, value) for value in walk.args(node))
        key = node if node.op in UNIQUE else computation(node, args)
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
