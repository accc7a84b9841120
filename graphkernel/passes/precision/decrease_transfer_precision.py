"""The pass decrease_transfer_precision: kernels hand float32 to one another as float16. Only with enable_low_precision.

Before and after::

    kernel P(x) { ...; return a }                  kernel P(x) { ...; return Cast(a, float16) }
    kernel C(b) { c = Exp(b); ... }      ==>       kernel C(b: f16) { c = Exp(Cast(b, float32)); ... }
    t: f32[N] = P(x); y = C(t)                     t: f16[N] = P(x); y = C(t)

Half the bytes travel; the value is rounded to 11 bits and numbers beyond 65504 become infinite. MindSpore's pass of this
name tests the users the wrong way round and never says that it changed something.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.cluster.naming import Names, suffix_of
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import PARAMETER, Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.reduce import REDUCE_SUM
from kernelgen.tensor.types import Attrs, TensorType, dtype

SMALLEST = 3  # operators; a Cast at each end of less would be most of the kernel
STORED, SENT = dtype("float32"), dtype("float16")


@graph_pass
def decrease_transfer_precision(graph: Graph, context: Context) -> Graph:
    """Rounds float32 results of kernels that only kernels read to float16, which the readers cast back.

    Both ends hold three operators or more and write nothing in place; the result is no sum, no input of the kernel and
    no output of the graph. Nothing happens without the flag enable_low_precision.
    """
    if not context.options.enable_low_precision:
        return graph
    sent = {value: None for node in graph.operators for value in node.outs if _may_shrink(graph, value)}
    if not sent:
        return graph
    for value in sent:
        context.log.add(decrease_transfer_precision.name, "precision-lowered", value.node.name)
    names = Names()

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if node.body is None:
            return keep(node, args).outs
        body = _renamed(_with_ends(node, node.body, sent), node.body, names)
        if body is node.body:
            return keep(node, args).outs
        return replace(node, args=args, body=body, types=tuple(value.type for value in body.outputs)).outs

    return with_unique_labels(graph.rebuild(rewrite))


def _may_shrink(graph: Graph, value: Value) -> bool:
    """True when a value may travel as float16: everyone who reads or writes it is a kernel that can afford it."""
    if value.type.dtype != STORED or not _can_cast(value.node) or value in graph.outputs:
        return False
    assert value.node.body is not None
    source = value.node.body.outputs[value.index]
    readers = [user for user in graph.users[value.node] if value in user.args]
    return (
        bool(readers)
        and source.node in value.node.body.operators
        and source.op is not REDUCE_SUM
        and all(map(_can_cast, readers))
    )


def _can_cast(node: Node) -> bool:
    body = node.body
    return body is not None and not body.aliases and len(body.operators) >= SMALLEST


def _with_ends(node: Node, body: Graph, sent: Mapping[Value, None]) -> Graph:
    """The body that takes and gives float16 where values travel so."""
    builder = Builder()
    widened: dict[Value, Value] = {}
    inputs: list[Value] = []
    for arg, taken in zip(node.args, body.inputs, strict=True):
        if arg in sent:
            narrow = Node(PARAMETER, (), Attrs(), (_narrow(taken.type),), taken.node.name).out
            widened[taken] = builder.node(CAST, (narrow,), Attrs.of(dst_type=STORED.name)).out
            inputs.append(narrow)
        else:
            inputs.append(taken)
    outputs = _substituted(body, widened) if widened else body.outputs
    given = tuple(
        builder.node(CAST, (inner,), Attrs.of(dst_type=SENT.name)).out if outer in sent else inner
        for outer, inner in zip(node.outs, outputs, strict=True)
    )
    if given == body.outputs:
        return body
    return with_unique_labels(replace(body, inputs=tuple(inputs), outputs=given))


def _narrow(type_: TensorType) -> TensorType:
    return type_.of_dtype(SENT)


def _substituted(body: Graph, values: Mapping[Value, Value]) -> tuple[Value, ...]:
    """The outputs with other values in place of some inputs."""

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        return keep(node, tuple(values.get(arg, arg) for arg in args)).outs

    return tuple(values.get(value, value) for value in body.rebuild(rewrite).outputs)


def _renamed(body: Graph, before: Graph, names: Names) -> Graph:
    """The body under a name of its own when it changed: two kernels of one name may have changed differently."""
    return before if body is before else names.named(body, f"low_precision_{suffix_of(before)}")
