"""Folds of integers: any number where an element takes part that may be one of several, and what it is elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from operator_kernels import I32, MATRIX, Given, csr, one
from product_kernels import convolution

from kernelgen.composite.description import KernelDesc
from kernelgen.enclosure.interval import Interval
from kernelgen.enclosure.table import RULES
from kernelgen.semantics.table import MEANINGS

Array = np.ndarray[Any, Any]
U8, S8 = "uint8", "int8"


def ones(shape: tuple[int, ...], *doubtful: tuple[int, ...], kind: str = I32) -> Interval:
    """Ones, of which the ``doubtful`` ones may be twos."""
    low = np.ones(shape, kind)
    high = low.copy()
    for place in doubtful:
        high[place] += 1
    return Interval(low, high) if doubtful else Interval.exact(low)


def exactly(*values: int) -> Interval:
    return Interval.exact(np.asarray(values, np.int32))


@dataclass(frozen=True)
class Fold:
    """An operator on ranges, and where its result is known."""

    desc: KernelDesc
    operands: tuple[Interval, ...]
    known: Any
    names: tuple[str, ...] = field(default=())

    def __str__(self) -> str:
        return " ".join((self.desc.operators[0].op.name, *self.names))


def of(name: str, out: Given, *operands: Interval, known: Any, **attrs: Any) -> Fold:
    given = [(str(x.low.dtype), x.low.shape) for x in operands]
    return Fold(one(name, given, [out], **attrs), operands, known, tuple(map(str, attrs.items())))


def sparse(name: str, out: Given, values: Interval, dense: Interval | None, known: Any, **attrs: Any) -> Fold:
    """On the 5 x 6 matrix of 9 elements: rows 1 and 3 have four and three, row 4 two, the others none."""
    more = () if dense is None else (dense,)
    given = [(I32, x.low.shape) for x in (values, *more)]
    places = tuple(exactly(*MATRIX[word]) for word in ("indptr", "indices"))
    return Fold(csr(name, ["indptr", "indices", *given], [out], **attrs), (*places, values, *more), known)


T, F = True, False
ENDS = [F, T, T, T, T, T, T, T, F]
IMAGE = convolution("int32", (1, 3, 3, 1), (1, 2, 2, 1), "NHWC")
FOLDS = [
    of("ReduceProd", (I32, (2,)), ones((2, 300), (0, 7)), known=[F, T], axis=(1,)),
    of("CumProd", (I32, (4,)), ones((4,), (1,)), known=[T, T, F, F], axis=0, exclusive=True, reverse=False),
    of("CumProd", (I32, (4,)), ones((4,), (1,)), known=[F, F, T, T], axis=0, exclusive=False, reverse=True),
    of("MatMulInteger", (I32, (2, 2)), ones((2, 3), (1, 2), kind=U8), ones((3, 2), kind=S8), known=[[T, T], [F, F]]),
    of("MatMulInteger", (I32, (2, 2)), ones((2, 3), kind=U8), ones((3, 2), (0, 1), kind=S8), known=[[T, F], [T, F]]),
    of("MatMul", (I32, (2, 2)), ones((2, 3)), ones((3, 2)), ones((2, 2), (1, 0)), known=[[T, T], [F, T]]),
    of("MatMul", (I32, (1, 2)), ones((3, 1), (2, 0)), ones((3, 2)), known=[[F, F]], transpose_a=True),
    Fold(IMAGE, (ones((1, 3, 3, 1), (0, 0, 2, 0)), ones((1, 2, 2, 1))), [[[[T], [F]], [[T], [T]]]]),
    of("UnsortedSegmentSum", (I32, (3,)), ones((4,), (1,), (3,)), exactly(2, 0, 2, 7), known=[F, T, T], num_segments=3),
    of("TensorScatterAdd", (I32, (3,)), ones((3,), (0,)), Interval.exact(np.asarray([[2], [1]], np.int32)),
       ones((2,), (1,)), known=[F, F, T]),
    sparse("CSRReduceSum", (I32, (5, 1)), ones((9,), (4,)), None, [[T], [T], [T], [F], [T]], axis=(1,)),
    sparse("CSRMV", (I32, (5, 1)), ones((9,), (8,)), ones((6, 1)), [[T], [T], [T], [T], [F]]),
    sparse("CSRMV", (I32, (5, 1)), ones((9,)), ones((6, 1), (2, 0)), [[T], [F], [T], [F], [T]]),
    sparse("CSRMul", (I32, (9,)), ones((9,), (8,)), ones((5, 6), (1, 0), (2, 2)), ENDS, dense_shape=(5, 6)),
    sparse("CSRDiv", (I32, (9,)), ones((9,), (0,), (8,)), ones((5, 6), (1, 0)), ENDS, dense_shape=(5, 6)),
]  # fmt: skip


@pytest.mark.parametrize("fold", FOLDS, ids=str)
def test_what_a_doubtful_element_takes_part_in_may_be_any_number(fold: Fold) -> None:
    (node,) = fold.desc.operators
    found = RULES[node.op](fold.operands, node)
    assert isinstance(found, Interval)
    np.testing.assert_array_equal(found.points, fold.known)
    right = np.asarray(MEANINGS[node.op]([x.low for x in fold.operands], node))
    np.testing.assert_array_equal(found.low[found.points], right[found.points])
    info = np.iinfo(np.int32)
    assert {*found.low[~found.points], *found.high[~found.points]} == {info.min, info.max}


@pytest.mark.parametrize("fold", FOLDS, ids=str)
def test_exact_elements_make_exact_ones(fold: Fold) -> None:
    (node,) = fold.desc.operators
    operands = [Interval.exact(x.low) for x in fold.operands]
    found = RULES[node.op](operands, node)
    assert isinstance(found, Interval)
    assert found.is_exact
    np.testing.assert_array_equal(found.low, np.asarray(MEANINGS[node.op]([x.low for x in operands], node)))
