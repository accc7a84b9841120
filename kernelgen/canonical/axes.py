"""Axes as numbers from 0, all of them written; reductions and transposes of extents of 1 are reshapes.

Before and after::

    a: f32[8] = ReduceSum(x) {axis=-1}                 a: f32[8] = ReduceSum(x) {axis=[1], keep_dims=False}
    b: f32[] = ReduceMax(x) {axis=[]}            ->    b: f32[] = ReduceMax(x) {axis=[0, 1], keep_dims=False}
    c: f32[8] = ReduceSum(p) {axis=1}                  c: f32[8] = Reshape(p)

where ``x`` is ``f32[8, 4]`` and ``p`` is ``f32[8, 1]``. A sum of -0.0 alone is -0.0 after, and 0.0 before: both are
sums of it (:mod:`kernelgen.enclosure.sums`).
Source: AKG's axis normalisation.
"""

from __future__ import annotations

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.rewriting import Rewriting
from kernelgen.composite.scalar_rules import REDUCTIONS
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import product
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.shape import RESHAPE, TRANSPOSE
from kernelgen.tensor.operators.type_rules import reduced_axes, written_axis, written_reduction


def normal_axes(desc: KernelDesc) -> KernelDesc:
    """The description in which every axis is written, non-negative and, for reductions, in a sorted list."""
    walk = Rewriting(desc)
    for node in desc.operators:
        op, attrs = _normal(node)
        walk.keep(node, op=op, attrs=attrs)
    return walk.done()


def _normal(node: Node) -> tuple[Operator, Attrs]:
    if node.op in REDUCTIONS:
        return _reduction(node)
    if node.op is TRANSPOSE:
        return _transpose(node)
    return node.op, written_axis(node)


def _reduction(node: Node) -> tuple[Operator, Attrs]:
    source, result = node.args[0], node.outs[0]
    if all(source.shape[axis] == 1 for axis in reduced_axes(node)) and product(source.shape) == product(result.shape):
        return RESHAPE, Attrs()
    return node.op, written_reduction(node)


def _transpose(node: Node) -> tuple[Operator, Attrs]:
    """Moving extents of 1 keeps the order of elements."""
    shape = node.args[0].shape
    perm = tuple(p % len(shape) for p in node.attrs.ints("perm", tuple(reversed(range(len(shape))))))
    moved = [p for p in perm if shape[p] != 1]
    return (RESHAPE, Attrs()) if moved == sorted(moved) else (node.op, node.attrs.with_(perm=perm))
