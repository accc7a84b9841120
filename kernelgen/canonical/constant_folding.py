"""Computes what only depends on constants, and writes constants into the operators that read them.

Before and after::

    c: f32[8, 4] = BroadcastTo(2.0: f32)
    d: f32[8, 4] = Sqrt(c)
    y: f32[8, 4] = Mul(x, d)                  ->      y: f32[8, 4] = Mul(x, 1.4142135: f32)

A value of which all elements are equal is *uniform*. Element-wise operators and moves of uniform operands are uniform, so
are extrema of them, and ZerosLike of anything. A uniform value becomes an operand where the reader broadcasts it anyway,
that is in an element-wise operator whose other operands have the shape of the result; elsewhere it is a BroadcastTo.
Results are those of :func:`kernelgen.reference`; what is not finite is left to the kernel. Source: constant folding.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kernelgen.composite.description import KernelDesc, constant
from kernelgen.composite.rewriting import Rewriting
from kernelgen.composite.scalar_rules import Elementwise, scalar_rule
from kernelgen.composite.vocabulary import ZEROS_LIKE
from kernelgen.semantics.algebra import ArrayAlgebra
from kernelgen.tensor.dims import Shape, Sym, product
from kernelgen.tensor.dtypes import Category
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.reduce import REDUCE_ALL, REDUCE_ANY, REDUCE_MAX, REDUCE_MIN
from kernelgen.tensor.operators.shape import BROADCAST_TO, RESHAPE, TILE, TRANSPOSE
from kernelgen.tensor.operators.type_rules import broadcast_shapes
from kernelgen.tensor.types import TensorType

MOVES = frozenset({RESHAPE, BROADCAST_TO, TRANSPOSE, TILE})
"""Operators that only move and repeat elements."""
IDEMPOTENT_REDUCTIONS = frozenset({REDUCE_MAX, REDUCE_MIN, REDUCE_ALL, REDUCE_ANY})
"""Reductions that give back what all elements are."""


def fold_constants(desc: KernelDesc) -> KernelDesc:
    """The description in which no operator has only uniform operands but a BroadcastTo that somebody needs."""
    walk = Rewriting(desc)
    uniform: dict[Value, Value] = {}
    for node in desc.operators:
        args = walk.args(node)
        value = _constant(node, args, uniform)
        if value is None:
            walk.keep(node, _inlined(node, args, uniform))
            continue
        if node.op is BROADCAST_TO and args[0].constant is not None:
            walk.keep(node)
        else:
            walk.becomes(node.out, walk.make(BROADCAST_TO, (value,), node.out.type, name=node.name))
        uniform[walk.now(node.out)] = value
    return walk.done()


def _constant(node: Node, args: tuple[Value, ...], uniform: Mapping[Value, Value]) -> Value | None:
    """The constant that every element of the result equals, None when there is none or it is not known."""
    if len(node.types) != 1 or node.out.dtype.category is Category.COMPLEX:
        return None
    if node.op is ZEROS_LIKE:
        return _number(node, 0)
    operands = [value if value.constant is not None else uniform.get(value) for value in args]
    values = [value for value in operands if value is not None]
    if not values or len(values) < len(operands):
        return None
    rule = scalar_rule(node)
    if rule is not None:
        return _computed(rule, node, values)
    same = node.op in MOVES or (node.op in IDEMPOTENT_REDUCTIONS and _has_elements(args[0].shape))
    return values[0] if same and values[0].dtype == node.out.dtype else None


def _has_elements(shape: Shape) -> bool:
    return all(isinstance(dim, Sym) or dim > 0 for dim in shape)


def _computed(rule: Elementwise, node: Node, operands: list[Value]) -> Value | None:
    algebra = ArrayAlgebra()
    with np.errstate(all="ignore"):
        arrays = [value.constant.reshape(1) for value in operands if value.constant is not None]
        found = rule(algebra, arrays, node)
        number = algebra.cast(found, node.out.dtype).reshape(1)[0].item()
    return _number(node, number) if np.isfinite(number) else None


def _number(node: Node, number: float) -> Value:
    return constant(number, TensorType((1,), node.out.dtype))


def _inlined(node: Node, args: tuple[Value, ...], uniform: Mapping[Value, Value]) -> tuple[Value, ...]:
    """The operands, of an element-wise operator as many of the last ones constants as its shape does not need."""
    if scalar_rule(node) is None or not any(value in uniform for value in args):
        return args
    inlined = list(args)
    for place in reversed(range(len(inlined))):
        if inlined[place] in uniform and _covers(node, inlined, place):
            inlined[place] = uniform[inlined[place]]
    return tuple(inlined)


def _covers(node: Node, args: list[Value], place: int) -> bool:
    """Whether the operands without one of them have the shape that all have together."""
    others = [value.shape for k, value in enumerate(args) if k != place]
    return product(node.out.shape) == 1 or broadcast_shapes(others) == broadcast_shapes(value.shape for value in args)
