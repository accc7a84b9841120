"""The pass padded_windows: a convolution pads its image itself.

Before and after::

    p = Pad(x, (0, 0, 0, 0, a, b, c, d))      ==>    y = Conv2D(x, w, pad=(a + s, b + t, c + u, d + v))
    y = Conv2D(p, w, pad=(s, t, u, v))

Exporters write so what reads only the past, and what one library pads at one end: ``F.pad(x, (2, 0))`` before a convolution.
Both add zeros, and a sum over a window does not say from whom.
"""

from __future__ import annotations

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.passes.base import Context, graph_pass
from graphkernel.passes.format.layouts import IMAGE
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep
from kernelgen.tensor.operators.nn import CONV2D, is_nhwc
from kernelgen.tensor.operators.pieces import PAD


@graph_pass
def padded_windows(graph: Graph, context: Context) -> Graph:
    """Adds margins of zeros around rows and columns to those of the convolutions that read them."""
    del context
    if not any(node.op is PAD for node in graph.operators):
        return graph
    builder = Builder()

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        margins = _margins(args[0])
        if margins is None:
            return keep(node, args).outs
        pad = zip(node.attrs.ints("pad", (0, 0, 0, 0)), margins, strict=True)
        attrs = node.attrs.with_(pad=tuple(own + more for own, more in pad))
        return builder.node(CONV2D, (args[0].node.args[0], *args[1:]), attrs, node.name).outs

    convolutions = frozenset([node for node in graph.operators if node.op is CONV2D and not is_nhwc(node.attrs)])
    made = graph.rebuild(rewrite, convolutions)
    return made if made is graph else with_unique_labels(made)


def _margins(value: Value) -> tuple[int, ...] | None:
    """How many zeros a Pad puts before and behind rows and columns; None where ``value`` is none, or pads something else."""
    if value.op is not PAD or value.type.rank != IMAGE or value.node.attrs.get("value", 0.0) != 0:
        return None
    ends = value.node.attrs.ints("paddings")
    return None if any(ends[:4]) else ends[4:]
