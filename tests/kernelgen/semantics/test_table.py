"""Every operator that is not element-wise, on numbers small enough to follow by hand."""

from typing import Any

import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

from kernelgen.composite.description import Tensor
from kernelgen.composite.document import Operation
from kernelgen.errors import UnsupportedError
from kernelgen.semantics import reference
from kernelgen.semantics.layout import from_fractal, to_fractal
from kernelgen.tensor.dtypes import BOOL, COMPLEX64, FLOAT32, INT32, dtype


def run(name, *arrays, shape, dtype_=None, formats=(), constants=(), **attrs: Any):
    """Computes one operator on arrays of float32, int32, bool or complex64."""
    arrays = [np.asarray(a) for a in arrays]
    arrays = [a.astype({"f": np.float32, "i": np.int32}.get(a.dtype.kind, a.dtype)) for a in arrays]
    formats = formats or ("DefaultFormat",) * len(arrays)
    inputs = tuple(
        Tensor(f"x{i}", a.shape, dtype(a.dtype), f) for i, (a, f) in enumerate(zip(arrays, formats, strict=True))
    )
    w = Writer()
    y = w.op(name, *inputs, *constants, shape=shape, dtype=dtype_, **attrs)
    return reference(w.desc("k", inputs, y))(*arrays)[0]


M = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_reductions():
    assert run("ReduceSum", M, shape=(3,), axis=1).tolist() == [6, 22, 38]
    assert run("ReduceSum", M, shape=(1,), axis=()).tolist() == [66]
    assert run("ReduceMax", M, shape=(1, 4), axis=(0,), keep_dims=True).tolist() == [[8, 9, 10, 11]]
    assert run("ReduceMin", M, shape=(3,), axis=(-1,)).tolist() == [0, 4, 8]
    assert run("ReduceProd", M[1:], shape=(2,), axis=(1,)).tolist() == [840, 7920]
    assert run("ReduceAll", M > 0, shape=(3,), axis=(1,)).tolist() == [False, True, True]
    assert run("ReduceAny", M > 9, shape=(4,), axis=(0,)).tolist() == [False, False, True, True]


def test_nan_wins_in_maximum():
    assert np.isnan(run("ReduceMax", [1.0, np.nan, 2.0], shape=(1,), axis=(0,)))[0]


def test_integers_wrap_around_in_their_own_type():
    big = np.asarray([2**31 - 1, 1], np.int32)
    assert run("ReduceSum", big, shape=(1,), axis=(0,)).tolist() == [-(2**31)]


def test_elem_any_is_any():
    found = run("ElemAny", np.asarray([False, True]), shape=(1,), dtype_=FLOAT32)
    assert found.tolist() == [1]
    assert run("ElemAll", np.asarray([False, True]), shape=(1,), dtype_=FLOAT32).tolist() == [0]


def test_positions_of_extremes():
    assert run("Argmax", M, shape=(3,), dtype_=INT32, axis=-1).tolist() == [3, 3, 3]
    assert run("Argmin", M, shape=(4,), dtype_=INT32, axis=0).tolist() == [0, 0, 0, 0]


def test_scans():
    x = [1.0, 2.0, 3.0]
    assert run("CumSum", x, shape=(3,), axis=0).tolist() == [1, 3, 6]
    assert run("CumSum", x, shape=(3,), axis=0, exclusive=True).tolist() == [0, 1, 3]
    assert run("CumSum", x, shape=(3,), axis=0, reverse=True).tolist() == [6, 5, 3]
    assert run("CumProd", x, shape=(3,), axis=0, exclusive=True, reverse=True).tolist() == [6, 3, 1]


def test_moving_elements():
    np.testing.assert_array_equal(run("Transpose", M, shape=(4, 3), perm=(1, 0)), M.T)
    np.testing.assert_array_equal(run("Tile", M[0], shape=(8,), multiples=(2,)), np.tile(M[0], 2))
    np.testing.assert_array_equal(run("Concat", M, M, shape=(3, 8), axis=-1), np.concatenate([M, M], 1))
    np.testing.assert_array_equal(run("BroadcastTo", M[:1], shape=(2, 3, 4)), np.broadcast_to(M[0], (2, 3, 4)))
    assert run("PadAkg", [[1.0]], shape=(2, 3), head=(0, 1), tail=(1, 1), pad_val=7).tolist() == [[7, 1, 7], [7, 7, 7]]
    assert run("UnPadAkg", M, shape=(2, 4), tail=(1, 0)).tolist() == M[:2].tolist()


