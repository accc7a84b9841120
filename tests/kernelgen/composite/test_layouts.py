import kernel_examples as examples
import numpy as np
from kernel_examples import Writer, tensor

from kernelgen.composite.description import Tensor
from kernelgen.composite.layouts import write_out_layouts
from kernelgen.composite.link import linked, unlinked
from kernelgen.semantics import reference
from kernelgen.semantics.layout import from_fractal, to_fractal
from kernelgen.tensor.dtypes import FLOAT32

NZ = "FRACTAL_NZ"


def blocks(name, *shape):
    return Tensor(name, shape, FLOAT32, NZ)


def mixed(name, plain_shape):
    """Adds a plain tensor to the blocks of a [2, 48, 32] matrix."""
    w, x, b = Writer(), blocks("x", 2, 2, 3, 16, 16), tensor("b", *plain_shape)
    y = blocks("y", 2, 2, 3, 16, 16)
    w.op("Add", x, b, shape=y.shape)
    op = w.ops[0]
    w.ops[0] = type(op)(op.name, op.args, (y,))
    return w.document(name, (x, b), y)


def test_plain_operands_beside_blocks_are_rearranged():
    random = np.random.default_rng(0)
    matrix = random.standard_normal((2, 48, 32), np.float32)
    for shape in ((2, 48, 32), (48, 32), (2, 48, 1), (1, 1, 32), (32,), (1,)):
        desc = linked(write_out_layouts(mixed("k", shape)))
        plain = random.standard_normal(shape, np.float32)
        (found,) = reference(desc)(to_fractal(matrix), plain)
        np.testing.assert_array_equal(from_fractal(found), matrix + plain, err_msg=str(shape))


def test_a_broadcast_operand_needs_no_transpose():
    desc = write_out_layouts(mixed("k", (2, 48, 1)))
    assert [op.name for op in desc.ops] == ["Reshape", "Add"]


def trans_data(source, target, given, wanted):
    w, x = Writer(), Tensor("x", given, FLOAT32, source)
    y = w.op("TransData", x, shape=wanted, src_format=source, dst_format=target)
    return w.document("k", (x,), y)


def test_trans_data_without_padding_is_a_reshape_and_a_transpose():
    matrix = np.arange(32 * 48, dtype=np.float32).reshape(32, 48)
    there = write_out_layouts(trans_data("NCHW", NZ, (32, 48), (3, 2, 16, 16)))
    assert sorted(op.name for op in there.ops) == ["Reshape", "Transpose"]
    (found,) = reference(linked(there))(matrix)
    np.testing.assert_array_equal(found, to_fractal(matrix))
    back = write_out_layouts(trans_data(NZ, "DefaultFormat", (3, 2, 16, 16), (32, 48)))
    (again,) = reference(linked(back))(found)
    np.testing.assert_array_equal(again, matrix)


def test_padded_trans_data_stays():
    desc = trans_data("NCHW", NZ, (30, 40), (3, 2, 16, 16))
    assert write_out_layouts(desc) is desc
    matrix = np.ones((30, 40), np.float32)
    (found,) = reference(linked(desc))(matrix)
    assert found.sum() == matrix.sum()
    back = trans_data(NZ, "NCHW", (3, 2, 16, 16), (30, 40))
    assert write_out_layouts(back) is back
    (again,) = reference(linked(back))(found)
    np.testing.assert_array_equal(again, matrix)


def test_plain_kernels_are_left_alone():
    desc = unlinked(examples.softmax())
    assert write_out_layouts(desc) is desc
