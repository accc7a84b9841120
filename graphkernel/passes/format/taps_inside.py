"""A convolution whose windows reach far beyond their image, as a sum of products: one of each tap, of the pixels that it sees.

Rows of DeepLab's windows lie 12, 24 or 36 pixels apart, in images of 14 to 65: most of their taps see what padding put there.
For tap ``t``, which lies ``o`` behind its result::

    y[p] = sum over t with 0 <= p + o[t] < extent of x[p + o[t]] w[t]

Each term is a product of ours, over those ``p`` alone; a tap that sees nothing anywhere is not there. One kernel adds them,
each in its place, with all that follows. (Atrous convolution: Chen et al., DeepLab, 2017.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from graphkernel.passes.format.layouts import FLOAT, PLAIN_PRODUCT
from kernelgen.tensor.graph import Builder, Node, Value
from kernelgen.tensor.operators.elemwise import ADD
from kernelgen.tensor.operators.matmul import BATCH_MATMUL
from kernelgen.tensor.operators.padding import PAD_AKG
from kernelgen.tensor.operators.pieces import STRIDED_SLICE
from kernelgen.tensor.types import TensorType


def sum_of_taps(node: Node, image: Value, weights: Value, builder: Builder) -> Value:
    """What a ``node``, a convolution in steps of one, makes of an ``image`` with channels last and constant ``weights`` in
    OIHW, by a ``builder``; one tap at least sees a pixel.
    """
    rows, columns = (list(_seen(node, axis)) for axis in range(2))
    return reduce(
        lambda total, term: builder.emit(ADD, total, term),
        (_term(node, (row, column), image, weights, builder) for row in rows for column in columns),
    )


@dataclass(frozen=True)
class _Seen:
    """Along one axis the results for which a ``tap`` sees pixels, the first of those, and how many results are behind."""

    tap: int
    results: range
    first: int
    behind: int


def _seen(node: Node, axis: int) -> Iterator[_Seen]:
    """Of each tap that sees anything."""
    extent, window, count = (
        int(str(value.type.shape[2 + axis])) for value in (node.args[0], node.args[1], node.out)
    )  # fmt: skip
    before, step = node.attrs.ints("pad", (0, 0, 0, 0))[2 * axis], node.attrs.ints("dilation", (1, 1))[axis]
    for tap in range(window):
        offset = tap * step - before
        results = range(max(0, -offset), min(count, extent - offset))
        if results:
            yield _Seen(tap, results, results.start + offset, count - results.stop)


def _term(node: Node, seen: tuple[_Seen, _Seen], image: Value, weights: Value, builder: Builder) -> Value:
    """The products of one tap, with zeros where it sees nothing."""
    count, *_, channels = image.type.shape
    begin, sizes = tuple(along.first for along in seen), tuple(len(along.results) for along in seen)
    ends = (first + size for first, size in zip(begin, sizes, strict=True))
    pixels = builder.emit(
        STRIDED_SLICE, image, begin=(0, *begin, 0), end=(count, *ends, channels), strides=(1, 1, 1, 1)
    )
    matrix = TensorType((channels, weights.type.shape[0]), FLOAT)
    taps = tuple(along.tap for along in seen)
    held = builder.derived(_Tap(*taps), weights, of=matrix)
    name = "_".join([node.name, *map(str, taps)])
    products = builder.emit(BATCH_MATMUL, pixels, held, name=name, **PLAIN_PRODUCT)
    head, tail = (along.results.start for along in seen), (along.behind for along in seen)
    return builder.emit(PAD_AKG, products, head=(0, *head, 0), tail=(0, *tail, 0), pad_val=0.0, own_kernel=True)


@dataclass(frozen=True)
class _Tap:
    """Of weights [O, I, H, W] those [I, O] of one tap."""

    row: int
    column: int

    def __call__(self, weights: np.ndarray) -> np.ndarray:
        found = np.ascontiguousarray(weights[:, :, self.row, self.column].T)
        found.setflags(write=False)
        return found
