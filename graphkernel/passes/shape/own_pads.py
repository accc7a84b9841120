"""The pass own_pads: what pads on a CPU is held by kernels.

Before and after::

    y = Pad(x, paddings=(a, b, c, d), value=v)    ==>    y = PadAkg(x, head=(a, c), tail=(b, d), pad_val=v)

It is the same operator: `Pad` is what a library runs, `PadAkg` what kernels hold, beside what makes ``x`` and what reads ``y``.
"""

from __future__ import annotations

from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import Builder, Graph, Node, Value
from kernelgen.tensor.operators.padding import PAD_AKG
from kernelgen.tensor.operators.pieces import PAD


@graph_pass
def own_pads(graph: Graph, context: Context) -> Graph:
    """Says every Pad as kernels hold it, unless flags keep it out of them."""
    options, builder = context.options, Builder()
    if PAD.name in options.disable_cluster_ops or options.enable_cluster_ops_only:
        return graph

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        ends = node.attrs.ints("paddings")
        attrs = {"head": ends[0::2], "tail": ends[1::2], "pad_val": node.attrs.get("value", 0.0)}
        return (builder.emit(PAD_AKG, *args, **attrs, name=node.name),)

    return graph.rebuild(rewrite, frozenset([node for node in graph.operators if node.op is PAD]))
