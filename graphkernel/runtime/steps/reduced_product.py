"""A matrix product that is added up over ranks: the rows that are done are on their way while the next are computed.

All ranks cut the rows alike: into how many chunks follows from shapes and from figures of no particular machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from graphkernel.communication.communicator import Array, Communicator, Pending
from kernelgen.tensor.types import Attrs

MOST_CHUNKS = 16


@dataclass(frozen=True)
class Costs:
    """What decides about chunks: multiplications in a second, elements of the second operand that a library lays out anew for
    each chunk in a second, seconds before a transfer begins and to call for a chunk, and bytes in a second. The defaults are
    those of one core and of a link of 10 Gbit/s; being wrong costs time alone."""

    products: float = 2e10
    layout: float = 2e9
    latency: float = 5e-5
    call: float = 5e-6
    bandwidth: float = 1.2e9


TYPICAL = Costs()


def chunks_of(rows: int, inner: int, columns: int, itemsize: int, costs: Costs = TYPICAL) -> int:
    """Into how many chunks of rows a product of [rows, inner] and [inner, columns] of ``itemsize`` bytes is cut.

    With k chunks the first is computed and the last is sent alone; between them the slower of both decides. ``costs`` says
    what is slow.
    """

    def seconds(count: int) -> float:
        part = -(-rows // count)
        compute = part * inner * columns / costs.products + inner * columns / costs.layout + costs.call
        send = part * columns * itemsize / costs.bandwidth + costs.latency
        return compute + (count - 1) * max(compute, send) + send

    return min(range(1, max(1, min(MOST_CHUNKS, rows)) + 1), key=seconds)


class _All(NamedTuple):
    """Several transfers, with the memory that they read."""

    parts: Sequence[Pending]
    product: Array

    def wait(self) -> None:
        """Waits for all of them, in the order in which they were started."""
        for part in self.parts:
            part.wait()


def reduced_product(
    over: Communicator, attrs: Attrs, operands: Sequence[Array], out: Array, chunks: int | None = None
) -> Pending:
    """Starts ``out``: the sum (or op of ``attrs``) over the ranks of ``over`` of the product of two ``operands``.

    ``chunks`` is into how many parts of rows it is cut, by default as :func:`chunks_of` says. Narrow floats are multiplied
    in float32 and rounded once, before they are sent.
    """
    x, weight = operands
    if x.ndim > 2 and weight.ndim == 2 and not attrs.bool("transpose_a", False):
        x, out = x.reshape(-1, x.shape[-1]), out.reshape(-1, out.shape[-1])
    left = x.swapaxes(-1, -2) if attrs.bool("transpose_a", False) else x
    right = weight.swapaxes(-1, -2) if attrs.bool("transpose_b", False) else weight
    if left.ndim > 2 or right.ndim > 2:  # batches are cut nowhere
        product = _multiplied(left, right, out.dtype)
        return _All((over.all_reduce(product, out, attrs.str("op", "sum")),), product)
    count = chunks or chunks_of(len(left), left.shape[1], right.shape[1], out.itemsize)
    product = np.empty_like(out)
    parts: list[Pending] = []
    for rows in _cut(len(left), count):
        _multiply(left[rows], right, product[rows])
        parts.append(over.all_reduce(product[rows], out[rows], attrs.str("op", "sum")))
    return _All(parts, product)


def _cut(rows: int, count: int) -> Iterator[slice]:
    step = max(1, -(-rows // count))
    yield from (slice(first, min(first + step, rows)) for first in range(0, max(rows, 1), step))


def _multiply(left: Array, right: Array, out: Array) -> None:
    if out.dtype.itemsize > 2:
        np.matmul(left, right, out=out)
    else:
        out[...] = _multiplied(left, right, out.dtype)


def _multiplied(left: Array, right: Array, of: np.dtype[Any]) -> Array:
    """The product in a data type, of narrow floats by way of float32."""
    wide = (left, right) if of.itemsize > 2 else (left.astype(np.float32), right.astype(np.float32))
    return np.ascontiguousarray(np.matmul(*wide).astype(of))
