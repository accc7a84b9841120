"""The pass few_segments: a sum into a table of which few rows get anything is kept as those rows.

Before and after::

    g = UnsortedSegmentSum(x, ids, num_segments=N)    ==>    t = UnsortedSegmentSum(1, ids, num_segments=N) > 0
    m = 0.9 * m + 0.1 * g                                    place = CumSum(t) * t                 0: nothing is added here
                                                             s = UnsortedSegmentSum(x, place[ids], num_segments=M + 1)
                                                             m = 0.9 * m + 0.1 * s[place]

The gradient of a table of words is such a sum: 256 tokens reach at most 256 of 30522 rows. Stored whole it is cleared, added
to, and read again by the update, which reads every row of the table and its moments anyway: an optimizer whose moments decay
changes all of them. Now the update takes a row of the few sums, or 0.

Correct, since M ids name at most M segments: ``place[r]`` is in 1 .. M where an id is ``r``, another for each, and 0 elsewhere,
where nothing is added. An id out of range has the place -1, which is added nowhere, as before. The terms of a segment are
added in the same order, so that results are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from graphkernel.passes.base import Context, graph_pass
from kernelgen.tensor.graph import Builder, Graph, Node, Value
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.elemwise import MAXIMUM, MINIMUM, MUL
from kernelgen.tensor.operators.indexing import GATHER
from kernelgen.tensor.operators.scan import CUM_SUM
from kernelgen.tensor.operators.scatter import UNSORTED_SEGMENT_SUM
from kernelgen.tensor.operators.select import EQUAL, GREATER, SELECT

LEAST_BYTES = 1 << 20
"""Of a sum: the second cache keeps a smaller one until it is read."""

LEAST_TIMES = 4
"""The segments for each id: with fewer, most of the table is made anyway."""


@graph_pass
def few_segments(graph: Graph, context: Context) -> Graph:
    """Sums whose readers take them element by element read the rows that occur."""
    found = frozenset(node for node in graph.operators if _has_few(node, graph.users[node], graph.output_nodes))
    if not found:
        return graph
    builder, places = Builder(), dict[tuple[Value, int], Value]()

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        x, ids = args
        segments = node.attrs.int("num_segments")
        if (ids, segments) not in places:
            places[ids, segments] = _places(builder, ids, segments, node.name)
        place = places[ids, segments]
        context.log.add(few_segments.name, "few-segments", node.name, message=f"{ids.type.shape[0]} of {segments} rows")
        return (_rows(builder, x, ids, place, node),)

    return graph.rebuild(rewrite, found)


def _has_few(node: Node, users: Iterable[Node], outputs: frozenset[Node]) -> bool:
    """Whether a sum is large, of few ids, and read by operators on its elements alone."""
    if node.op is not UNSORTED_SEGMENT_SUM or node in outputs:
        return False
    size, (count, *more), segments = node.out.type.size, node.args[1].type.shape, node.out.type.shape[0]
    if more or not (isinstance(size, int) and isinstance(count, int) and isinstance(segments, int)):
        return False
    if size * node.out.dtype.itemsize < LEAST_BYTES or count * LEAST_TIMES > segments:
        return False
    return all(user.op.kind is Kind.ELEMWISE and user.types[0].shape == node.out.type.shape for user in users)


def _places(builder: Builder, ids: Value, segments: int, name: str) -> Value:
    """Which row each segment has among the sums, as int32; 0 where there is none."""
    ones = builder.constant(np.ones(_count(ids), np.int32))
    times = builder.emit(UNSORTED_SEGMENT_SUM, ones, ids, num_segments=segments, name=f"{name}_times")
    there = builder.emit(GREATER, times, builder.constant(np.zeros((), np.int32)), name=f"{name}_there")
    one = builder.emit(CAST, there, dst_type="int32", name=f"{name}_one")
    return builder.emit(MUL, builder.emit(CUM_SUM, one, axis=0, name=f"{name}_rank"), one, name=f"{name}_places")


def _rows(builder: Builder, x: Value, ids: Value, places: Value, node: Node) -> Value:
    """What readers of all segments read: the sum of ``x`` by ``ids`` where there is one, else the row of zeros."""
    least, most = (builder.constant(np.asarray(number, ids.dtype.numpy)) for number in (0, _count(places) - 1))
    inside = builder.emit(MINIMUM, builder.emit(MAXIMUM, ids, least), most, name=f"{node.name}_inside")
    place = builder.emit(GATHER, places, inside, axis=0, name=f"{node.name}_place")
    is_inside = builder.emit(EQUAL, ids, inside, name=f"{node.name}_is_inside")
    mine = builder.emit(SELECT, is_inside, place, builder.constant(np.full((), -1, np.int32)), name=f"{node.name}_mine")
    sums = builder.emit(UNSORTED_SEGMENT_SUM, x, mine, num_segments=_count(ids) + 1, name=f"{node.name}_few")
    return builder.emit(GATHER, sums, places, axis=0, name=node.name)


def _count(vector: Value) -> int:
    (count,) = vector.type.shape
    assert isinstance(count, int)
    return count
