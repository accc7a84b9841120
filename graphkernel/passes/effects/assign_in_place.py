"""The pass assign_in_place: what the graph assigns to an input is stored there by the kernel that computes it.

Before and after::

    kernel K(w, g) { t = Sub(w, g); return t }    d = MatMul(x, w); a = K(w, g); return d, a -> w
        ==>
    kernel K(w, g) { t = Sub(w, g); return t -> w }    d = MatMul(x, w); a = K(w, g); return d, a -> w

Without it the result has memory of its own and is copied to the input behind all steps. The kernel may read the input, element
by element at the point that it computes: the generator proves that no element is read behind its store. Who else reads the
input comes earlier in the plan (:mod:`graphkernel.runtime.plan.late_writes`); where that cannot be, the plan gives the kernel a
copy. An input that the kernel does not read becomes an operand of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from graphkernel.cluster.cost import byte_size, human
from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.cluster.liveness import memories
from graphkernel.cluster.naming import Names, suffix_of
from graphkernel.cluster.own_products import prepared_operands
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.effects.tensor_inplace import is_read_evenly
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.graph import LEAVES, PARAMETER, Alias, Graph, Node, Value, keep

PASS_NAME = "assign_in_place"


@graph_pass
def assign_in_place(graph: Graph, context: Context) -> Graph:
    """Marks the results of kernels that lie in the memory of the inputs that they are assigned to."""
    wanted = _assigned(graph)
    if not wanted:
        return graph
    names = Names.beside(graph)
    changed: dict[Node, tuple[Graph, tuple[Value, ...]]] = {}
    for node, targets in wanted.items():
        found = dict(_stores(graph, node, node.body, targets)) if node.body is not None else {}
        if node.body is None or not found:
            continue
        body, more = _storing(node, node.body, found)
        changed[node] = names.named(body, suffix_of(node.body)), more
        for output, target in found.items():
            message = f"result {output}, {human(byte_size(target))}"
            context.log.add(PASS_NAME, "in-place", node.name, target.node.name, message)
    if not changed:
        return graph

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if node not in changed:
            return keep(node, args).outs
        body, more = changed[node]
        return replace(node, args=(*args, *more), body=body).outs

    return graph.rebuild(rewrite)


def _assigned(graph: Graph) -> dict[Node, dict[int, Value]]:
    """For each kernel that writes nothing in place so far: which of its results are assigned, and to which inputs.

    Kernels whose weights are laid out before all calls write nothing in place.
    """
    found: dict[Node, dict[int, Value]] = {}
    for alias in graph.aliases:
        result = graph.outputs[alias.output]
        node = result.node
        is_free = node.body is not None and not node.body.aliases and "composite_type" not in node.attrs
        if is_free and not prepared_operands(node):
            found.setdefault(node, {}).setdefault(result.index, graph.inputs[alias.input])
    return found


def _stores(graph: Graph, node: Node, body: Graph, targets: Mapping[int, Value]) -> Iterator[tuple[int, Value]]:
    """The results that the kernel can store at once: each reads its target evenly, or not at all."""
    memory = memories(graph)
    for output, target in targets.items():
        result = body.outputs[output]
        places = [place for place, arg in enumerate(node.args) if memory[arg] == target]
        is_one = all(node.args[place] == target and is_read_evenly(body, place) for place in places)
        if result.op not in LEAVES and body.outputs.count(result) == 1 and len(places) <= 1 and is_one:
            yield output, target


def _storing(node: Node, body: Graph, stores: Mapping[int, Value]) -> tuple[Graph, tuple[Value, ...]]:
    """The body that stores these results, and the operands that it is given besides."""
    more = tuple(target for target in stores.values() if target not in node.args)
    taken = {value.node.name for value in body.inputs}
    parameters: list[Value] = []
    for target in more:
        name = target.node.name
        while name in taken:
            name += "_"
        taken.add(name)
        parameters.append(Node(PARAMETER, (), Attrs(), (target.type,), name).out)
    args = (*node.args, *more)
    aliases = tuple(Alias(output, args.index(target)) for output, target in stores.items())
    return with_unique_labels(replace(body, inputs=(*body.inputs, *parameters), aliases=aliases)), more
