"""Into how many parts the rows of a sum over ranks are cut, some of which are on their way while others are computed.

All ranks cut alike: what decides is the result's shape and figures of no particular machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod, sqrt
from typing import NamedTuple

from kernelgen.tensor.dims import Dim

MOST_CHUNKS = 16


class Costs(NamedTuple):
    """What decides about chunks: bytes in a second, and what one more chunk costs, seconds: a transfer that begins, a call, and
    what a library lays out anew. The defaults are those of a link of 10 Gbit/s; being wrong costs time alone."""

    bandwidth: float = 1.2e9
    chunk: float = 2e-4


TYPICAL = Costs()


def axis_of_rows(shape: Sequence[Dim]) -> int:
    """The axis that rows of an array are counted along: the first of more than one element, but for the last one.

    So many rows lie in one piece of memory, since the axes before have one element.
    """
    return next((axis for axis, extent in enumerate(shape[:-1]) if extent != 1), 0)


def chunks_of(shape: Sequence[int], itemsize: int, costs: Costs = TYPICAL) -> int:
    """Into how many chunks of rows a result of this ``shape``, of elements of ``itemsize`` bytes, is cut.

    k chunks leave a k-th of the transfer that overlaps nothing, and cost k times what a chunk costs; the best is between.
    What is added up to an element is none of it: ranks may hold unlike parts of that.
    """
    seconds = prod(shape) * itemsize / costs.bandwidth
    rows = shape[axis_of_rows(shape)] if shape else 1
    return max(1, min(MOST_CHUNKS, rows, round(sqrt(seconds / costs.chunk))))


def cut(rows: int, count: int) -> Iterator[slice]:
    """``count`` slices of so many rows, in their order; one of nothing where there are no rows."""
    step = max(1, -(-rows // count))
    yield from (slice(first, min(first + step, rows)) for first in range(0, max(rows, 1), step))
