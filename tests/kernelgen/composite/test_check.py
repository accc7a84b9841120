"""Each planted fault must be rejected, with the operator's place in the message."""

from dataclasses import replace

import kernel_examples as examples
import pytest
from kernel_examples import Writer, constant, tensor

from kernelgen.composite.check import check
from kernelgen.composite.description import KernelDesc, ParallelFusion
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.link import linked, unlinked
from kernelgen.driver import compile
from kernelgen.errors import DescError, UnsupportedError
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import BOOL, FLOAT16, FLOAT32, INT32
from kernelgen.tensor.graph import Node
from kernelgen.tensor.types import TensorType

SOUND = [
    examples.softmax(), examples.layer_norm(), examples.momentum(), examples.split_reshape(), examples.transpose_add(),
    examples.half_sum(), examples.empty_sum(), examples.crossed_reshape(), examples.two_phase_branches(),
]  # fmt: skip


@pytest.mark.parametrize("desc", SOUND, ids=lambda desc: desc.name)
def test_sound_descriptions_pass(desc):
    assert check(desc) is desc


SOFTMAX = unlinked(examples.softmax())


def with_op(position: int, **changes) -> Document:
    ops = list(SOFTMAX.ops)
    ops[position] = replace(ops[position], **changes)
    return replace(SOFTMAX, ops=tuple(ops))


def rejected(document: Document, path: str, match: str) -> None:
    with pytest.raises(DescError, match=match) as caught:
        linked(document)
    assert caught.value.path.startswith(path)


def test_a_description_made_by_hand_is_checked_like_one_that_was_read():
    desc = examples.softmax()
    exp, total = desc.operators[2], desc.operators[3]
    wrong = Node(total.op, (exp.out,), total.attrs, (TensorType((5, 5), FLOAT32),), total.name)
    bad = KernelDesc(replace(desc.graph, outputs=(wrong.out,)))
    for use in (check, compile):
        with pytest.raises(DescError, match="gives shape") as caught:
            use(bad)
        assert caught.value.path.startswith("$.op_desc[3]")


def test_use_before_definition():
    swapped = (SOFTMAX.ops[1], SOFTMAX.ops[0], *SOFTMAX.ops[2:])
    rejected(replace(SOFTMAX, ops=swapped), "$.op_desc[0].input_desc[1][0]", "before it is defined")


def test_redefinition():
    rejected(with_op(2, outs=SOFTMAX.ops[1].outs), "$.op_desc[2].output_desc[0]", "defined twice")


def test_missing_output():
    rejected(replace(SOFTMAX, outputs=(tensor("nobody", 1),)), "$.output_desc[0]", "nobody")


def test_input_listed_twice():
    rejected(replace(SOFTMAX, inputs=SOFTMAX.inputs * 2), "$.input_desc[1][0]", "twice")


def test_constant_input():
    rejected(replace(SOFTMAX, inputs=(*SOFTMAX.inputs, constant(1.0))), "$.input_desc[1][0].value", "constant")


def test_shape_that_differs_from_the_definition():
    rejected(replace(SOFTMAX, inputs=(tensor("x", 6, 8),)), "$.op_desc[0].input_desc[0][0].shape", "here it is")


def test_dtype_that_differs_from_the_definition():
    rejected(
        replace(SOFTMAX, inputs=(tensor("x", 6, 9, dtype=FLOAT16),)),
        "$.op_desc[0].input_desc[0][0].data_type",
        "float16",
    )


def one(name, inputs, shape, dtype=None, **attrs) -> Document:
    w = Writer()
    named = tuple({t.name: t for t in inputs if t.value is None}.values())
    return w.document("k", named, w.op(name, *inputs, shape=shape, dtype=dtype, **attrs))


