"""Operators whose extents are symbols: one kernel for all sizes, compared with the same operator of known extents."""

import kernel_examples as examples
import numpy as np
import pytest
from operator_cases import numbers

import kernelgen
from kernelgen.composite.check import check
from kernelgen.composite.document import Operation
from kernelgen.composite.specialize import specialize
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import evaluate, sym

N, M, K = sym("n"), sym("m"), sym("k")


def kernel(op, shapes, result, **attrs):
    w, inputs = examples.Writer(), tuple(examples.tensor(f"x{k}", *shape) for k, shape in enumerate(shapes))
    return w, inputs, w.op(op, *inputs, shape=result, **attrs)


def tile():
    w, inputs, y = kernel("Tile", [(N, M)], (2 * N, 3 * M), multiples=(2, 3))
    return w.desc("tile", inputs, y)


def tile_by_a_symbol():
    w, inputs, y = kernel("Tile", [(N, M)], (K * N, M), multiples=(K, 1))
    extra = examples.tensor("e", K)
    return w.desc("tile_by", (*inputs, extra), y, w.op("Neg", extra, shape=(K,)))


def pad_of_a_tile():
    w, inputs, y = kernel("Tile", [(N,)], (3 * N,), multiples=(3,))
    return w.desc("pad_tile", inputs, w.op("PadAkg", y, shape=(3 * N + 1,), head=(1,), tail=(0,), pad_val=0.5))


def reshape_that_does_not_line_up():
    w, inputs, y = kernel("Exp", [(N, M)], (N, M))
    turned = w.op("Reshape", y, shape=(M, N))
    return w.desc(
        "reshape", inputs, w.op("ReduceMax", turned, shape=(M,), axis=(1,)), w.op("ReduceSum", y, shape=(N,), axis=(1,))
    )


def row_of_pieces_as_a_matrix():
    """The pieces lie in rows only once they are one: a place in the row is the product of a number and a symbol."""
    w, inputs, y = kernel("Concat", [(2 * N,), (N,), (N,)], (4 * N,), axis=0)
    return w.desc("pieces", inputs, w.op("Neg", w.op("Reshape", y, shape=(4, N)), shape=(4, N)))


def split_by_number():
    w, (x,) = examples.Writer(), (examples.tensor("x", 3 * N, M),)
    parts = tuple(examples.tensor(f"y{k}", N, M) for k in range(3))
    w.ops.append(Operation("Split", (x,), parts, Attrs.of(axis=0, num_split=3, output_num=3)))
    return w.desc("split", (x,), *parts)


def grouped_convolution():
    w, inputs, y = kernel("Conv2D", [(1, 2 * N, 5, 4), (2 * M, N, 2, 3)], (1, 2 * M, 4, 2), stride=(1, 1), group=2)
    return w.desc("conv", inputs, y)


def blocked_convolution():
    w, inputs, y = kernel("Conv2D", [(N, M, 3, 4, 2), (K, M, 2, 3, 2, 3)], (N, K, 2, 2, 3), stride=(1, 1))
    return w.desc("blocked", inputs, y)


def mean_of_an_image():
    attrs = {"pool_type": "avg", "global": True, "data_layout": "NCHW"}
    w, inputs, y = kernel("Pool2D", [(N, 3, M, K)], (N, 3, 1, 1), **attrs)
    return w.desc("pool", inputs, y)


def all_but_an_end():
    w, inputs, y = kernel(
        "StridedSlice", [(N, M)], (N - 1, M - 1), begin=(1, 0), end=(0, -1), strides=(1, 1), end_mask=1
    )
    return w.desc("slice", inputs, y)


def rows_of_a_product():
    w, inputs, y = kernel("MatMul", [(4 * N, M), (M, 3)], (4 * N, 3))
    return w.desc("rows", inputs, y)


SIZES = ({"n": 1, "m": 1, "k": 1}, {"n": 2, "m": 3, "k": 5}, {"n": 7, "m": 4, "k": 2}, {"n": 9, "m": 17, "k": 3})
CASES = [
    tile, tile_by_a_symbol, pad_of_a_tile, reshape_that_does_not_line_up, row_of_pieces_as_a_matrix, split_by_number,
    grouped_convolution, blocked_convolution, mean_of_an_image, all_but_an_end, rows_of_a_product,
]  # fmt: skip


@pytest.mark.parametrize("target", ["python", "cpu"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_one_kernel_serves_all_sizes(case, target):
    desc = check(case())
    compiled = kernelgen.compile(desc, target=target)
    for sizes in SIZES:
        inputs = [numbers(k, tuple(evaluate(d, sizes) for d in t.shape)) for k, t in enumerate(desc.inputs)]
        for one, other in zip(compiled(*inputs), kernelgen.reference(specialize(desc, sizes))(*inputs), strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
