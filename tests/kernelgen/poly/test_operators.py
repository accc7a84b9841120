"""Every operator that is more than pointwise: python and cpu agree with the meaning on awkward shapes and data types."""

from __future__ import annotations

import numpy as np
import pytest
from operator_kernels import I32, B, C, F, H, csr, draw, one

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.scalar_rules import ELEMENTWISE
from kernelgen.driver import compile
from kernelgen.poly.lower.table import LOWERINGS

CASES = [
    one("MatMul", [(F, (5, 7)), (F, (7, 3))], [(F, (5, 3))]),
    one("MatMul", [(H, (7, 17)), (H, (33, 7))], [(H, (17, 33))], transpose_a=True, transpose_b=True),
    one("MatMul", [(B, (4, 1)), (B, (1, 9))], [(B, (4, 9))]),
    one("MatMul", [(F, (3, 0)), (F, (0, 2))], [(F, (3, 2))]),
    one("MatMul", [(F, (40, 70)), (F, (70, 50)), (F, (50,))], [(F, (40, 50))]),
    one("MatMul", [(I32, (3, 5)), (I32, (5, 2))], [(I32, (3, 2))]),
    one("MatMulInteger", [("uint8", (5, 7)), ("int8", (7, 33))], [(I32, (5, 33))]),
    one("MatMulInteger", [("int8", (2, 3, 4)), ("int8", (4, 5))], [(I32, (2, 3, 5))]),
    one("StoredMatMul", [(F, (5, 6)), ("int8", (2, 3, 4)), (F, (2, 4)), (F, (2, 4))], [(F, (5, 4))]),
    one("StoredMatMul", [(F, (3, 8)), ("uint8", (2, 2, 17)), (F, (2, 17))], [(F, (3, 17))], bits=4),
    one("BatchMatMul", [(F, (2, 1, 5, 7)), (F, (3, 7, 4))], [(F, (2, 3, 5, 4))]),
    one("BatchMatMul", [(H, (2, 3, 16, 8)), (H, (2, 3, 9, 8))], [(H, (2, 3, 16, 9))], transpose_b=True),
    one("Concat", [(F, (3, 4)), (F, (3, 1)), (F, (3, 7))], [(F, (3, 12))], axis=-1),
    one("Concat", [(H, (2, 4)), (H, (1, 4)), (H, (0, 4))], [(H, (3, 4))], axis=0),
    one("Concat", [(I32, (5,))], [(I32, (5,))], axis=0),
    one("Split", [(F, (4, 9))], [(F, (4, 3)), (F, (4, 1)), (F, (4, 5))], axis=1),
    one("Split", [("int8", (6, 5))], [("int8", (2, 5)), ("int8", (4, 5))], axis=0),
    one("StridedSlice", [(F, (9, 7))], [(F, (4, 3))], begin=[1, 5], end=[8, 0], strides=[2, -2]),
    one("StridedSlice", [(F, (4, 5, 6))], [(F, (4, 5, 1, 3))], begin=[0, 0, 3], end=[0, 0, 6], strides=[1, 1, 1],
        ellipsis_mask=1, new_axis_mask=2),
    one("StridedSlice", [(F, (4, 5, 6))], [(F, (5, 4))], begin=[-2, 0, -5], end=[0, 0, 5], strides=[1, 1, 1],
        shrink_axis_mask=1, begin_mask=2, end_mask=2),
    one("StridedSliceV2", [(F, (4, 5))], [(F, (4, 2))], begin=[1], end=[4], strides=[2], axes=[1]),
    one("Slice", [(F, (4, 5))], [(F, (2, 4))], begin=[1, 1], size=[2, -1]),
    one("PadAkg", [(H, (5, 3))], [(H, (9, 4))], head=[1, 0], tail=[3, 1], pad_val=2.0),
    one("PadAkg", [(F, (17,))], [(F, (32,))], head=[0], tail=[15], pad_val=0.0),
    one("UnPadAkg", [(H, (16, 16))], [(H, (13, 15))], tail=[3, 1]),
    one("Tile", [(F, (3, 5))], [(F, (6, 15))], multiples=[2, 3]),
    one("Tile", [(F, (3, 1))], [(F, (2, 3, 4))], multiples=[2, 1, 4]),
    one("Gather", [(F, (7, 5)), (I32, (4,))], [(F, (4, 5))], axis=0),
    one("Gather", [(F, (3, 7, 5)), ("int64", (2, 3))], [(F, (3, 2, 3, 5))], axis=1),
    one("Gather", [(F, (3, 9)), (I32, (4,))], [(F, (3, 4))], axis=-1),
    one("Gather", [(F, (1, 5)), (I32, (4,))], [(F, (4, 5))], axis=0),
    one("Gather", [("int8", (0, 5)), (I32, (4,))], [("int8", (4, 5))], axis=0),
    one("GatherNd", [(F, (5, 4, 3)), (I32, (6, 2))], [(F, (6, 3))]),
    one("GatherNd", [(H, (5, 4)), (I32, (2, 3, 2))], [(H, (2, 3))]),
    one("TensorScatterAdd", [(F, (5, 4, 3)), (I32, (6, 2)), (F, (6, 3))], [(F, (5, 4, 3))]),
    one("TensorScatterAdd", [(H, (5,)), (I32, (9, 1)), (H, (9,))], [(H, (5,))]),
    one("UnsortedSegmentSum", [(F, (6, 3)), (I32, (6,))], [(F, (4, 3))], num_segments=4),
    one("UnsortedSegmentSum", [(B, (2, 3, 5)), (I32, (2, 3))], [(B, (7, 5))], num_segments=7),
    one("OneHot", [(I32, (5,)), (F, (1,)), (F, (1,))], [(F, (5, 7))], depth=7, axis=-1),
    one("OneHot", [(I32, (2, 3)), (F, ()), (F, ())], [(F, (4, 2, 3))], depth=4, axis=0),
    one("CumSum", [(F, (4, 9))], [(F, (4, 9))], axis=1),
    one("CumSum", [(H, (9, 5))], [(H, (9, 5))], axis=0, exclusive=True, reverse=True),
    one("CumSum", [(I32, (37,))], [(I32, (37,))], axis=0, reverse=True),
    one("CumProd", [(F, (2, 5, 3))], [(F, (2, 5, 3))], axis=1, exclusive=True),
    one("CumProd", [(F, (3, 1))], [(F, (3, 1))], axis=1),
    one("Argmax", [(F, (4, 9))], [(I32, (4,))], axis=-1),
    one("Argmin", [(H, (9, 5))], [(I32, (5,))], axis=0),
    one("Argmax", [("int32", (7,))], [("int64", ())], axis=0),
    one("ElemAny", [(F, (4, 9))], [(F, (1,))]),
    one("ElemAll", [(F, (33,))], [("bool", (1,))]),
    one("Conv2D", [(F, (1, 3, 7, 8)), (F, (5, 3, 3, 2))], [(F, (1, 5, 3, 7))], "NCHW", stride=[1, 1, 2, 1]),
    one("Conv2D", [("uint8", (2, 6, 7, 4)), ("int8", (6, 2, 3, 4))], [(I32, (2, 5, 5, 6))], "NHWC", stride=[1, 1, 1, 1]),
    one("Conv2D", [(H, (2, 6, 7, 4)), (H, (6, 2, 3, 2))], [(H, (2, 5, 2, 6))], "NHWC", stride=[1, 1, 1, 2],
        dilation=[1, 1, 1, 2], group=2),
    one("Pool2D", [(F, (2, 3, 7, 6))], [(F, (2, 3, 4, 3))], "NCHW", pool_type="max", kernel_size=[3, 3],
        strides=[2, 2], pad=[1, 1, 1, 1]),
    one("Pool2D", [(H, (1, 3, 5, 6))], [(H, (1, 3, 3, 3))], "NCHW", pool_type="avg", kernel_size=[2, 2],
        strides=[2, 2], pad=[0, 0, 0, 0], round_mode="ceil"),
    one("Pool2D", [(F, (2, 3, 5, 6))], [(F, (2, 3, 1, 1))], "NCHW", pool_type="avg", everywhere=True),
    one("TransData", [(H, (2, 20, 35))], [(H, (2, 3, 2, 16, 16))], src_format="DefaultFormat", dst_format="FRACTAL_NZ"),
    one("TransData", [(H, (3, 2, 16, 16))], [(H, (20, 35))], src_format="FRACTAL_NZ", dst_format="DefaultFormat"),
    one("LayoutTransform", [(F, (2, 5, 3, 4))], [(F, (2, 2, 3, 4, 4))], src_format="NCHW", dst_format="NCHW4c"),
    one("LayoutTransform", [(F, (1, 2, 3, 2, 4))], [(F, (1, 3, 2, 6))], src_format="NCHW4c", dst_format="NHWC"),
    one("Pool2D", [(F, (1, 6, 6, 3))], [(F, (1, 3, 2, 3))], pool_type="max", kernel_size=[2, 3], strides=[2, 3],
        pad=[0, 0, 0, 0], data_layout="NHWC"),
    one("Complex", [(F, (3, 7)), (F, (7,))], [(C, (3, 7))]),
    one("CReal", [(C, (3, 7))], [(F, (3, 7))]),
    one("CImag", [("complex128", ())], [("float64", ())]),
    one("Mul", [(C, (3, 7)), (C, (3, 1))], [(C, (3, 7))]),
    one("RealDiv", [(C, (5,)), (C, (5,))], [(C, (5,))]),
    one("Add", [(C, (5,)), (F, (2, 5))], [(C, (2, 5))]),
    one("Transpose", [(C, (3, 7))], [(C, (7, 3))], perm=[1, 0]),
    one("ReduceSum", [(C, (3, 7))], [(C, (3,))], axis=[-1]),
    one("Gather", [(C, (7, 5)), (I32, (4,))], [(C, (4, 5))], axis=0),
    one("StandardNormal", [], [(F, (3, 7))], seed=1234567890123),
    one("StandardNormal", [], [(H, (33,))], seed=5),
    csr("CSRMul", ["indptr", "indices", (F, (9,)), (F, (5, 1))], [(F, (9,))], dense_shape=[5, 6]),
    csr("CSRDiv", ["indptr", "indices", (F, (9, 4)), (F, (5, 6, 4))], [(F, (9, 4))], dense_shape=[5, 6]),
    csr("CSRReduceSum", ["indptr", "indices", (H, (9, 3))], [(H, (5, 1, 3))], dense_shape=[5, 6], axis=1),
    csr("CSRMV", ["indptr", "indices", (F, (9,)), (F, (6, 1))], [(F, (5, 1))], dense_shape=[5, 6]),
    csr("CSRMM", ["indptr", "indices", (F, (9,)), (F, (6, 33))], [(F, (5, 33))], dense_shape=[5, 6]),
    csr("CSRGather", ["indptr", "indices", (F, (1, 6))], [(F, (9,))], dense_shape=[5, 6]),
    csr("CSR2COO", ["indptr"], [(I32, (9,))], nnz=9),
    csr("COO2CSR", ["rows"], [(I32, (6,))], height=5),
]  # fmt: skip


