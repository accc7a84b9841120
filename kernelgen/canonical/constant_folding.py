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
from dataclasses import replace

import numpy as np

from kernelgen.canonical.dead_code import drop_dead
from kernelgen.canonical.rewrite import with_ops
from kernelgen.composite.axes import broadcast
from kernelgen.composite.description import KernelDesc, OpDesc, TensorDesc
from kernelgen.composite.scalar_rules import Elementwise, constant, scalar_rule
from kernelgen.composite.vocabulary import ZEROS_LIKE, names_of
from kernelgen.semantics.algebra import ArrayAlgebra
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Shape, Sym, product
from kernelgen.tensor.dtypes import Category
from kernelgen.tensor.operators.reduce import REDUCE_ALL, REDUCE_ANY, REDUCE_MAX, REDUCE_MIN
from kernelgen.tensor.operators.shape import BROADCAST_TO, RESHAPE, TILE, TRANSPOSE

MOVES = names_of(RESHAPE, BROADCAST_TO, TRANSPOSE, TILE)
"""Operators that only move and repeat elements."""
IDEMPOTENT_REDUCTIONS = names_of(REDUCE_MAX, REDUCE_MIN, REDUCE_ALL, REDUCE_ANY)
"""Reductions that give back what all elements are."""


def fold_constants(desc: KernelDesc) -> KernelDesc:
    """The description in which no operator has only uniform operands but a BroadcastTo that somebody needs."""
    uniform: dict[str, TensorDesc] = {}
    ops: list[OpDesc] = []
    for op in desc.ops:
        value = _constant(op, uniform)
        if value is None:
            ops.append(_inlined(op, uniform))
        else:
            uniform[op.output.name] = value
            ops.append(_broadcast(op, value))
    return drop_dead(with_ops(desc, ops))


def _constant(op: OpDesc, uniform: Mapping[str, TensorDesc]) -> TensorDesc | None:
    """The constant that every element of the result equals, None when there is none or it is not known."""
    if len(op.outputs) != 1 or op.output.dtype.category is Category.COMPLEX:
        return None
    if op.name == ZEROS_LIKE.name:
        return _number(op, 0)
    operands = [t if t.value is not None else uniform.get(t.name) for t in op.inputs]
    values = [t for t in operands if t is not None]
    if not values or len(values) < len(operands):
        return None
    rule = scalar_rule(op)
    if rule is not None:
        return _computed(rule, op, values)
    same = op.name in MOVES or (op.name in IDEMPOTENT_REDUCTIONS and _has_elements(op.inputs[0].shape))
    return replace(values[0], name=f"{op.output.name}_value") if same and values[0].dtype == op.output.dtype else None


def _has_elements(shape: Shape) -> bool:
    return all(isinstance(dim, Sym) or dim > 0 for dim in shape)


def _computed(rule: Elementwise, op: OpDesc, operands: list[TensorDesc]) -> TensorDesc | None:
    algebra = ArrayAlgebra()
    with np.errstate(all="ignore"):
        found = rule(algebra, [np.full((1,), t.value, t.dtype.numpy) for t in operands], op)
        value = algebra.cast(found, op.output.dtype).reshape(1)[0].item()
    return _number(op, value) if np.isfinite(value) else None


def _number(op: OpDesc, value: float) -> TensorDesc:
    return TensorDesc(f"{op.output.name}_value", (1,), op.output.dtype, value=constant(value, op.output.dtype))


def _broadcast(op: OpDesc, value: TensorDesc) -> OpDesc:
    """The operator that writes a uniform value out."""
    written = op.name == BROADCAST_TO.name and op.inputs[0].value is not None
    return op if written else OpDesc(BROADCAST_TO.name, (value,), op.outputs, Attrs())


def _inlined(op: OpDesc, uniform: Mapping[str, TensorDesc]) -> OpDesc:
    """An element-wise operator that reads constants, as many of the last ones as its shape does not need."""
    if scalar_rule(op) is None or not any(t.value is None and t.name in uniform for t in op.inputs):
        return op
    inputs = list(op.inputs)
    for place in reversed(range(len(inputs))):
        if inputs[place].value is None and inputs[place].name in uniform and _covers(op, inputs, place):
            inputs[place] = uniform[inputs[place].name]
    return op if tuple(inputs) == op.inputs else replace(op, inputs=tuple(inputs))


def _covers(op: OpDesc, inputs: list[TensorDesc], place: int) -> bool:
    """Whether the operands without one of them have the shape that all have together."""
    others = [t.shape for k, t in enumerate(inputs) if k != place]
    return product(op.output.shape) == 1 or broadcast(*others) == broadcast(*(t.shape for t in inputs))
