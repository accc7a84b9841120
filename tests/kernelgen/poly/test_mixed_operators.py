"""Operators that move elements, fused with others: producers that are computed at their place, results that are read back."""

from __future__ import annotations

import numpy as np
import pytest
from operator_kernels import draw

import kernelgen
from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.link import linked
from kernelgen.driver import compile
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dtypes import dtype


def tensor(name: str, *shape: int, kind: str = "float32") -> Tensor:
    return Tensor(name, shape, dtype(kind))


def kernel(name: str, *ops: tuple[str, list[Tensor], Tensor, dict[str, object]], outs: list[str]) -> KernelDesc:
    """Operators in order; what none of them makes is an input."""
    made = {out.name: out for _, _, out, _ in ops}
    inputs = dict.fromkeys(t for _, operands, _, _ in ops for t in operands if t.name not in made)
    descs = tuple(Operation(op, tuple(operands), (out,), Attrs.of(attrs)) for op, operands, out, attrs in ops)
    return linked(Document(name, tuple(inputs), tuple(made[o] for o in outs), descs))


IDS, X, Z = tensor("ids", 40, kind="int32"), tensor("x", 7, 50), tensor("z", 50, 40)
PICKED, TURNED, SUM = tensor("picked", 40, 50), tensor("turned", 40, 50), tensor("sum", 40, 50)
A, B, AB = tensor("a", 3, 5), tensor("b", 4, 5), tensor("ab", 7, 5)
ROWS, LONG = tensor("rows", 7), tensor("long", 35)
P, Q, R = tensor("p", 16, 9), tensor("q", 9, 33), tensor("r", 16, 33)

KERNELS = [
    kernel("gather_and_transpose", ("Gather", [X, IDS], PICKED, {"axis": 0}), ("Transpose", [Z], TURNED, {"perm": [1, 0]}),
           ("Add", [PICKED, TURNED], SUM, {}), outs=["sum"]),
    kernel("gather_of_a_value", ("Exp", [X], tensor("e", 7, 50), {}),
           ("Gather", [tensor("e", 7, 50), IDS], PICKED, {"axis": 0}), ("Neg", [PICKED], SUM, {}), outs=["sum", "e"]),
    kernel("gather_with_computed_ids", ("Add", [IDS, IDS], tensor("twice", 40, kind="int32"), {}),
           ("Gather", [X, tensor("twice", 40, kind="int32")], PICKED, {"axis": 0}), outs=["picked"]),
    kernel("concat_then_reduce", ("Neg", [A], tensor("na", 3, 5), {}), ("Concat", [tensor("na", 3, 5), B], AB, {"axis": 0}),
           ("Exp", [AB], tensor("e", 7, 5), {}), ("ReduceSum", [tensor("e", 7, 5)], ROWS, {"axis": [1]}), outs=["rows"]),
    kernel("concat_then_reshape", ("Concat", [A, B], AB, {"axis": 0}), ("Reshape", [AB], LONG, {}), outs=["long", "ab"]),
    kernel("concat_of_itself", ("Concat", [A, A], tensor("aa", 6, 5), {"axis": 0}), ("Neg", [tensor("aa", 6, 5)],
           tensor("n", 6, 5), {}), outs=["n"]),
    kernel("slice_of_a_pad", ("PadAkg", [A], tensor("pad", 6, 8), {"head": [1, 0], "tail": [2, 3], "pad_val": 1.0}),
           ("Slice", [tensor("pad", 6, 8)], tensor("s", 4, 4), {"begin": [0, 3], "size": [4, 4]}), outs=["s"]),
    kernel("product_with_epilogue", ("MatMul", [P, Q], R, {}), ("Tanh", [R], tensor("t", 16, 33), {}),
           ("ReduceMax", [tensor("t", 16, 33)], tensor("m", 16), {"axis": [1]}), outs=["t", "m"]),
    kernel("product_of_computed_operands", ("Exp", [P], tensor("e", 16, 9), {}), ("MatMul", [tensor("e", 16, 9), Q], R, {}),
           outs=["r"]),
    kernel("scan_then_scan", ("CumSum", [X], tensor("c", 7, 50), {"axis": 1}), ("CumSum", [tensor("c", 7, 50)],
           tensor("d", 7, 50), {"axis": 0, "exclusive": True}), ("Neg", [tensor("d", 7, 50)], tensor("n", 7, 50), {}),
           outs=["n"]),
    kernel("scatter_then_use", ("UnsortedSegmentSum", [TURNED, IDS], X, {"num_segments": 7}), ("Exp", [X],
           tensor("e", 7, 50), {}), outs=["e", "x"]),
]  # fmt: skip


@pytest.mark.parametrize("target", ["python", "cpu"])
@pytest.mark.parametrize("desc", KERNELS, ids=lambda d: d.name)
def test_kernel_agrees_with_its_meaning(desc: KernelDesc, target: str) -> None:
    inputs = draw(desc)
    results, expected = compile(desc, target)(*inputs), kernelgen.reference(desc)(*inputs)
    for got, want in zip(results, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
