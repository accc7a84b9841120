"""Arguments take the shape in which the kernel works: their buffers are dense and row-major in both.

Before and after::

    desc k(x: f32[4, 6]) -> (y)               desc k(x: f32[24]) -> (y)
      a: f32[24] = Reshape(x)                   e: f32[24] = Exp(x)
      e: f32[24] = Exp(a)               ->      y: f32[24] = Reshape(e)
      y: f32[2, 12] = Reshape(e)

An input does when all that reads it are reshapes to one shape, an output when a Reshape makes it and nobody reads it. This
is the only pass that changes the shapes of arguments: ``kernelgen.stages`` gives the callers' shapes back to the kernel.
It makes a kernel of reshapes that do not line up, whose sizes are symbols. Source: the last step of AKG's reshape
elimination, which changes the shapes of inputs and outputs as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelgen.canonical.rewrite import kept_names, operands_replaced, readers, updated_names
from kernelgen.composite.description import KernelDesc, OpDesc, TensorDesc
from kernelgen.tensor.dims import Shape, symbols_of
from kernelgen.tensor.operators.shape import RESHAPE


def reshape_arguments(desc: KernelDesc) -> KernelDesc:
    """The description whose arguments need no Reshape where one shape serves all that read them."""
    if not any(op.name == RESHAPE.name for op in desc.ops):
        return desc
    read = readers(desc.ops)
    changed = _inputs(desc, read)
    changed |= _outputs(desc, read, changed)
    if not changed:
        return desc
    viewed = {
        op.output.name: changed[op.inputs[0].name]
        for op in desc.ops
        if op.name == RESHAPE.name and op.inputs[0].name in changed and op.output.name not in kept_names(desc)
    }
    ops = [operands_replaced(op, {**changed, **viewed}) for op in desc.ops if op.outputs[0].name not in viewed]
    return replace(
        desc,
        inputs=tuple(changed.get(t.name, t) for t in desc.inputs),
        ops=tuple(replace(op, outputs=tuple(changed.get(t.name, t) for t in op.outputs)) for op in ops),
        outputs=tuple(changed.get(t.name, t) for t in desc.outputs),
    )


def _inputs(desc: KernelDesc, read: Mapping[str, Sequence[OpDesc]]) -> dict[str, TensorDesc]:
    """The inputs, in the shape of the only kind of Reshape that reads them."""
    fixed = updated_names(desc) | kept_names(desc)
    found: dict[str, TensorDesc] = {}
    for tensor in desc.inputs:
        views = {_view(op, tensor) for op in read.get(tensor.name, ())}
        view = views.pop() if len(views) == 1 and tensor.name not in fixed else None
        if view is not None and _may_replace(view, tensor.shape):
            found[tensor.name] = replace(tensor, shape=view)
    return found


def _view(op: OpDesc, tensor: TensorDesc) -> Shape | None:
    """The shape in which an operator sees a tensor if it does nothing else."""
    same = op.name == RESHAPE.name and (op.output.dtype, op.output.format) == (tensor.dtype, tensor.format)
    return op.output.shape if same else None


def _may_replace(shape: Shape, written: Shape) -> bool:
    """Another shape, of the same symbols: an empty tensor's may vanish."""
    return shape != written and symbols_of(shape) == symbols_of(written)


def _outputs(
    desc: KernelDesc, read: Mapping[str, Sequence[OpDesc]], inputs: Mapping[str, TensorDesc]
) -> dict[str, TensorDesc]:
    """The outputs that a Reshape makes, in the shape of its operand."""
    names = {t.name for t in desc.outputs}
    return {
        op.output.name: replace(op.output, shape=source.shape)
        for op in desc.ops
        if op.name == RESHAPE.name and op.output.name in names and op.output.name not in read
        and (source := op.inputs[0]).value is None and source.name not in inputs
        and _may_replace(source.shape, op.output.shape)
    }  # fmt: skip
