"""A matrix product that is added up over ranks: the rows that are done are on their way while the next are computed.

All ranks cut the rows alike: into how many chunks follows from the result's shape and from figures of no particular machine.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from graphkernel.communication.communicator import Array, Communicator, Pending
from kernelgen.tensor.types import Attrs

MOST_CHUNKS = 16


@dataclass(frozen=True)
class Costs:
    """What decides about chunks: bytes in a second, and what one more chunk costs, seconds: a transfer that begins, a call, and
    what a library lays out anew. The defaults are those of a link of 10 Gbit/s; being wrong costs time alone."""

    bandwidth: float = 1.2e9
    chunk: float = 2e-4


TYPICAL = Costs()


def chunks_of(rows: int, columns: int, itemsize: int, costs: Costs = TYPICAL) -> int:
    """Into how many chunks of rows a product of [rows, columns] elements of ``itemsize`` bytes is cut.

    k chunks leave a k-th of the transfer that overlaps nothing, and cost k times what a chunk costs; the best is between.
    What is added up to an element is none of it: ranks may hold unlike parts of that.
    """
    seconds = rows * columns * itemsize / costs.bandwidth
    return max(1, min(MOST_CHUNKS, rows, round(sqrt(seconds / costs.chunk))))


class InChunks(NamedTuple):
    """Transfers of rows that were started and not waited for, with the memory that they read."""

    parts: deque[tuple[slice, Pending]]
    product: Array

    def rows(self) -> Iterator[slice]:
        """The rows that come, as they come, in the order in which they were started."""
        while self.parts:
            self.parts[0][1].wait()
            yield self.parts.popleft()[0]

    def wait(self) -> None:
        """Waits for all that nobody has waited for."""
        for _ in self.rows():
            pass


def reduced_product(
    over: Communicator, attrs: Attrs, operands: Sequence[Array], out: Array, chunks: int = 1
) -> Pending:
    """Starts ``out``: the sum (or op of ``attrs``) over the ranks of ``over`` of the product of two ``operands``.

    ``chunks`` is into how many parts of rows it is cut, see :func:`chunks_of`. Narrow floats are multiplied
    in float32 and rounded once, before they are sent.
    """
    x, weight = operands
    if x.ndim > 2 and weight.ndim == 2 and not attrs.bool("transpose_a", False):
        x, out = x.reshape(-1, x.shape[-1]), out.reshape(-1, out.shape[-1])
    left = x.swapaxes(-1, -2) if attrs.bool("transpose_a", False) else x
    right = weight.swapaxes(-1, -2) if attrs.bool("transpose_b", False) else weight
    if left.ndim > 2 or right.ndim > 2:  # batches are cut nowhere
        product = _multiplied(left, right, out.dtype)
        whole = over.all_reduce(product, out, attrs.str("op", "sum"))
        return InChunks(deque([(slice(None), whole)]), product)
    product = np.empty_like(out)
    parts: deque[tuple[slice, Pending]] = deque()
    if out.itemsize <= 2:
        left, right = left.astype(np.float32), right.astype(np.float32)
    for rows in _cut(len(left), chunks):
        _multiply(left[rows], right, product[rows])
        parts.append((rows, over.all_reduce(product[rows], out[rows], attrs.str("op", "sum"))))
    return InChunks(parts, product)


def _cut(rows: int, count: int) -> Iterator[slice]:
    step = max(1, -(-rows // count))
    yield from (slice(first, min(first + step, rows)) for first in range(0, max(rows, 1), step))


def _multiply(left: Array, right: Array, out: Array) -> None:
    if left.dtype == out.dtype:
        np.matmul(left, right, out=out)
    else:
        out[...] = np.matmul(left, right)


def _multiplied(left: Array, right: Array, of: np.dtype[Any]) -> Array:
    """The product in a data type, of narrow floats by way of float32."""
    wide = (left, right) if of.itemsize > 2 else (left.astype(np.float32), right.astype(np.float32))
    return np.ascontiguousarray(np.matmul(*wide).astype(of))
