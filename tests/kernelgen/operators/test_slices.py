"""StridedSlice with every mask, StridedSliceV2 and Slice, against numpy's own indexing written out by hand."""

import numpy as np
import pytest
from operator_cases import TARGETS, Case

X = np.arange(5 * 6 * 7, dtype=np.float32).reshape(5, 6, 7)

# (begin, end, strides, masks, what it means)
STRIDED = [
    ((1, 0, 2), (4, 6, 7), (1, 2, 3), {}, X[1:4, ::2, 2:7:3]),
    ((1, 2), (3, 4), (1, 1), {}, X[1:3, 2:4]),
    ((-2, -3, -7), (99, 99, 99), (1, 1, 1), {}, X[3:, 3:, :]),
    ((4, 5, 6), (0, -7, 0), (-1, -1, -2), {}, X[4:0:-1, ::-1, 6:0:-2]),
    ((3, 3, 3), (4, 4, 4), (1, 1, 1), {"begin_mask": 0b101}, X[:4, 3:4, :4]),
    ((3, 3, 3), (4, 4, 4), (1, 1, 1), {"end_mask": 0b011}, X[3:, 3:, 3:4]),
    ((2, 2, 2), (3, 3, 3), (-1, 1, -1), {"begin_mask": 0b111, "end_mask": 0b111}, X[::-1, :, ::-1]),
    ((1, 2, 3), (2, 3, 4), (1, 1, 1), {"shrink_axis_mask": 0b101}, X[1, 2:3, 3]),
    ((-1, -2, -3), (0, 0, 0), (1, 1, 1), {"shrink_axis_mask": 0b111}, X[-1, -2, -3]),
    ((1, 0, 3), (3, 0, 5), (1, 1, 1), {"ellipsis_mask": 0b010}, X[1:3, ..., 3:5]),
    ((0, 3), (0, 5), (1, 1), {"ellipsis_mask": 0b01}, X[..., 3:5]),
    ((1, 0, 0), (3, 0, 0), (1, 1, 1), {"ellipsis_mask": 0b010, "new_axis_mask": 0b100}, X[1:3, ..., None]),
    ((0, 1, 0, 2), (0, 3, 0, 4), (1, 1, 1, 1), {"new_axis_mask": 0b0101}, X[None, 1:3, None, 2:4]),
    ((0, 2, 0, 1), (0, 3, 0, 5), (1, 1, 1, 2), {"new_axis_mask": 1, "shrink_axis_mask": 2, "ellipsis_mask": 4},
     X[None, 2, ..., 1:5:2]),
    ((0, 0), (0, 0), (1, 1), {"new_axis_mask": 0b11, "shrink_axis_mask": 0b01}, X[None, None]),
    ((4, 4), (2, 2), (1, 1), {}, X[4:2, 4:2]),
]  # fmt: skip

BY_AXES = [
    ((1,), (5,), (2,), (1,), X[:, 1:5:2]), ((0, 1), (5, 3), (1, 1), (0, 2), X[0:5, :, 1:3]),
    ((-3,), (99,), (1,), (-1,), X[..., -3:]), ((6, 4), (-99, 0), (-2, -1), (2, 0), X[4:0:-1, :, ::-2]),
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("begin", "end", "strides", "masks", "expected"), STRIDED)
def test_strided_slice(begin, end, strides, masks, expected, target):
    attrs = {"begin": begin, "end": end, "strides": strides, **masks}
    Case("StridedSlice", (X,), (np.ascontiguousarray(expected).reshape(expected.shape),), attrs).agrees(target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("begin", "end", "strides", "axes", "expected"), BY_AXES)
def test_strided_slice_v2(begin, end, strides, axes, expected, target):
    attrs = {"begin": begin, "end": end, "strides": strides, "axes": axes}
    Case("StridedSliceV2", (X,), (np.ascontiguousarray(expected),), attrs).agrees(target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("begin", "size"), [((0, 0, 0), (5, 6, 7)), ((1, 2, 3), (2, -1, 4)), ((4, 5, 6), (-1, 1, 1))])
def test_slice(begin, size, target):
    ends = [None if s == -1 else b + s for b, s in zip(begin, size, strict=True)]
    expected = X[tuple(slice(b, e) for b, e in zip(begin, ends, strict=True))]
    Case("Slice", (X,), (np.ascontiguousarray(expected),), {"begin": begin, "size": size}).agrees(target)
