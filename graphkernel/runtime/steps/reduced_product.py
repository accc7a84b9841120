"""Rows that are added up over ranks: those that are done are on their way while the next are computed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from graphkernel.communication.chunks import axis_of_rows, cut
from graphkernel.communication.communicator import Array, Communicator, Pending
from kernelgen.tensor.types import Attrs


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


def reduced_rows(
    over: Communicator, op: str, compute: Callable[[slice], None], rows: Array, out: Array, chunks: int
) -> InChunks:
    """Starts ``out``: the ``op`` over the ranks of ``over`` of ``rows``, some of which ``compute`` puts there each time.

    ``chunks`` is into how many parts they are cut, see :func:`graphkernel.communication.chunks.chunks_of`.
    """
    axis = axis_of_rows(out.shape)
    ours, sums = rows.reshape(rows.shape[axis:]), out.reshape(out.shape[axis:])  # the axes before have one element
    parts: deque[tuple[slice, Pending]] = deque()
    for part in cut(len(ours), chunks):
        compute(part)
        parts.append((part, over.all_reduce(ours[part], sums[part], op)))
    return InChunks(parts, rows)


def reduced_product(
    over: Communicator, attrs: Attrs, operands: Sequence[Array], out: Array, chunks: int = 1
) -> InChunks:
    """Starts ``out``: the sum (or op of ``attrs``) over the ranks of ``over`` of the product of two ``operands``, in so many
    ``chunks``.

    Narrow floats are multiplied in float32 and rounded once, before they are sent.
    """
    x, weight = operands
    left = x.swapaxes(-1, -2) if attrs.bool("transpose_a", False) else x
    right = weight.swapaxes(-1, -2) if attrs.bool("transpose_b", False) else weight
    if out.itemsize <= 2:
        left, right = left.astype(np.float32), right.astype(np.float32)
    product = np.empty_like(out)
    if left.ndim > 2 and right.ndim == 2 and not attrs.bool("transpose_a", False):
        compute = _rows_of(left.reshape(left.shape[axis_of_rows(out.shape) :]), right, product)
    elif left.ndim == right.ndim == 2:
        compute = _rows_of(left, right, product)
    else:
        compute = _all_at_first(left, right, product)

    return reduced_rows(over, attrs.str("op", "sum"), compute, product, out, chunks)


def _all_at_first(left: Array, right: Array, product: Array) -> Callable[[slice], None]:
    """What puts a product of batches into ``product`` before the first of its rows is sent."""

    def compute(rows: slice) -> None:
        if rows.start == 0:
            product[...] = np.matmul(left, right)

    return compute


def _rows_of(left: Array, right: Array, product: Array) -> Callable[[slice], None]:
    """What puts rows of a product with one matrix into ``product``; ``left`` has the axes from that of rows on."""
    whole = product.reshape(*left.shape[:-1], right.shape[-1])

    def compute(rows: slice) -> None:
        some, out = _matrix(left[rows]), _matrix(whole[rows])
        if some.dtype == out.dtype:
            np.matmul(some, right, out=out)
        else:
            out[...] = np.matmul(some, right)

    return compute


def _matrix(array: Array) -> Array:
    return array if array.ndim == 2 else array.reshape(prod(array.shape[:-1]), array.shape[-1])
