"""Cuts name the elements that numpy's indexing (and so the reference) takes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_examples import Writer, tensor

from kernelgen.composite.document import Operation
from kernelgen.composite.slice_shapes import Cut, cuts, sliced_shape
from kernelgen.semantics import reference
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import sym

ENTRIES = st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([1, 2, 3, -1, -2]))
MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def sliced(name, shape, **attrs):
    return Operation(name, (tensor("x", *shape),), (tensor("y"),), Attrs.of(attrs))


@given(st.data())
def test_cuts_take_what_the_reference_takes(data):
    shape = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3).map(tuple))
    entries = data.draw(st.lists(ENTRIES, min_size=1, max_size=4))
    masks = {name: data.draw(st.integers(0, 15)) for name in MASKS}
    masks["ellipsis_mask"] = data.draw(st.sampled_from([0, 0, 1, 2, 4]))
    begin, end, strides = zip(*entries, strict=True)
    op = sliced("StridedSlice", shape, begin=begin, end=end, strides=strides, **masks)
    try:
        (expected,) = sliced_shape(op)
    except ValueError:
        return  # an element or a dim that is not there
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    w, attrs = Writer(), {"begin": begin, "end": end, "strides": strides, **masks}
    y = w.op("StridedSlice", op.args[0], shape=expected, dtype=None, **attrs)
    (found,) = reference(w.desc("k", op.args, y))(x)
    np.testing.assert_array_equal(found, by_cuts(x, cuts(op)))


def by_cuts(x, found):
    """The elements that the cuts name, one after another."""
    kept = [cut for cut in found if not cut.dropped]
    result = np.empty([cut.count for cut in kept], x.dtype)
    for place in np.ndindex(result.shape):
        index = {cut.axis: cut.start for cut in found if cut.dropped}
        index |= {cut.axis: cut.start + cut.step * k for cut, k in zip(kept, place, strict=True)}
        result[place] = x[tuple(index[d] for d in range(x.ndim))]
    return result


def test_slices_by_axes():
    op = sliced("StridedSliceV2", (5, 6), begin=(-2,), end=(-9,), strides=(-2,), axes=(-1,))
    assert cuts(op) == (Cut(0, 0, 1, 5), Cut(1, 4, -2, 3))
    assert sliced_shape(sliced("Slice", (5, 6), begin=(1, 2), size=(-1, 3))) == ((4, 3),)


def test_symbolic_dims_can_be_taken_whole_backwards_or_at_an_end():
    n = sym("N")
    whole = sliced("StridedSlice", (n, 4), begin=(0, 1), end=(9, 3), strides=(1, 1), end_mask=1)
    assert cuts(whole)[0] == Cut(0, 0, 1, n)
    backwards = sliced("StridedSlice", (n,), begin=(0,), end=(0,), strides=(-1,), begin_mask=1, end_mask=1)
    assert cuts(backwards) == (Cut(0, n - 1, -1, n),)
    last = sliced("StridedSlice", (n,), begin=(-1,), end=(0,), strides=(1,), shrink_axis_mask=1)
    assert cuts(last) == (Cut(0, n - 1, dropped=True),)
    first = sliced("StridedSlice", (n,), begin=(0,), end=(1,), strides=(1,))
    assert cuts(first) == (Cut(0),)
    but_first = sliced("StridedSlice", (n,), begin=(1,), end=(0,), strides=(1,), end_mask=1)
    assert cuts(but_first) == (Cut(0, 1, 1, n - 1),)
    but_last = sliced("StridedSlice", (n,), begin=(0,), end=(-1,), strides=(1,))
    assert cuts(but_last) == (Cut(0, 0, 1, n - 1),)
    named = sliced("StridedSlice", (n, n + 3), begin=(1, n), end=(n, n + 2), strides=(1, 1))
    assert cuts(named) == (Cut(0, 1, 1, n - 1), Cut(1, n, 1, 2))


@pytest.mark.parametrize(("match", "shape", "attrs"), [
    ("a stride is 0", (4,), {"begin": (0,), "end": (4,), "strides": (0,)}),
    ("no element 4", (4,), {"begin": (4,), "end": (5,), "strides": (1,), "shrink_axis_mask": 1}),
    ("more dims", (4,), {"begin": (0, 0), "end": (1, 1), "strides": (1, 1)}),
    ("number of entries", (4,), {"begin": (0,), "end": (1, 1), "strides": (1,)}),
    ("depends on its size", (sym("N"),), {"begin": (0,), "end": (3,), "strides": (1,)}),
    ("depends on its size", (sym("N"),), {"begin": (0,), "end": (sym("M"),), "strides": (1,)}),
    ("depends on its size", (sym("N"),), {"begin": (2,), "end": (3,), "strides": (1,), "shrink_axis_mask": 1}),
])  # fmt: skip
def test_faults(match, shape, attrs):
    with pytest.raises(ValueError, match=match):
        cuts(sliced("StridedSlice", shape, **attrs))
