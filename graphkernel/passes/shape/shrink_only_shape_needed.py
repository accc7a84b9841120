"""The pass shrink_only_shape_needed: what is computed only to be asked for its shape is not computed.

Before and after::

    a, b = K(x); s = Shape(b); return a, s       ==>    a = K(x); s = Shape(x); return a, s      b has the shape of x
    s = Shape(y)                                 ==>    s = [2, 3]                               y: f32[2, 3]
"""

from __future__ import annotations

from collections.abc import Mapping

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.passes.base import Context, graph_pass, map_bodies
from graphkernel.passes.redundant_output import eliminate_redundant_output
from kernelgen.tensor.dims import static_extents
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.creation import SHAPE


@graph_pass
def shrink_only_shape_needed(graph: Graph, context: Context) -> Graph:
    """Shape of static extents becomes a constant; Shape of a value that nothing else needs takes another of its shape.

    Another is the first value with the same extents, which often is an input. Results of kernels that only Shape used are
    dropped at once, so that the splitter does not see them.
    """

    def shrunk(body: Graph) -> Graph:
        return with_cheap_shapes(body, context)

    result = shrunk(map_bodies(graph, shrunk))
    return result if result is graph else eliminate_redundant_output(result, context)


def with_cheap_shapes(graph: Graph, context: Context) -> Graph:
    """One graph without its bodies."""
    builder = Builder()
    others = _stand_ins(graph)
    moved: dict[Value, Value] = {value: value for value in graph.inputs}

    def shape_of(node: Node, args: tuple[Value, ...]) -> Value:
        extents = static_extents(node.args[0].type.shape)
        if extents is not None:
            context.log.add(shrink_only_shape_needed.name, "folded", node.name, message="Shape of static extents")
            return builder.constant(extents, node.out.type.dtype)
        other = others.get(node.args[0])
        if other is None:
            return keep(node, args).out
        context.log.add(shrink_only_shape_needed.name, "shape-from-other", node.args[0].node.name, other.node.name)
        return keep(node, (moved[other],)).out

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        results = (shape_of(node, args),) if node.op is SHAPE else keep(node, args).outs
        moved.update(zip(node.outs, results, strict=True))
        return results

    result = graph.rebuild(rewrite)
    return result if result is graph else with_unique_labels(result)


def _stand_ins(graph: Graph) -> Mapping[Value, Value]:
    """For each computed value that only Shape uses, the value that gives the same answer, if there is one."""
    needed, asked = set(graph.outputs), list[Value]()
    for node in graph.operators:
        if node.op is SHAPE:
            asked.append(node.args[0])
        else:
            needed.update(node.args)
    found = {value: _same_shape(graph, value) for value in asked if value not in needed and not value.is_parameter}
    return {value: other for value, other in found.items() if other is not None}


def _same_shape(graph: Graph, value: Value) -> Value | None:
    """The first value of the same extents, when it is another one; what comes first cannot depend on the answer."""
    candidates = (other for node in graph.nodes for other in node.outs if other.type.shape == value.type.shape)
    first = next(candidates)
    return None if first == value else first
