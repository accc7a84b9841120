"""The pass eliminate_redundant_output: kernels give each value once, and only values that somebody uses.

Before and after::

    kernel K(x, y) { t = Exp(x); u = Log(x); return t, t, x, u }     a, b, c, d = K(p, q); return a, b, c
        ==>
    kernel K(x) { t = Exp(x); return t }                             a = K(p); return a, a, p
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import CONSTANT, Alias, Graph, Node, Value, keep
from kernelgen.tensor.types import Attrs


@graph_pass
def eliminate_redundant_output(graph: Graph, context: Context) -> Graph:
    """Drops unused, repeated and passed-through results of fused nodes, and the operands that then nobody needs."""
    used = {value for node in graph.nodes for value in node.args} | set(graph.outputs)
    tidied = {node: tidy for node in graph.operators if (tidy := _tidy(node, used)) is not None}
    if not tidied:
        return graph
    for value in (value for node in tidied for value in node.outs if value not in used):
        context.log.add(
            eliminate_redundant_output.name, "removed-unused", value.node.name, message=f"result {value.index}"
        )

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        return tidied[node].results(node, args) if node in tidied else keep(node, args).outs

    return with_unique_labels(graph.rebuild(rewrite))


@dataclass(frozen=True)
class _Tidy:
    """A body with fewer results and operands; ``operands`` are the kept positions, ``sources`` where old results come from."""

    body: Graph
    operands: tuple[int, ...]
    sources: tuple[Value, ...]

    def results(self, node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        """What stands for each old result, given the operands of the call."""
        assert node.body is not None
        known = dict(zip(node.body.inputs, args, strict=True))
        if self.body.outputs:
            types = tuple(value.type for value in self.body.outputs)
            operands = tuple(args[i] for i in self.operands)
            call = replace(node, args=operands, types=types, body=self.body, attrs=self.marks(node))
            known.update(zip(self.body.outputs, call.outs, strict=True))
        return tuple(known.get(source, source) for source in self.sources)

    def marks(self, node: Node) -> Attrs:
        """The attributes of the call; what parallel_fusion says of each result is said of those that are left."""
        info = node.attrs.get("parallel_dim_info")
        if not isinstance(info, tuple):
            return node.attrs
        first = {source: index for index, source in reversed(list(enumerate(self.sources)))}
        return node.attrs.with_(parallel_dim_info=tuple(info[first[value]] for value in self.body.outputs))


def _tidy(node: Node, used: set[Value]) -> _Tidy | None:
    """How a fused node can be smaller; None when it is no fused node or has nothing redundant."""
    body = node.body
    if body is None:
        return None
    stored = {body.outputs[alias.output]: alias.input for alias in body.aliases}
    if len(stored) < len(body.aliases) or any(_is_given(source, body) for source in stored):
        return None  # one value stored twice, or an operand stored elsewhere: copies that are meant
    needed = [source for value, source in zip(node.outs, body.outputs, strict=True) if value in used]
    outputs = tuple(dict.fromkeys(source for source in needed if not _is_given(source, body)))
    smaller = body if outputs == body.outputs else replace(body, outputs=outputs, aliases=())
    reached = {arg.node for inner in smaller.operators for arg in inner.args}
    reached.update(body.inputs[stored[source]].node for source in outputs if source in stored)
    kept = tuple(i for i, value in enumerate(body.inputs) if value.node in reached)
    if len(outputs) == len(body.outputs) and len(kept) == len(body.inputs):
        return None
    # unused results still need something to stand for them; nobody looks at it
    fallback = (*outputs, *needed)[0]
    sources = tuple(source if _is_given(source, body) or source in outputs else fallback for source in body.outputs)
    aliases = tuple(
        Alias(index, kept.index(stored[source])) for index, source in enumerate(outputs) if source in stored
    )
    inputs = tuple(body.inputs[i] for i in kept)
    return _Tidy(replace(smaller, inputs=inputs, aliases=aliases), kept, sources)


def _is_given(source: Value, body: Graph) -> bool:
    """True when the caller has the value already: an operand or a constant."""
    return source in body.inputs or source.op is CONSTANT
