"""Axes as numbers from 0, all of them written; reductions and transposes of extents of 1 are reshapes.

Before and after::

    a: f32[8] = ReduceSum(x) {axis=-1}                 a: f32[8] = ReduceSum(x) {axis=[1], keep_dims=False}
    b: f32[] = ReduceMax(x) {axis=[]}            ->    b: f32[] = ReduceMax(x) {axis=[0, 1], keep_dims=False}
    c: f32[8] = ReduceSum(p) {axis=1}                  c: f32[8] = Reshape(p)

where ``x`` is ``f32[8, 4]`` and ``p`` is ``f32[8, 1]``. A sum of -0.0 alone is -0.0 after, and 0.0 before.
Source: AKG's axis normalisation.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.canonical.rewrite import with_ops
from kernelgen.composite.axes import normal_axis, reduced_axes
from kernelgen.composite.description import KernelDesc, OpDesc
from kernelgen.composite.scalar_rules import REDUCTIONS
from kernelgen.composite.vocabulary import facts
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import product
from kernelgen.tensor.operators.shape import RESHAPE, TRANSPOSE

SINGLE_AXIS = facts(lambda op: op.traits.axis_of)
"""Operators with one axis -> whether it counts the dims of operand 0 or of the result."""


def normal_axes(desc: KernelDesc) -> KernelDesc:
    """The description in which every axis is written, non-negative and, for reductions, in a sorted list."""
    return with_ops(desc, [_normal(op) for op in desc.ops])


def _normal(op: OpDesc) -> OpDesc:
    if op.name in REDUCTIONS:
        return _reduction(op)
    if op.name == TRANSPOSE.name:
        return _transpose(op)
    if op.name in SINGLE_AXIS and "axis" in op.attrs:
        counted = op.inputs[0] if SINGLE_AXIS[op.name] == "operand" else op.outputs[0]
        axes = op.attrs.ints("axis")
        return _with(op, op.attrs.with_(axis=normal_axis(axes[0], len(counted.shape)))) if len(axes) == 1 else op
    return op


def _reduction(op: OpDesc) -> OpDesc:
    source, result = op.inputs[0], op.outputs[0]
    axes = reduced_axes(op)
    if all(source.shape[axis] == 1 for axis in axes) and product(source.shape) == product(result.shape):
        return replace(op, name=RESHAPE.name, attrs=Attrs())
    return _with(op, op.attrs.with_(axis=axes, keep_dims=op.attrs.bool("keep_dims", False)))


def _transpose(op: OpDesc) -> OpDesc:
    """Moving extents of 1 keeps the order of elements."""
    shape = op.inputs[0].shape
    perm = tuple(p % len(shape) for p in op.attrs.ints("perm", tuple(reversed(range(len(shape))))))
    moved = [p for p in perm if shape[p] != 1]
    if moved == sorted(moved):
        return replace(op, name=RESHAPE.name, attrs=Attrs())
    return _with(op, op.attrs.with_(perm=perm))


def _with(op: OpDesc, attrs: Attrs) -> OpDesc:
    # True equals 1 and (1,) does not equal 1: the text tells apart what a comparison of values does not
    return op if repr(attrs) == repr(op.attrs) else replace(op, attrs=attrs)