def test_split_follows_the_described_parts():
    x, parts = tensor("x", 5), (tensor("a", 2), tensor("b", 3))
    w = Writer()
    w.ops.append(Operation("Split", (x,), parts))
    a, b = reference(w.desc("k", (x,), *parts))(np.arange(5, dtype=np.float32))
    assert (a.tolist(), b.tolist()) == ([0, 1], [2, 3, 4])


def test_strided_slices():
    def cut(shape, **attrs):
        return run("StridedSlice", M, shape=shape, **attrs).tolist()

    assert cut((1, 2), begin=(1, 0), end=(2, 4), strides=(1, 2)) == [[4, 6]]
    assert cut((4,), begin=(1, 0), end=(2, 4), strides=(1, 1), shrink_axis_mask=1) == [4, 5, 6, 7]
    assert cut((3, 2), begin=(1, 2), end=(2, 4), strides=(1, 1), begin_mask=1, end_mask=1) == [[2, 3], [6, 7], [10, 11]]
    assert cut((3, 1), begin=(0, 3), end=(0, 4), strides=(1, 1), ellipsis_mask=1) == [[3], [7], [11]]
    assert cut((1, 3, 4), begin=(0, 0), end=(0, 3), strides=(1, 1), new_axis_mask=1) == [M.tolist()]
    assert cut((3, 4), begin=(0, -1), end=(3, -5), strides=(1, -1)) == M[:, ::-1].tolist()
    found = run("StridedSliceV2", M, shape=(3, 2), begin=(1,), end=(3,), strides=(1,), axes=(1,))
    assert found.tolist() == M[:, 1:3].tolist()
    assert run("Slice", M, shape=(2, 3), begin=(1, 1), size=(2, -1)).tolist() == M[1:, 1:].tolist()


def test_gather_reads_zero_out_of_range():
    assert run("Gather", M, [2, -1, 3, 0], shape=(4, 4), axis=0).tolist() == [
        [8, 9, 10, 11],
        [0] * 4,
        [0] * 4,
        [0, 1, 2, 3],
    ]
    assert run("Gather", M, [[1], [9]], shape=(3, 2, 1), axis=1)[:, :, 0].tolist() == [[1, 0], [5, 0], [9, 0]]
    assert run("GatherNd", M, [[1, 2], [3, 0]], shape=(2,)).tolist() == [6, 0]


def test_scatters_skip_what_is_out_of_range_and_add_repeated_ids():
    found = run("TensorScatterAdd", [0.0, 0.0, 0.0], [[1], [1], [5]], [1.0, 2.0, 4.0], shape=(3,))
    assert found.tolist() == [0, 3, 0]
    data = [[[1.0], [2.0]], [[3.0], [4.0]]]
    found = run("UnsortedSegmentSum", data, [[0, 1], [1, 7]], shape=(2, 1), num_segments=2)
    assert found.tolist() == [[1], [5]]


def test_one_hot():
    on_off = (constant(5.0), constant(2.0))
    shape = (2, 3)
    found = run("OneHot", [2, -1], shape=shape, dtype_=FLOAT32, constants=on_off, depth=3, axis=-1)
    assert found.tolist() == [[2, 2, 5], [2, 2, 2]]
    found = run("OneHot", [2, -1], shape=(3, 2), dtype_=FLOAT32, constants=on_off, depth=3, axis=0)
    assert found.tolist() == [[2, 2], [2, 2], [5, 2]]


def test_products_of_matrices():
    right = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(run("MatMul", M, right, shape=(3, 2), transpose_b=True), M @ right.T)
    np.testing.assert_array_equal(
        run("MatMul", M.T, right.T, [1.0, 2.0], shape=(3, 2), transpose_a=True), M @ right.T + [1, 2]
    )


