"""Draws show what operators do: both sides of conditions, ties, domains kept, special numbers."""

from __future__ import annotations

from typing import Any

import kernel_examples as examples
import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

from kernelgen.composite.description import KernelDesc
from kernelgen.enclosure import enclose, enclosed_values
from kernelgen.samples import trials
from kernelgen.samples.marks import structured, with_special_numbers
from kernelgen.samples.profiles import KINDS, Profile
from kernelgen.tensor.dtypes import BOOL, COMPLEX64, FLOAT16, FLOAT32, INT32, DType

Array = np.ndarray[Any, Any]


def finite_draws(desc: KernelDesc) -> list[list[Array]]:
    """All draws but that of special numbers."""
    first, _, *others = trials(desc)
    return [first, *others]


def compared(name: str) -> KernelDesc:
    w, x, y = Writer(), tensor("x", 40, 50), tensor("y", 40, 50)
    flag = w.op(name, x, y, shape=(40, 50), dtype=BOOL)
    return w.desc(name, (x, y), w.op("Select", flag, x, y, shape=(40, 50), dtype=x.dtype))


@pytest.mark.parametrize("name", ["Less", "GreaterEqual", "Equal"])
def test_conditions_hold_fail_and_tie_within_one_array(name: str):
    x, y = next(trials(compared(name)))
    assert (x < y).any()
    assert (x > y).any()
    assert (x == y).any()


@pytest.mark.parametrize("bound", [0.5, -3.0, 100.0, 1e-6])
def test_a_constant_that_is_compared_with_is_met_and_passed_on_both_sides(bound: float):
    w, x = Writer(), tensor("x", 400)
    flag = w.op("LessEqual", x, constant(bound), shape=(400,), dtype=BOOL)
    values = np.concatenate([draw[0] for draw in finite_draws(w.desc("bound", (x,), flag))])
    assert (values < np.float32(bound)).any()
    assert (values > np.float32(bound)).any()
    assert (values == np.float32(bound)).any()


def test_numbers_of_a_plain_sum_have_both_signs_zeros_and_many_exponents():
    x, y = next(trials(KernelDescs.plain_sum()))
    for value in (x, y):
        assert (value < 0).mean() > 0.1
        assert (value > 0).mean() > 0.1
        assert (value == 0).any()
        assert np.ptp(np.log2(np.abs(value[value != 0]))) > 5


class KernelDescs:
    """Kernels that show what draws are for."""

    @staticmethod
    def plain_sum() -> KernelDesc:
        w, x, y = Writer(), tensor("x", 30, 40), tensor("y", 30, 40)
        return w.desc("sum", (x, y), w.op("Add", x, y, shape=(30, 40)))

    @staticmethod
    def chain(*names: str) -> KernelDesc:
        """Operators of one operand, then a sum over all: one number outside of a domain would spoil it."""
        w, x = Writer(), tensor("x", 20, 30)
        value = x
        for name in names:
            value = w.op(name, value, shape=(20, 30))
        return w.desc("_".join(names), (x,), w.op("ReduceSum", value, shape=(1,), axis=(0, 1)))

    @staticmethod
    def variance() -> KernelDesc:
        """The root of a difference of two inputs, in a sum."""
        w, x, y = Writer(), tensor("x", 20, 30), tensor("y", 20, 30)
        root = w.op("Sqrt", w.op("Sub", x, w.op("Mul", y, y, shape=(20, 30)), shape=(20, 30)), shape=(20, 30))
        return w.desc("variance", (x, y), w.op("ReduceSum", root, shape=(20,), axis=(1,)))


@pytest.mark.parametrize(
    "desc",
    [
        KernelDescs.chain("Log"), KernelDescs.chain("Sqrt"), KernelDescs.chain("Neg", "Sqrt"), KernelDescs.chain("Asin"),
        KernelDescs.chain("Acosh"), KernelDescs.chain("Log", "Log"), KernelDescs.chain("Reciprocal", "Rsqrt"),
        KernelDescs.chain("Atanh"), KernelDescs.variance(),
    ],
    ids=lambda d: d.name,
)  # fmt: skip
def test_domains_are_kept(desc: KernelDesc):
    for result in enclose(desc, next(trials(desc))):
        assert np.isfinite(result.low).all()
        assert np.isfinite(result.high).all()


