"""Operators on complex numbers against numpy's own."""

import numpy as np
import pytest
from operator_cases import TARGETS, Case, numbers, run

import kernelgen
from kernelgen.composite.check import check
from kernelgen.composite.description import Tensor
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.link import linked
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dtypes import COMPLEX64, dtype


def complexes(seed, *shape):
    return (numbers(seed, shape) + 1j * numbers(seed + 100, shape)).astype(np.complex64)


X, Y, IDS = complexes(0, 4, 6), complexes(1, 4, 6), np.asarray([[2], [0], [9], [2]], np.int32)


def padded(x, value):
    return np.pad(x, ((1, 0), (0, 2)), constant_values=value)


def gathered(x, ids):
    return np.where((ids < len(x)), x[np.minimum(ids[:, 0], len(x) - 1)], 0).astype(x.dtype)


def scattered(x, ids, updates):
    result = x.copy()
    for place, update in zip(ids[:, 0].tolist(), updates, strict=True):
        if place < len(x):
            result[place] += update
    return result


CASES = [
    Case("Add", (X, Y), (X + Y,)), Case("Mul", (X, Y), (X * Y,)), Case("RealDiv", (X, Y + 4), (X / (Y + 4),)),
    Case("Reciprocal", (X + 4,), (1 / (X + 4),)), Case("Equal", (X, np.where(X.real > 0, X, Y)), (X.real > 0,)),
    Case("IsNan", (np.where(X.real > 0, X, np.nan * 1j).astype(np.complex64),), (X.real <= 0,)),
    Case("IsFinite", (np.where(X.real > 0, X, np.inf).astype(np.complex64),), (X.real > 0,)),
    Case("MatMul", (X, Y), (X @ Y.T,), {"transpose_b": True}),
    Case("BatchMatMul", (complexes(2, 3, 4, 6), Y, complexes(3, 4)), (complexes(2, 3, 4, 6) @ Y.T + complexes(3, 4),),
         {"transpose_b": True}),
    Case("PadAkg", (X,), (padded(X, 0),), {"head": (1, 0), "tail": (0, 2), "pad_val": 0.0}),
    Case("PadAkg", (X,), (padded(X, 2.5),), {"head": (1, 0), "tail": (0, 2), "pad_val": 2.5}),
    Case("GatherNd", (X, IDS), (gathered(X, IDS),)),
    Case("TensorScatterAdd", (X, IDS, Y), (scattered(X, IDS, Y),)),
    Case("UnsortedSegmentSum", (X, IDS[:, 0]), (scattered(np.zeros((3, 6), X.dtype), IDS, X),), {"num_segments": 3}),
    Case("StridedSlice", (X,), (X[..., 1:5:2],), {"begin": (0, 1), "end": (0, 5), "strides": (1, 2), "ellipsis_mask": 1}),
    Case("LayoutTransform", (X.reshape(1, 4, 2, 3),), (np.moveaxis(X.reshape(1, 4, 2, 3), 1, -1),),
         {"src_format": "NCHW", "dst_format": "NHWC"}),
    Case("ReduceSum", (X,), (X.sum(1),), {"axis": (1,)}), Case("CumSum", (X,), (np.cumsum(X, 1),), {"axis": 1}),
    Case("Tile", (X,), (np.tile(X, (2, 3)),), {"multiples": (2, 3)}),
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_complex(case, target):
    case.agrees(target)


def tensor(name, like):
    return Tensor(name, like.shape, dtype(like.dtype))


@pytest.mark.parametrize("target", TARGETS)
def test_a_constant_is_a_real_number(target):
    constant = Tensor("c", (1,), COMPLEX64, value=1.5)
    op = Operation("Add", (tensor("x", X), constant), (tensor("y", X),))
    (found,) = run(check(linked(Document("k", op.args[:1], op.outs, (op,)))), (X,), target)
    np.testing.assert_allclose(found, X + 1.5, rtol=1e-6)


REAL = numbers(7, (4, 6))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("destination", "value", "wanted"), [(X, Y, Y), (X, REAL, REAL + 0j), (REAL, Y, Y.real)])
def test_an_assignment_gives_what_the_destination_is(destination, value, wanted, target):
    other = numbers(8, (3,)).astype(np.complex64)
    inputs = tensor("p", destination), tensor("v", value), tensor("o", other)
    op = Operation("InplaceAssign", inputs, (tensor("y", other),), Attrs.of(fake_output=False))
    desc = check(linked(Document("k", inputs, op.outs, (op,))))
    updated = destination.copy()
    kernel = kernelgen.reference(desc) if target == "reference" else kernelgen.compile(desc, target=target)
    (found,) = kernel(updated, value, other)
    np.testing.assert_array_equal(found, other)
    np.testing.assert_array_equal(updated, wanted.astype(destination.dtype))