FAULTS = [
    (one("Add", (tensor("x", 3), tensor("y", 4)), (3,)), "do not broadcast"),
    (one("Add", (tensor("x", 3), tensor("y", 3)), (2,)), "do not broadcast"),
    (one("Add", (tensor("x", 3),), (3,)), "takes 2 operands, found 1"),
    (one("Mul", (tensor("x", 3), tensor("h", 3, dtype=FLOAT16)), (3,)), "without a Cast"),
    (one("Exp", (tensor("x", 3),), (3,), dtype=INT32), "without a Cast"),
    (one("Less", (tensor("x", 3), tensor("y", 3)), (3,), dtype=INT32), "gives bool"),
    (one("Select", (tensor("c", 3, dtype=BOOL), tensor("x", 3), tensor("y", 3)), (3,), dtype=FLOAT16), "without a Cast"),
    (one("ReduceSum", (tensor("x", 3, 4),), (3,), axis=(0,)), "gives shape \\[4\\]"),
    (one("ReduceSum", (tensor("x", 3, 4),), (3,), axis=(2,)), "axis 2 is out of range"),
    (one("ReduceSum", (tensor("x", 3, 4),), (4, 3), axis=(0,), keep_dims=True), "gives shape \\[1, 4\\]"),
    (one("Reshape", (tensor("x", 3, 4),), (5, 2)), "number of elements"),
    (one("Transpose", (tensor("x", 3, 4),), (3, 4), perm=(1, 0)), "gives shape \\[4, 3\\]"),
    (one("Transpose", (tensor("x", 3, 4),), (3, 4), perm=(0, 0)), "not a permutation"),
    (one("BroadcastTo", (tensor("x", 3),), (4,)), "do not broadcast"),
    (one("Tile", (tensor("x", 3),), (5,), multiples=(2,)), "gives shape \\[6\\]"),
    (one("Concat", (tensor("x", 3, 2), tensor("y", 3, 3)), (6, 2), axis=0), "differ in axis 0 only"),
    (one("Split", (tensor("x", 4),), (3,), axis=0), "add up to 3, not to 4"),
    (one("PadAkg", (tensor("x", 3),), (5,), head=(1,), tail=(2,), pad_val=0), "gives shape \\[6\\]"),
    (one("UnPadAkg", (tensor("x", 5),), (5,), tail=(2,)), "gives shape \\[3\\]"),
    (one("MatMul", (tensor("x", 3, 4), tensor("y", 5, 6)), (3, 6)), "inner extents"),
    (one("MatMul", (tensor("x", 3, 4), tensor("y", 6, 4)), (4, 6), transpose_b=True), "gives shape \\[3, 6\\]"),
    (one("Gather", (tensor("x", 8, 5), tensor("i", 2, dtype=INT32)), (2, 8), axis=0), "gives shape \\[2, 5\\]"),
    (one("OneHot", (tensor("i", 3, dtype=INT32), constant(1.0), constant(0.0)), (4, 3), depth=4), "gives shape \\[3, 4\\]"),
    (one("UnsortedSegmentSum", (tensor("x", 6, 2), tensor("i", 5, dtype=INT32)), (4, 2), num_segments=4), "leading extents"),
    (one("ReduceMax", (), (3,), dtype=INT32), "no operands"),
]  # fmt: skip


@pytest.mark.parametrize(("desc", "match"), FAULTS, ids=[f"{d.ops[0].name}: {m}" for d, m in FAULTS])
def test_faulty_operator(desc, match):
    rejected(desc, "$.op_desc[0]", match)


def test_assignment_to_something_that_is_no_input():
    w, x = Writer(), tensor("x", 3)
    y = w.op("Neg", x, shape=(3,))
    rejected(w.document("k", (x,), w.op("Assign", y, x, shape=(3,))), "$.op_desc[1].input_desc[0][0]", "no input")


def test_assignment_of_a_larger_value():
    rejected(one("Assign", (tensor("x", 1), tensor("y", 3)), (1,)), "$.op_desc[0]", "cannot be assigned")


def test_unknown_operators_have_no_shape_rule():
    op = Operation("Sorcery", (tensor("x", 3),), (tensor("y", 77),), Attrs())
    check(linked(Document("k", op.args, op.outs, (op,))))


def test_groups_that_name_nothing():
    rejected(replace(SOFTMAX, buffer_stitch=(("t0",), ("nobody",))), "$.buffer_stitch.stitch_op[1][0]", "nobody")
    fusion = ParallelFusion("block_fusion", (("nobody",),), (1,))
    rejected(replace(SOFTMAX, parallel_fusion=fusion), "$.parallel_fusion.sub_graph[0][0]", "nobody")


def test_a_cut_that_depends_on_a_size_is_refused_with_a_code_and_is_not_malformed():
    x, y = tensor("x", sym("N")), tensor("y", sym("M"))
    cut = Operation("StridedSlice", (x,), (y,), Attrs.of({"begin": (0,), "end": (sym("M"),), "strides": (1,)}))
    desc = linked(Document("k", (x,), (y,), (cut,)))
    assert check(desc) is desc
    with pytest.raises(UnsupportedError, match="depends on its size") as caught:
        compile(desc)
    assert caught.value.code == "unsupported-attr"
