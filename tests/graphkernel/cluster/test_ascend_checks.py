import pytest

from graphkernel.cluster.ascend_checks import TABLE, refusal
from graphkernel.cluster.ops_lists import cluster_ops
from graphkernel.frontends.trace import spec
from graphkernel.ops import OPS
from kernelgen.tensor.graph import Builder, Node
from kernelgen.tensor.types import Attrs


def node(name: str, *types: tuple[tuple[int | str, ...], str], **attrs: object) -> Node:
    builder = Builder()
    args = [builder.parameter("x", spec(shape, dtype)) for shape, dtype in types]
    return builder.node(OPS[name], args, Attrs.of(attrs))


def floats(*shape: int | str) -> tuple[tuple[int | str, ...], str]:
    return shape, "float32"


def halves(*shape: int | str) -> tuple[tuple[int | str, ...], str]:
    return shape, "float16"


def integers(*shape: int | str) -> tuple[tuple[int | str, ...], str]:
    return shape, "int32"


STEPS = {"begin": (0, 0), "end": (2, 4), "strides": (1, 1)}
DEEP = {"begin": (0,) * 4, "end": (1, 2, 2, 2), "strides": (1,) * 4}


@pytest.mark.parametrize(
    "found",
    [
        node("Add", integers(4), integers(4)),
        node("Exp", halves(4)),
        node("Greater", integers(4), integers(4)),
        node("Cast", integers(4), dst_type="bfloat16"),
        node("IsFinite", floats(4)),
        node("Select", ((4,), "bool"), floats(4), floats(4)),
        node("LogicalAnd", ((4,), "bool"), ((4,), "bool")),
        node("StridedSlice", floats(4, 4), **STEPS),
        node("StridedSlice", floats(4, 4), **{**STEPS, "strides": (1, 2)}),
        node("StridedSlice", floats(2, 2, 2, 2), **DEEP),
        node("MatMul", halves(1024, 64), halves(64, 128)),
        node("MatMul", halves(16, 64), halves(64, 16)),
        node("MatMul", halves("M", 64), halves(64, 1024)),
        node("BatchMatMul", halves(2, 2, 2, 4, 4), halves(2, 2, 2, 4, 4)),
        node("BatchMatMul", halves(2, 16, 64), halves(2, 64, 16)),
        node("AllReduce", floats(4), op="sum", group="world", rank_size=1),
        node("ReduceSum", floats("N", 4), axis=(1,)),
    ],
    ids=str,
)
def test_what_kernels_take(found: Node) -> None:
    assert refusal(found) is None


@pytest.mark.parametrize(
    ("found", "code", "why"),
    [
        (node("Sign", integers(4)), "not-fused-dtype", "operand is int32, not bfloat16 or float16 or float32"),
        (node("Add", ((4,), "int64"), ((4,), "int64")), "not-fused-dtype", "int64"),
        (node("Cast", floats(4), dst_type="int64"), "not-fused-dtype", "result is int64"),
        (node("Exp", ((4,), "float64")), "not-fused-dtype", "float64"),
        (node("Select", ((4,), "bool"), integers(4), integers(4)), "not-fused-dtype", "int32"),
        (node("ReduceSum", integers(4, 4), axis=(1,)), "not-fused-dtype", "int32"),
        (node("Transpose", integers(4, 4), perm=(1, 0)), "not-fused-dtype", "int32"),
        (node("MatMul", floats(1024, 64), floats(64, 1024)), "not-fused-dtype", "float32"),
        (node("MatMul", halves("M", "K"), halves("K", 1024)), "not-fused-shape", "symbolic length"),
        (node("MatMul", halves(16, 65281), halves(65281, 1024)), "not-fused-shape", "65280"),
        (node("AllReduce", floats(1), op="sum", group="world", rank_size=1), "not-fused-shape", "one element"),
    ],
    ids=str,
)
def test_what_they_do_not_take(found: Node, code: str, why: str) -> None:
    reason = refusal(found)
    assert reason is not None
    assert reason.code == code
    assert found.op.name in reason.message
    assert why in reason.message


def test_the_table_names_operators_that_exist() -> None:
    assert set(TABLE) <= set(OPS.values())
    assert cluster_ops("ascend", 2) <= set(OPS)
