import kernel_examples as examples
import pytest
from kernel_examples import Writer, constant, tensor

from kernelgen.desc_check import check
from kernelgen.samples_scale import SMALLEST, argument_bytes, scale_down

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
    assert [op.name for op in check(found).ops] == [op.name for op in desc.ops]
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
