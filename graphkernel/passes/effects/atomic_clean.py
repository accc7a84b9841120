"""The pass atomic_clean: the blocks of a reduction add their sums into a result that a kernel before has cleared.

Before and after::

    kernel K(x) { t = Mul(x, x); s = ReduceSum(t); return s }    return K(x)
        ==>
    kernel Z() { z = BroadcastTo(0); return z }
    kernel K(x, z) { t = Mul(x, x); s = ReduceSum(t); return s -> z }    z = Z(); return K(x, z)

A reduction that one block cannot do alone is spread over blocks, and these meet in one sum. On gpu that pays when the
reduction leaves the last axis or has 1024 elements at least to add up; on ascend for float32 when the first axis is reduced
or the axes before the reduced ones are too few for the cores. The kernel may hold one reduction of a result only, and
nothing inside may read its sum, which is not complete before the kernel ends. On gpu only ``enable_pass`` brings the pass
in: kernels for it add up partial sums in a second launch of their own, in the same order on every device, where this costs
a launch that clears and gives atomic sums of no order.

The numbers do not depend on the mark: the pure meaning of the kernel is the sum, and the cleared operand is where it lies.
Source: MindSpore's atomic_clean_inserter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from graphkernel.cluster.fuse_nodes import call_of, with_unique_labels
from graphkernel.cluster.naming import ATOMIC_ADD, ATOMIC_CLEAN, Names
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import PARAMETER, Alias, Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.reduce import REDUCE_SUM
from kernelgen.tensor.operators.shape import BROADCAST_TO
from kernelgen.tensor.operators.type_rules import axes_of
from kernelgen.tensor.types import Attrs, Sym, TensorType, dtype

PASS_NAME = "atomic_clean"
LEAST_REDUCED = 1024  # elements for which several blocks share a row, on gpu
CORES = 32  # of ascend


@graph_pass
def atomic_clean(graph: Graph, context: Context) -> Graph:
    """Gives kernels that end in one wide ReduceSum a cleared operand to add into."""

    def chosen(node: Node, body: Graph) -> tuple[int, ...] | str:
        return _reduction_of(body, context.options.target)

    return with_cleared_sums(graph, context, PASS_NAME, chosen)


def with_cleared_sums(
    graph: Graph, context: Context, pass_name: str, chosen: Callable[[Node, Graph], tuple[int, ...] | str]
) -> Graph:
    """The graph in which kernels add the chosen results into cleared operands.

    ``chosen(node, body)`` gives positions of results, or why there are none; an empty reason is not worth a word.
    """
    names = Names.beside(graph)
    found: dict[Node, tuple[int, ...]] = {}
    for node in graph.operators:
        positions = "" if node.body is None or node.body.aliases else chosen(node, node.body)
        if not isinstance(positions, str) and not all(node.types[position].is_static for position in positions):
            positions = "the extents of the result are not known, so nothing can clear it before"
        if isinstance(positions, str):
            if positions:
                context.log.add(pass_name, "not-atomic-add", node.name, message=positions)
            continue
        found[node] = positions
        for position in positions:
            context.log.add(pass_name, "atomic-add", node.name, message=f"result {position}")
    if not found:
        return graph

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if node not in found:
            return keep(node, args).outs
        return accumulating(node, args, found[node], names).outs

    return with_unique_labels(graph.rebuild(rewrite))


def accumulating(node: Node, args: tuple[Value, ...], results: tuple[int, ...], names: Names) -> Node:
    """The kernel ``node`` over ``args`` with a cleared operand for each of ``results`` (positions), into which it
    adds.

    ``names`` gives kernels their names.
    """
    assert node.body is not None, "only kernels accumulate"
    cleared = tuple(cleared_kernel(node.types[position], f"{node.name}_cleared", names) for position in results)
    targets = tuple(
        Node(PARAMETER, (), Attrs(), (node.types[position],), f"cleared_{position}").out for position in results
    )
    first = len(node.body.inputs)
    aliases = tuple(Alias(position, first + number) for number, position in enumerate(results))
    body = with_unique_labels(replace(node.body, inputs=node.body.inputs + targets, aliases=aliases))
    attrs = node.attrs.with_(composite_type=ATOMIC_ADD)
    return replace(node, args=args + cleared, attrs=attrs, body=names.named(body, ATOMIC_ADD))


def cleared_kernel(type_: TensorType, name: str, names: Names) -> Value:
    """The result of a kernel that makes zeros of the type ``type_``: its call is ``name``, ``names`` gives the kernel
    its own.
    """
    builder = Builder()
    zeros = builder.emit(BROADCAST_TO, builder.constant(0, type_.dtype), shape=type_.shape, name="zeros")
    return replace(call_of(names.named(Graph("body", (), (zeros,)), ATOMIC_CLEAN), ()), name=name).out


def _reduction_of(body: Graph, target: str) -> tuple[int, ...] | str:
    """The position of the result that is the one ReduceSum; else why there is none, empty when nothing is summed up."""
    sums = [node for node in body.operators if node.op is REDUCE_SUM]
    results = [index for index, value in enumerate(body.outputs) if value.node in sums]
    if not sums:
        return ""
    if len(results) != 1 or len(sums) != 1:
        return f"it has {len(sums)} sums, {len(results)} of them as results"
    position = results[0]
    (total,) = sums
    if body.users[total]:
        return "operators inside read the sum"
    return why_not_spread(total, target) or (position,)


def why_not_spread(node: Node, target: str) -> str:
    """Why a reduction is not worth several blocks; empty when it is."""
    operand = node.args[0].type
    axes = axes_of(node.attrs.ints("axis", ()), operand.rank)
    return _on_ascend(operand, axes) if target == "ascend" else _on_gpu(operand, axes)


def _on_gpu(operand: TensorType, axes: tuple[int, ...]) -> str:
    if operand.rank - 1 not in axes:
        return ""
    reduced = prod(extent for axis in axes if not isinstance(extent := operand.shape[axis], Sym))
    if any(isinstance(operand.shape[axis], Sym) for axis in axes):
        return "the extent of a reduced axis is not known"
    return "" if reduced >= LEAST_REDUCED else f"{reduced} elements of a row are fewer than {LEAST_REDUCED}"


def _on_ascend(operand: TensorType, axes: tuple[int, ...]) -> str:
    if operand.dtype != dtype("float32"):
        return f"cores add {operand.dtype} one by one"
    wide = [axis for axis, extent in enumerate(operand.shape) if extent != 1]
    if not wide or wide[0] in axes:
        return ""
    kept = [operand.shape[axis] for axis in wide if axis < min(axes, default=0)]
    if any(isinstance(extent, Sym) for extent in kept):
        return "the extent of a leading axis is not known"
    rows = prod(extent for extent in kept if not isinstance(extent, Sym))
    return "" if rows < CORES else f"{rows} rows are enough for {CORES} cores"
