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

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.rewriting import Rewriting, kept_values, readers
from kernelgen.tensor.dims import Shape, symbols_of
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.shape import RESHAPE


def reshape_arguments(desc: KernelDesc) -> KernelDesc:
    """The description whose arguments need no Reshape where one shape serves all that read them."""
    if not any(node.op is RESHAPE for node in desc.operators):
        return desc
    read, kept = readers(desc), kept_values(desc)
    inputs = _inputs(desc, read, kept)
    outputs = _outputs(desc, read, inputs)
    if not inputs and not outputs:
        return desc
    walk = Rewriting(desc)
    for value, shape in inputs.items():
        walk.becomes(value, replace(value.node, types=(value.type.of_shape(shape),)).out)
    for node in desc.operators:
        if node.op is RESHAPE and node.args[0] in inputs and node.out not in kept:
            walk.becomes(node.out, walk.now(node.args[0]))
        elif node.outs[0] in outputs:
            walk.keep(node, types=(node.out.type.of_shape(outputs[node.out]),))
        else:
            walk.keep(node)
    return walk.done(tuple(map(walk.now, desc.graph.inputs)))


def _inputs(desc: KernelDesc, read: Mapping[Value, Sequence[Node]], kept: frozenset[Value]) -> dict[Value, Shape]:
    """The inputs, and the shape of the only kind of Reshape that reads them."""
    fixed = kept | {desc.graph.inputs[place] for place in desc.updated_inputs}
    found: dict[Value, Shape] = {}
    for value in desc.graph.inputs:
        views = {_view(node, value) for node in read.get(value, ())}
        view = views.pop() if len(views) == 1 and value not in fixed else None
        if view is not None and _may_replace(view, value.shape):
            found[value] = view
    return found


def _view(node: Node, value: Value) -> Shape | None:
    """The shape in which an operator sees a value if it does nothing else."""
    same = node.op is RESHAPE and (node.out.dtype, node.out.layout) == (value.dtype, value.layout)
    return node.out.shape if same else None


def _may_replace(shape: Shape, written: Shape) -> bool:
    """Another shape, of the same symbols: an empty tensor's may vanish."""
    return shape != written and symbols_of(shape) == symbols_of(written)


def _outputs(
    desc: KernelDesc, read: Mapping[Value, Sequence[Node]], inputs: Mapping[Value, Shape]
) -> dict[Value, Shape]:
    """The outputs that a Reshape makes, and the shape of its operand."""
    return {
        node.out: source.shape
        for node in desc.operators
        if node.op is RESHAPE and node.out in desc.results and node.out not in read
        and (source := node.args[0]).constant is None and source not in inputs
        and _may_replace(source.shape, node.out.shape)
    }  # fmt: skip