def test_products_of_blocked_matrices():
    left = np.arange(32 * 16, dtype=np.float32).reshape(32, 16) % 7
    right = np.arange(48 * 16, dtype=np.float32).reshape(48, 16) % 5
    w, nz = Writer(), "FRACTAL_NZ"
    x, y = Tensor("x", (1, 2, 16, 16), FLOAT32, nz), Tensor("y", (1, 3, 16, 16), FLOAT32, nz)
    z = Tensor("z", (3, 2, 16, 16), FLOAT32, nz)
    w.op("MatMul", x, y, shape=z.shape, transpose_b=True)
    w.ops[0] = Operation("MatMul", (x, y), (z,), w.ops[0].attrs)
    (found,) = reference(w.desc("k", (x, y), z))(to_fractal(left), to_fractal(right))
    np.testing.assert_array_equal(from_fractal(found), left @ right.T)


@pytest.mark.parametrize("groups", [1, 2])
def test_convolution_agrees_with_its_definition_in_both_layouts(groups):
    random = np.random.default_rng(0)
    image, weights = random.integers(0, 5, (2, 4, 7, 6)), random.integers(0, 5, (6, 4 // groups, 3, 2))
    expected = np.zeros((2, 6, 3, 2), np.float32)
    for n, o, y, x in np.ndindex(*expected.shape):
        first = o // (6 // groups) * (4 // groups)
        window = image[n, first : first + 4 // groups, 2 * y : 2 * y + 3, 2 * x : 2 * x + 3 : 2]
        expected[n, o, y, x] = (window * weights[o]).sum()
    attrs = {"stride": (1, 1, 2, 2), "dilation": (1, 1, 1, 2), "group": groups}
    image, weights = image.astype(np.float32), weights.astype(np.float32)
    np.testing.assert_array_equal(run("Conv2D", image, weights, shape=expected.shape, **attrs), expected)
    last = [np.moveaxis(a, 1, -1) for a in (image, weights, expected)]
    found = run("Conv2D", *last[:2], shape=last[2].shape, formats=("NHWC", "NHWC"), format="NCHW", **attrs)
    np.testing.assert_array_equal(found, last[2])


def test_pooling():
    image = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    attrs = {"kernel_size": (2, 2), "strides": (2, 2)}
    assert run("Pool2D", image, shape=(1, 1, 2, 2), pool_type="max", **attrs).ravel().tolist() == [5, 7, 13, 15]
    padded = run("Pool2D", image, shape=(1, 1, 3, 3), pool_type="avg", pad=(1, 1, 1, 1), **attrs)
    assert padded[0, 0, 0, 0] == image[0, 0, 0, 0] / 4
    assert run("Pool2D", image, shape=(1, 1, 1, 1), pool_type="avg", **{"global": True}).item() == 7.5


def test_complex_numbers():
    found = run("Complex", [1.0], [2.0], shape=(1,), dtype_=COMPLEX64)
    assert found.tolist() == [1 + 2j]
    assert run("CReal", found, shape=(1,), dtype_=FLOAT32).tolist() == [1]
    assert run("CImag", found, shape=(1,), dtype_=FLOAT32).tolist() == [2]


def test_sparse_matrices():
    dense = np.asarray([[0, 2, 0], [3, 0, 4]], np.float32)
    indptr, indices, values = [0, 1, 3], [1, 0, 2], [2.0, 3.0, 4.0]
    vector = np.asarray([[1.0], [10.0], [100.0]])
    np.testing.assert_array_equal(
        run("CSRMV", indptr, indices, values, vector, shape=(2, 1), dtype_=FLOAT32), dense @ vector
    )
    scale = [[5.0, 6.0, 7.0], [8.0, 9.0, 1.0]]
    common = {"dense_shape": (2, 3), "dtype_": FLOAT32}
    assert run("CSRMul", indptr, indices, values, scale, shape=(3,), **common).tolist() == [12, 24, 4]
    assert run("CSRReduceSum", indptr, indices, values, shape=(2, 1), axis=1, **common).tolist() == [[2], [7]]
    assert run("CSRGather", indptr, indices, scale, shape=(3,), dtype_=FLOAT32, dense_shape=(2, 3)).tolist() == [
        6,
        8,
        1,
    ]
    assert run("CSR2COO", indptr, shape=(3,), nnz=3).tolist() == [0, 1, 1]
    assert run("COO2CSR", [0, 1, 1], shape=(3,), height=2).tolist() == indptr


def test_predicates_may_have_float_results():
    assert run("LessEqual", [1.0, 2.0], [1.0, 1.0], shape=(2,), dtype_=FLOAT32).tolist() == [1, 0]
    assert run("LessEqual", [1.0, 2.0], [1.0, 1.0], shape=(2,), dtype_=BOOL).tolist() == [True, False]


def test_code_in_a_description_is_refused():
    with pytest.raises(UnsupportedError, match="holds source code"):
        run("Custom", M, shape=(3, 4), func_source_str="def f(a): ...")


def test_complex_parts_do_not_mix():
    found = run("Complex", [np.nan, 1.0], [2.0, np.inf], shape=(2,), dtype_=COMPLEX64)
    assert (found.imag[0], found.real[1]) == (2, 1)


def test_scattered_complex_numbers_keep_their_imaginary_part():
    data = np.asarray([1 + 2j, 3j], np.complex64)
    found = run("TensorScatterAdd", data, [[1]], np.asarray([1 + 1j], np.complex64), shape=(2,))
    assert found.tolist() == [1 + 2j, 1 + 4j]


def test_nothing_can_be_gathered_from_nothing():
    empty = np.zeros((0, 2), np.float32)
    assert run("Gather", empty, [0, 1], shape=(2, 2), axis=0).tolist() == [[0, 0], [0, 0]]
    assert run("GatherNd", empty, [[0, 1]], shape=(1,)).tolist() == [0]


def test_a_scan_of_a_single_number():
    assert run("CumSum", np.float32(3), shape=(1,), axis=0).tolist() == [3]
    assert run("CumSum", np.float32(3), shape=(1,), axis=0, exclusive=True).tolist() == [0]


def test_a_blocked_product_may_have_a_plain_result():
    left, right = np.arange(5 * 7, dtype=np.float32).reshape(5, 7), np.ones((7, 3), np.float32)
    nz, plain = "FRACTAL_NZ", np.dot(left, right)
    found = run("MatMul", to_fractal(left), to_fractal(right), shape=(5, 3), formats=(nz, nz))
    np.testing.assert_array_equal(found, plain)


def blocked(x, dim, block):
    """Dim ``dim`` split into blocks, the elements of a block last."""
    shape = (*x.shape[:dim], x.shape[dim] // block, block, *x.shape[dim + 1 :])
    return np.ascontiguousarray(np.moveaxis(x.reshape(shape), dim + 1, -1))


def test_a_blocked_convolution_is_the_plain_one():
    random = np.random.default_rng(0)
    image, weights = (random.integers(0, 5, s).astype(np.float32) for s in ((2, 8, 5, 6), (12, 8, 3, 2)))
    plain = run("Conv2D", image, weights, shape=(2, 12, 3, 5), stride=(1, 1))
    turned = blocked(blocked(weights, 1, 4), 0, 6)  # [O/o, C/c, kh, kw, c, o]
    found = run("Conv2D", blocked(image, 1, 4), turned, shape=(2, 2, 3, 5, 6), stride=(1, 1))
    np.testing.assert_array_equal(found, blocked(plain, 1, 6))


def test_a_depth_wise_convolution_has_a_kernel_per_channel():
    random = np.random.default_rng(0)
    image, weights = (random.integers(0, 5, s).astype(np.float32) for s in ((1, 8, 5, 5), (8, 1, 3, 3)))
    plain = run("Conv2D", image, weights, shape=(1, 8, 3, 3), stride=(1, 1), group=8)
    turned = np.moveaxis(weights.reshape(2, 4, 1, 3, 3), 1, -1)[..., None, :]  # [C/c, 1, kh, kw, 1, c]
    found = run("Conv2D", blocked(image, 1, 4), turned, shape=(1, 2, 3, 3, 4), stride=(1, 1), is_depth_wise=True)
    np.testing.assert_array_equal(found, blocked(plain, 1, 4))


def test_layouts_that_are_none_are_refused():
    for source, target in (("NCHW", "NCWH4x"), ("NHW", "NCHW"), ("NCHW", "OIHW")):
        with pytest.raises(UnsupportedError, match="unsupported-layout"):
            run("LayoutTransform", np.zeros((1, 2, 3, 4)), shape=(1, 2, 3, 4), src_format=source, dst_format=target)
