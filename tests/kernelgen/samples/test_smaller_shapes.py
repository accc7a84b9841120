from dataclasses import replace

import kernel_examples as examples
import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

from kernelgen.composite.check import check
from kernelgen.samples.smaller_shapes import SMALLEST, First, argument_bytes, scale_down, shrink
from kernelgen.semantics import reference
from kernelgen.tensor.dtypes import INT32

SCALABLE = [
    examples.softmax(4096, 4096), examples.layer_norm(100_000, 128), examples.column_sum(3001, 5003),
    examples.transpose_add(4000, 5000), examples.own_transpose(4001), examples.split_reshape(40_000),
    examples.two_phase_branches(3000, 4000),
]  # fmt: skip


@pytest.mark.parametrize("desc", SCALABLE, ids=lambda desc: desc.name)
def test_large_kernels_shrink_and_stay_sound(desc):
    limit = 1 << 20
    found = scale_down(desc, limit)
    assert found is not None
    assert argument_bytes(found) <= limit < argument_bytes(desc)
    assert [op.op.name for op in check(found).operators] == [op.op.name for op in desc.operators]
    written = {dim for t in desc.inputs for dim in t.shape}
    assert all(dim in written or (isinstance(dim, int) and dim >= SMALLEST) for t in found.inputs for dim in t.shape)


def test_kernels_that_fit_are_left_alone():
    desc = examples.softmax()
    assert scale_down(desc, 1 << 20) is desc


def test_equal_extents_of_different_axes_may_part_but_one_axis_keeps_one_extent():
    found = scale_down(examples.own_transpose(4001), 1 << 20)
    assert found is not None
    assert found.inputs[0].shape[0] == found.inputs[0].shape[1]


def test_reshapes_that_split_a_dim_shrink_on_both_sides():
    w, x = Writer(), tensor("x", 1 << 20, 6)
    desc = w.desc("k", (x,), w.op("Reshape", x, shape=(1 << 10, 1 << 10, 6)))
    found = scale_down(desc, 1 << 19)
    assert found is not None
    assert check(found).outputs[0].shape[1:] == (1 << 10, 6)


def test_shape_attributes_follow():
    w = Writer()
    desc = w.desc("k", (), w.op("BroadcastTo", constant(0.0), shape=(1 << 20,), shape_=0))
    desc = w.desc("k", (), desc.outputs[0])
    found = scale_down(desc, 1 << 10)
    assert found is not None
    assert argument_bytes(found) <= 1 << 10


def test_operators_that_are_not_understood_do_not_shrink():
    w, x = Writer(), tensor("x", 1 << 20)
    assert scale_down(w.desc("k", (x,), w.op("CumSum", x, shape=(1 << 20,), axis=0)), 1 << 10) is None


def test_convolutions_shrink_but_for_what_windows_reach_over():
    w, image, weights = Writer(), tensor("x", 32, 21, 23, 256), tensor("w", 128, 3, 3, 256)
    image, weights = (replace(t, layout="NHWC") for t in (image, weights))
    y = w.op("Conv2D", image, weights, shape=(32, 19, 21, 128), stride=(1, 1, 1, 1), dilation=(1, 1, 1, 1))
    found = scale_down(w.desc("k", (image, weights), y), 1 << 18)
    assert found is not None
    assert check(found).inputs[0].shape[1:3] == (21, 23)
    assert found.inputs[0].shape[0] == found.outputs[0].shape[0] != 32
    assert found.inputs[0].shape[3] == found.inputs[1].shape[3] != 256


@pytest.mark.parametrize(("transpose_a", "transpose_b"), [(False, False), (True, False), (False, True)])
def test_products_of_blocks_keep_their_blocks(transpose_a: bool, transpose_b: bool):
    m, n, k = 24, 48, 36
    left, right = (k, m) if not transpose_a else (m, k), (n, k) if not transpose_b else (k, n)
    w, a, b = Writer(), tensor("a", *left, 16, 16), tensor("b", *right, 16, 16)
    a, b = (replace(t, layout="FRACTAL_NZ") for t in (a, b))
    w.op("MatMul", a, b, shape=(n, m, 16, 16), transpose_a=transpose_a, transpose_b=transpose_b)
    y = replace(w.ops[0].out, layout="FRACTAL_NZ")
    w.ops[0] = replace(w.ops[0], outs=(y,))
    found = scale_down(w.desc("k", (a, b), y), 1 << 18)
    assert found is not None
    assert all(t.shape[2:] == (16, 16) for t in (*found.inputs, *found.outputs))
    numbers = (0.25 * np.ones([int(str(d)) for d in t.shape], np.float32) for t in found.inputs)
    assert reference(found)(*numbers)[0].shape == found.outputs[0].shape


def test_sums_of_segments_shrink_with_their_numbers_of_segments():
    w, data, numbers = Writer(), tensor("x", 5000, 4000, 3), tensor("ids", 5000, 4000, dtype=INT32)
    y = w.op("UnsortedSegmentSum", data, numbers, shape=(7000, 3), num_segments=7000)
    found = scale_down(w.desc("k", (data, numbers), y), 1 << 16)
    assert found is not None
    assert check(found).inputs[0].shape[:2] == found.inputs[1].shape
    assert found.inputs[0].shape[2:] == found.outputs[0].shape[1:]
    assert found.outputs[0].shape[0] == found.operators[0].attrs.int("num_segments") < 7000


def test_what_is_gathered_shrinks_with_its_numbers_and_with_the_data_around():
    w, data, numbers = Writer(), tensor("x", 400, 5000, 300), tensor("ids", 700, 900, dtype=INT32)
    y = w.op("Gather", data, numbers, shape=(400, 700, 900, 300), axis=1)
    found = scale_down(w.desc("k", (data, numbers), y), 1 << 16)
    assert found is not None
    small, chosen = check(found).inputs
    assert found.outputs[0].shape == (small.shape[0], *chosen.shape, small.shape[2])
    kept = small.shape[1]
    assert isinstance(kept, int)
    assert kept < 5000


def test_outer_first_keeps_the_length_of_rows():
    desc = examples.softmax(4096, 8192)
    assert shrink(desc, 1 << 20).inputs[0].shape != (16, 8192)
    assert shrink(desc, 1 << 20, First.OUTER).inputs[0].shape == (16, 8192)


def test_reduced_first_keeps_the_size_of_results():
    w, x = Writer(), tensor("x", 500, 9000)
    desc = w.desc("k", (x,), w.op("ReduceSum", x, shape=(500,), axis=(1,)))
    assert shrink(desc, 1 << 16, First.REDUCED).outputs[0].shape == (500,)
    assert shrink(desc, 1 << 14, First.OUTER).outputs[0].shape != (500,)
