"""The pass constant_folding: operators on constants are computed at compile time, with their numpy meaning.

Before and after::

    c = Sqrt([4, 9]); y = Mul(x, c)    ==>    y = Mul(x, [2, 3])

Every operator folds by its own meaning; a division by zero gives what numpy gives. Large results of small operands stay
operators (:data:`graphkernel.patterns.folding.SMALL`), and so does what has no meaning for these numbers, such as an
integer to a negative power. A folded Exp or Tanh may differ from the device's in the last bit, which is why this starts at
level 2.
"""

from __future__ import annotations

from graphkernel.cluster.fuse_nodes import with_unique_labels
from graphkernel.passes.base import Context, graph_pass, map_bodies
from graphkernel.patterns.folding import folded, is_foldable
from kernelgen.tensor.evaluation.computed import Allowance
from kernelgen.tensor.graph import Builder, Graph, Node, Value, keep

PASS_NAME = "constant_folding"


@graph_pass
def constant_folding(graph: Graph, context: Context) -> Graph:
    """Replaces operators whose operands are all known by their results, in the graph and inside every kernel body."""

    def fold(body: Graph) -> Graph:
        return _folded(body, context) if body.inputs else body  # without operands it is there to fill memory

    return _folded(map_bodies(graph, fold), context)


def _folded(graph: Graph, context: Context) -> Graph:
    """One graph without its bodies."""
    builder = Builder()
    allowance = Allowance.beside(node.data.nbytes for node in graph.nodes if node.data and node.data.is_known)

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept = keep(node, args)
        results = folded(kept, builder) if is_foldable(kept) and not allowance.is_spent else None
        if results is None:
            return kept.outs
        allowance.take(value.node.data.nbytes for value in results if value.node.data is not None)
        context.log.add(PASS_NAME, "folded", node.name, message=node.op.name)
        return results

    result = graph.rebuild(rewrite)
    return result if result is graph else with_unique_labels(result)