def name_of(desc: KernelDesc) -> str:
    return f"{desc.name}-{'-'.join(str(t.dtype) + 'x'.join(map(str, t.shape)) for t in desc.inputs)}"


@pytest.mark.parametrize("target", ["python", "cpu"])
@pytest.mark.parametrize("desc", CASES, ids=name_of)
def test_operator_agrees_with_its_meaning(desc: KernelDesc, target: str) -> None:
    inputs = draw(desc)
    expected = kernelgen.reference(desc)(*inputs)
    spoiled = tuple(np.full(w.shape, np.nan if w.dtype.kind not in "iub" else 85, w.dtype) for w in expected)
    results = compile(desc, target)(*inputs, out=spoiled)
    for got, want in zip(results, expected, strict=True):
        loose = {"float16": 4e-3, "bfloat16": 3e-2}.get(want.dtype.name, 1e-5)
        wide = "c16" if want.dtype.kind == "c" else "f8"
        np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=loose, atol=loose)


def test_every_lowering_that_is_not_pointwise_has_a_case() -> None:
    elsewhere = {"Reshape", "ExpandDims", "Squeeze", "Flatten", "EquivFormat", "Assign", "InplaceAssign",
                 "BroadcastTo", "Transpose"}  # fmt: skip
    assert {op.name for op in LOWERINGS if op not in ELEMENTWISE and not op.name.startswith("Reduce")} - elsewhere <= {
        d.name for d in CASES
    }
