import kernel_examples as examples
import numpy as np
from kernel_examples import Writer, constant, tensor

from kernelgen.samples.inputs import bind_symbols, draw, safe_mean
from kernelgen.semantics import reference
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import BOOL, COMPLEX64, FLOAT16, INT32


def test_the_same_seed_draws_the_same():
    first, again, other = draw(examples.softmax(), 1), draw(examples.softmax(), 1), draw(examples.softmax(), 2)
    np.testing.assert_array_equal(first[0], again[0])
    assert (first[0] != other[0]).any()


def test_arrays_have_the_described_shapes_and_types():
    w = Writer()
    inputs = (
        tensor("a", 3, dtype=FLOAT16),
        tensor("b", 4, 5, dtype=INT32),
        tensor("c", 6, dtype=BOOL),
        tensor("z", 2, dtype=COMPLEX64),
    )
    desc = w.desc("k", inputs, w.op("Neg", inputs[0], shape=(3,)))
    for array, described in zip(draw(desc), inputs, strict=True):
        assert (array.shape, array.dtype) == (described.shape, described.dtype.numpy)


def test_an_array_without_elements_is_drawn():
    assert draw(examples.softmax(0, 3))[0].shape == (0, 3)


def test_symbols_get_different_sizes():
    desc = examples.softmax(sym("R"), sym("C"))
    assert draw(desc)[0].shape == (bind_symbols(desc)["R"], bind_symbols(desc)["C"])
    assert len(set(bind_symbols(desc).values())) == 2


def kernel(*steps):
    """Applies unary operators and operators with a constant, one after another, to x."""
    w, x = Writer(), tensor("x", 64)
    value = x
    for step in steps:
        name, *more = step if isinstance(step, tuple) else (step,)
        value = w.op(name, value, *map(constant, more), shape=(64,))
    return w.desc("k", (x,), value)


def test_the_mean_avoids_poles():
    assert safe_mean(kernel("Exp")) == 1
    assert safe_mean(kernel(("Sub", 1.0), "Reciprocal")) == 2
    assert safe_mean(kernel(("Sub", 3.0), "Sqrt")) == 4
    assert safe_mean(kernel(("Sub", 1.0), "Log")) == 2


def test_results_are_finite():
    for steps in ((("Sub", 2.0), "Rsqrt"), (("Sub", 1.0), "Log", "Reciprocal")):
        desc = kernel(*steps)
        assert np.isfinite(reference(desc)(*draw(desc))[0]).all()


def test_hopeless_kernels_get_the_first_mean():
    assert safe_mean(kernel(("Mul", 0.0), "Reciprocal")) == 1


def test_indices_are_in_range_also_through_casts():
    w, data, ids = Writer(), tensor("data", 5, 2), tensor("ids", 1000)
    places = w.op("Cast", ids, shape=(1000,), dtype=INT32)
    desc = w.desc("k", (data, ids), w.op("Gather", data, places, shape=(1000, 2), axis=0))
    assert set(np.unique(draw(desc)[1])) == {0, 1, 2, 3, 4}


def test_scatters_also_meet_indices_out_of_range():
    w, data, ids = Writer(), tensor("data", 4000, 2), tensor("ids", 4000, dtype=INT32)
    desc = w.desc("k", (data, ids), w.op("UnsortedSegmentSum", data, ids, shape=(20, 2), num_segments=20))
    assert draw(desc)[1].max() == 21


def test_targets_of_atomic_sums_are_cleared():
    w, d, x = Writer(), tensor("d", 3), tensor("x", 3, 4)
    total = w.op("ReduceSum", x, shape=(3,), axis=(1,), enable_atomic_add=True)
    desc = w.desc("k", (d, x), w.op("Assign", d, total, shape=(3,)))
    assert not draw(desc)[0].any()
    assert draw(desc)[1].any()
