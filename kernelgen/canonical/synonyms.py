"""One name for one meaning, so that later passes and rules meet few operators.

Before and after::

    a: f32[8, 1] = ExpandDims(x) {axis=1}             a: f32[8, 1] = Reshape(x)
    b: f32[8, 1] = Div(a, p)                    ->    b: f32[8, 1] = RealDiv(a, p)
    c: f32[8, 4] = Tile(b) {multiples=[1, 4]}         c: f32[8, 4] = BroadcastTo(b)

What an attribute of these operators says, their result says too; old writers leave the attribute wrong or away, so the
result is believed. A BroadcastTo that repeats nothing is a Reshape. Source: AKG's renaming of operators before lowering.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.canonical.rewrite import with_ops
from kernelgen.composite.description import KernelDesc, OpDesc
from kernelgen.composite.vocabulary import SYNONYMS, VIEWS, names_of
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Shape, product
from kernelgen.tensor.operators import catalogue as basic

RESHAPES = names_of(*VIEWS)
REPEATED = names_of(basic.RESHAPE, basic.BROADCAST_TO, basic.CAST)
"""Operators whose attributes only repeat the shape or data type of the result."""


def canonical_names(desc: KernelDesc) -> KernelDesc:
    """The description in which every operator has its first name, and no attribute that its result makes redundant."""
    return with_ops(desc, [_renamed(op) for op in desc.ops])


def _renamed(op: OpDesc) -> OpDesc:
    name = _name(op)
    attrs = Attrs() if name in REPEATED else op.attrs
    return op if name == op.name and attrs == op.attrs else replace(op, name=name, attrs=attrs)


def _name(op: OpDesc) -> str:
    if op.name in RESHAPES:
        return basic.RESHAPE.name
    if (
        op.name in (basic.BROADCAST_TO.name, basic.TILE.name)
        and op.inputs[0].value is None
        and _repeats_ones(op.inputs[0].shape, op.outputs[0].shape)
    ):
        kept = product(op.inputs[0].shape) == product(op.outputs[0].shape)
        return (basic.RESHAPE if kept else basic.BROADCAST_TO).name
    if op.name == basic.DIV.name and all(t.dtype.is_float for t in op.inputs):
        return basic.REAL_DIV.name
    return SYNONYMS[op.name].name if op.name in SYNONYMS else op.name


def _repeats_ones(source: Shape, result: Shape) -> bool:
    """Whether only extents of 1 grow."""
    pairs = zip(reversed(source), reversed(result), strict=False)
    return len(source) <= len(result) and all(s in (r, 1) for s, r in pairs)