def test_sums_stay_well_conditioned():
    desc = examples.column_sum(400, 30)
    (found,) = enclose(desc, next(trials(desc)))
    assert ((found.high - found.low) <= 1e-4 * np.abs(found.low)).mean() > 0.8


def test_the_second_draw_has_special_numbers():
    draws = list(trials(KernelDescs.plain_sum()))
    numbers = np.concatenate([draws[1][0].ravel(), draws[1][1].ravel()])
    assert np.isnan(numbers).any()
    assert np.isinf(numbers).any()
    assert ((numbers != 0) & (np.abs(numbers) < 2.0**-126)).any()
    assert (np.signbit(numbers) & (numbers == 0)).any()
    assert np.isfinite(draws[0][0]).all()


def test_half_precision_has_special_numbers_of_its_own():
    value = with_special_numbers(np.ones(2000, np.float16), FLOAT16, np.random.default_rng(0))
    assert {np.float16(2**-24), np.float16(6e4)} <= set(value[~np.isnan(value)])


def test_rows_are_equal_at_times_and_extremes_come_last():
    random = np.random.default_rng(3)
    values = [structured(random.standard_normal((300, 40)).astype(np.float32), random) for _ in range(6)]
    assert any((np.ptp(value, axis=1) == 0).any() for value in values)
    for axis, last in ((0, 299), (1, 39)):
        assert max((np.argmax(value, axis=axis) == last).mean() for value in values) > 0.08
        assert max((np.argmin(value, axis=axis) == last).mean() for value in values) > 0.08


def test_structure_keeps_the_numbers_of_an_array_without_rows():
    random = np.random.default_rng(3)
    value = random.standard_normal(100).astype(np.float32)
    assert sorted(structured(value.copy(), random)) == sorted(value)


def test_integers_have_both_signs_and_ties():
    w, x = Writer(), tensor("x", 300, dtype=INT32)
    (value,) = next(trials(w.desc("abs", (x,), w.op("Abs", x, shape=(300,)))))
    assert (value < 0).any()
    assert len(np.unique(value)) < 50


def test_the_same_seed_draws_the_same_and_another_one_others():
    desc = examples.layer_norm()
    one, again, other = (next(trials(desc, seed)) for seed in (5, 5, 6))
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_profiles_draw_the_shape_and_the_data_type(kind: str):
    random = np.random.default_rng(0)
    assert Profile(kind).draw(FLOAT16, (3, 5), random).dtype == np.float16
    assert Profile(kind).draw(INT32, (3, 5), random).shape == (3, 5)
    assert Profile(kind).draw(BOOL, (), random).shape == ()


def test_an_epsilon_below_a_root_shows():
    """Rows of equal numbers have no variance: what is added to it decides the result."""
    desc = examples.layer_norm(40, 64)
    added = next(op.args[0] for op in desc.operators if op.op.name == "Add" and str(op.args[1].constant) == "[1.e-05]")
    values = [enclosed_values(desc, draw)[added].low for draw in finite_draws(desc)]
    assert min(value.min() for value in values) < 1e-3


@pytest.mark.parametrize("dtype", [BOOL, INT32, FLOAT16, FLOAT32, COMPLEX64])
@pytest.mark.parametrize("kind", ["signed", "positive", "near", "flags"])
def test_a_number_without_dims_is_an_array_too(kind: str, dtype: DType):
    """Which is updated in place where a kernel assigns to it."""
    drawn = Profile(kind, 1.0).draw(dtype, (), np.random.default_rng(0))
    assert isinstance(drawn, np.ndarray)
    assert (drawn.shape, drawn.dtype) == ((), dtype.numpy)
