"""The pass constant_folding: operators on constants are computed at compile time, with their numpy meaning.

Before and after::

    c = Sqrt([4, 9]); y = Mul(x, c)    ==>    y = Mul(x, [2, 3])

A folded Exp or Tanh may differ from the device's in the last bit, which is why this starts at level 2.
"""

from __future__ import annotations

from graphkernel.cluster.extract import with_unique_labels
from graphkernel.ir.graph import Builder, Graph, Node, Value, keep
from graphkernel.passes.base import Context, graph_pass
from graphkernel.patterns.folding import folded, is_foldable


@graph_pass
def constant_folding(graph: Graph, context: Context) -> Graph:
    """Replaces operators whose operands are all known by their results, unless these are large and the operands are not."""
    builder = Builder()

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept = keep(node, args)
        if not is_foldable(kept):
            return kept.outs
        context.log.add(constant_folding.name, "folded", node.name, message=node.op.name)
        return folded(kept, builder)

    result = graph.rebuild(rewrite)
    return result if result is graph else with_unique_labels(result)
