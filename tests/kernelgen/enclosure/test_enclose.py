"""Ranges hold every right result, and little else."""

from __future__ import annotations

from random import Random
from typing import Any

import kernel_examples as examples
import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.scalar_rules import ELEMENTWISE
from kernelgen.enclosure import agree, enclose
from kernelgen.enclosure.interval import Interval
from kernelgen.enclosure.table import RULES
from kernelgen.semantics.table import MEANINGS
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, COMPLEX64, COMPLEX128, FLOAT16, FLOAT64, INT16, INT32, INT64, DType
from tests.random_kernels.generate import kernel

NAN, INF = np.nan, np.inf
Array = np.ndarray[Any, Any]


def unary(name: str, size: int = 3, kind: Any = None, **attrs: object) -> KernelDesc:
    w, x = Writer(), tensor("x", size)
    return w.desc(name, (x,), w.op(name, x, shape=(size,), dtype=kind, **attrs))


def binary(name: str, size: int = 3, kind: Any = None) -> KernelDesc:
    w, x, y = Writer(), tensor("x", size), tensor("y", size)
    return w.desc(name, (x, y), w.op(name, x, y, shape=(size,), dtype=kind))


def single(*values: float) -> Array:
    return np.asarray(values, np.float32)


def results(desc: KernelDesc, inputs: list[Array]) -> list[Array]:
    given = [array.copy() for array in inputs]
    return [*kernelgen.reference(desc)(*given), *(given[i] for i in desc.updated_inputs)]


def fault(desc: KernelDesc, inputs: list[Array], found: list[Array]) -> str:
    return agree([f"r{i}" for i in range(len(found))], found, enclose(desc, inputs)).fault


def test_every_operator_that_has_a_meaning_has_a_rule():
    assert {op.name for op in {*ELEMENTWISE, *MEANINGS} - set(RULES)} == {"Custom", "UserDefined"}


def test_whole_quotients_with_infinities_are_numpys():
    desc = binary("FloorDiv", size=6)
    x, y = single(31, -2, 0, INF, -INF, 7), single(-INF, INF, -INF, 2, 3, 2)
    with np.errstate(invalid="ignore"):
        assert not fault(desc, [x, y], [np.floor_divide(x, y)])
    assert fault(desc, [x, y], [np.floor(x / y)])


@pytest.mark.parametrize("seed", range(30))
def test_what_the_operators_mean_lies_inside(seed: int):
    """Random kernels, evaluated operator by operator with the rounding of each data type."""
    sample = kernel(Random(seed), elements=200, steps=20)
    for inputs in (sample.inputs, *sample.others):
        assert not fault(sample.desc, list(inputs), results(sample.desc, list(inputs)))


@pytest.mark.parametrize(
    "desc",
    [examples.softmax(), examples.layer_norm(), examples.transpose_add(), binary("Mul"), binary("RealDiv")],
    ids=lambda d: d.name,
)
def test_a_result_that_is_a_little_off_lies_outside(desc: KernelDesc):
    random = np.random.default_rng(0)
    inputs = [random.uniform(0.5, 2, [int(str(d)) for d in t.shape]).astype(np.float32) for t in desc.inputs]
    found = results(desc, inputs)
    assert not fault(desc, inputs, found)
    assert fault(desc, inputs, [(x * 1.0005).astype(np.float32) for x in found])


@pytest.mark.parametrize("name", ["Add", "Sub", "Mul", "RealDiv", "Maximum"])
def test_a_correctly_rounded_operator_is_known_to_the_last_place(name: str):
    inputs = [single(1.1, -2.7, 1e-3), single(0.7, 3.3, 17.0)]
    (found,) = results(binary(name), inputs)
    assert not fault(binary(name), inputs, [found])
    assert fault(binary(name), inputs, [np.nextafter(found, np.float32(INF), dtype=np.float32)])


def test_more_digits_than_the_data_type_has_are_right_too():
    """A fused multiply-add rounds once: the product in it is not a number of float32."""
    w, x, y, z = Writer(), tensor("x", 1), tensor("y", 1), tensor("z", 1)
    desc = w.desc("fma", (x, y, z), w.op("Add", w.op("Mul", x, y, shape=(1,)), z, shape=(1,)))
    inputs = [single(1 + 2**-12), single(1 + 2**-12), single(-1 - 2**-11)]
    fused = single(2**-24)
    assert fused[0] != results(desc, inputs)[0][0]
    assert not fault(desc, inputs, [fused])


def test_what_cannot_be_a_number_must_be_nan_and_what_is_infinite_must_be():
    inputs = [single(-1.0, INF, 4.0)]
    assert not fault(unary("Sqrt"), inputs, [single(NAN, INF, 2.0)])
    assert fault(unary("Sqrt"), inputs, [single(0.0, INF, 2.0)])
    assert fault(unary("Sqrt"), inputs, [single(NAN, 3e38, 2.0)])
    assert fault(unary("Sqrt"), inputs, [single(NAN, INF, NAN)])


def test_the_sign_of_zero_shows_in_a_quotient():
    inputs = [single(1.0, 1.0, 0.0), single(0.0, -0.0, 0.0)]
    assert not fault(binary("RealDiv"), inputs, [single(INF, -INF, NAN)])
    assert fault(binary("RealDiv"), inputs, [single(INF, INF, NAN)])


def test_a_sum_of_negative_zeros_alone_is_a_zero_of_either_sign():
    w, x = Writer(), tensor("x", 3, 2)
    total = w.op("ReduceSum", x, shape=(3,), axis=(1,), keep_dims=False)
    sums, zeros = w.desc("sums", (x,), w.op("Reciprocal", total, shape=(3,))), single(-0.0, -0.0, 0.0, -0.0, -0.0, 0.0)
    inputs = [zeros.reshape(3, 2)]
    for first in (INF, -INF):
        assert not fault(sums, inputs, [single(first, INF, INF)])
    assert fault(sums, inputs, [single(INF, -INF, INF)])
    assert fault(sums, inputs, [single(INF, INF, -INF)])


def test_so_is_a_product_of_matrices_all_of_whose_terms_are():
    w, x, y = Writer(), tensor("x", 3, 2), tensor("y", 2, 1)
    product = w.op("MatMul", x, y, shape=(3, 1), transpose_a=False, transpose_b=False)
    desc = w.desc("product", (x, y), w.op("Reciprocal", product, shape=(3, 1)))
    inputs = [single(-0.0, 0.0, 0.0, 0.0, -0.0, -0.0).reshape(3, 2), single(1.0, -1.0).reshape(2, 1)]
    for first in (INF, -INF):
        assert not fault(desc, inputs, [single(first, INF, INF).reshape(3, 1)])
    assert fault(desc, inputs, [single(INF, -INF, INF).reshape(3, 1)])
    assert fault(desc, inputs, [single(INF, INF, -INF).reshape(3, 1)])


@pytest.mark.parametrize("extents", [(5, 1), (5, 4), (1, 8)])
@pytest.mark.parametrize("name", ["ReduceSum", "CumSum"])
def test_kernels_give_one_of_both(name: str, extents: tuple[int, int]):
    w, x = Writer(), tensor("x", *extents)
    total = (
        w.op("ReduceSum", x, shape=extents[:1], axis=(1,), keep_dims=False)
        if name == "ReduceSum"
        else w.op("CumSum", x, shape=extents, axis=1, exclusive=False, reverse=False)
    )
    desc = w.desc("sums", (x,), w.op("Reciprocal", total, shape=total.shape))
    zeros = np.full(extents, -0.0, np.float32)
    assert not fault(desc, [zeros], list(kernelgen.compile(desc, "cpu")(zeros)))


def test_a_truth_value_that_rounding_may_turn_is_both():
    w, x = Writer(), tensor("x", 3)
    root = w.op("Exp", x, shape=(3,))
    flag = w.op("Greater", root, constant(1.0), shape=(3,), dtype=BOOL)
    desc = w.desc("flag", (x,), flag)
    (found,) = enclose(desc, [single(1.0, -1.0, 0.0)])
    assert (found.low.tolist(), found.high.tolist()) == ([True, False, False], [True, False, True])


def test_a_choice_by_such_a_truth_value_is_either():
    w, x = Writer(), tensor("x", 1)
    flag = w.op("Greater", w.op("Exp", x, shape=(1,)), constant(1.0), shape=(1,), dtype=BOOL)
    chosen = w.op("Select", flag, constant(5.0), constant(3.0), shape=(1,), dtype=x.dtype)
    (found,) = enclose(w.desc("either", (x,), chosen), [single(0.0)])
    assert (found.low.item(), found.high.item()) == (3.0, 5.0)


def test_exact_comparisons_know_ties():
    inputs = [single(1.0, 2.0, 3.0), single(2.0, 2.0, 2.0)]
    less, less_equal = binary("Less", kind=BOOL), binary("LessEqual", kind=BOOL)
    assert fault(less, inputs, results(less_equal, inputs))
    assert not fault(less, inputs, results(less, inputs))


def test_sums_of_whole_numbers_are_exact_and_others_are_not():
    w, x = Writer(), tensor("x", 1, 1000)
    desc = w.desc("total", (x,), w.op("ReduceSum", x, shape=(1,), axis=(1,)))
    whole = np.arange(1000, dtype=np.float32)[None]
    assert fault(desc, [whole], [single(499501)])
    assert not fault(desc, [whole], [single(499500)])
    (found,) = enclose(desc, [whole / 3])
    assert 1e-7 < (found.high - found.low)[0] / found.low[0] < 5e-5


def test_cancellation_widens_a_range():
    """Two equal sums: their difference is only known to the roundings of the sums."""
    w, x, y = Writer(), tensor("x", 1, 100), tensor("y", 1, 100)
    sums = [w.op("ReduceSum", t, shape=(1,), axis=(1,)) for t in (x, y)]
    desc = w.desc("difference", (x, y), w.op("Sub", *sums, shape=(1,)))
    values = np.random.default_rng(1).uniform(1, 2, (1, 100)).astype(np.float32)
    (found,) = enclose(desc, [values, values])
    assert found.low[0] < -1e-6 < 1e-6 < found.high[0]


def test_an_overflow_within_a_sum_says_nothing_of_it():
    w, x = Writer(), tensor("x", 1, 4)
    desc = w.desc("total", (x,), w.op("ReduceSum", x, shape=(1,), axis=(1,)))
    (found,) = enclose(desc, [single(3e38, 3e38, -3e38, -3e38)[None]])
    assert found.unknown.all()


def test_an_infinite_term_decides_a_sum_unless_the_finite_ones_may_overflow_to_the_other_side():
    w, x = Writer(), tensor("x", 3, 4)
    desc = w.desc("total", (x,), w.op("ReduceSum", x, shape=(3,), axis=(1,)))
    inf = np.inf
    inputs = [np.stack([single(3e38, 3e38, 1, -inf), single(3e38, 1, 1, -inf), single(3e38, 3e38, inf, -inf)])]
    (found,) = enclose(desc, inputs)
    assert found.unknown.tolist() == [True, False, False]
    assert not fault(desc, inputs, [single(inf, -inf, np.nan)])
    assert fault(desc, inputs, [single(inf, np.nan, np.nan)])
    assert fault(desc, inputs, [single(inf, -inf, inf)])


def test_products_that_may_overflow_against_an_infinity_are_no_certain_nan():
    """inf - 6e308 is infinite in one order of a fused multiply-add, NaN where the product is rounded on its own."""
    w, x, y = Writer(), tensor("x", 3, 2, dtype=FLOAT64), tensor("y", 2, 1, dtype=FLOAT64)
    desc = w.desc("products", (x, y), w.op("MatMul", x, y, shape=(3, 1), dtype=FLOAT64))
    given = [np.asarray([[INF, 6], [INF, 1], [NAN, 6]]), np.asarray([[1], [-1e308]])]
    for first in (INF, NAN, -INF):
        assert not fault(desc, given, [np.asarray([[first], [INF], [NAN]])])
    assert fault(desc, given, [np.asarray([[INF], [NAN], [NAN]])])
    assert fault(desc, given, [np.asarray([[INF], [INF], [INF]])])


def test_terms_of_float64_that_may_overflow_against_an_infinity_are_no_certain_nan():
    w, x = Writer(), tensor("x", 2, 3, dtype=FLOAT64)
    desc = w.desc("total", (x,), w.op("ReduceSum", x, shape=(2,), dtype=FLOAT64, axis=(1,)))
    given = [np.asarray([[1e308, 1e308, -INF], [INF, 1, -INF]])]
    for first in (-INF, NAN):
        assert not fault(desc, given, [np.asarray([first, NAN])])
    assert fault(desc, given, [np.asarray([NAN, -INF])])


def test_what_overflows_is_seen_beside_an_infinite_factor_of_a_rounded_one():
    """The first term of a row overflows in float32, the second is infinite: -inf where that is first, NaN else."""
    w, x, y = Writer(), tensor("x", 1, 2, dtype=BFLOAT16), tensor("y", 2, 1, dtype=BFLOAT16)
    scaled = w.op("Mul", x, constant(2.0, BFLOAT16), shape=(1, 2), dtype=BFLOAT16)
    desc = w.desc("sums", (x, y), w.op("MatMul", scaled, y, shape=(1, 1), dtype=BFLOAT16))
    given = [np.asarray([[1e38, 1.5]]).astype(BFLOAT16.numpy), np.asarray([[1e38], [-INF]]).astype(BFLOAT16.numpy)]
    for one in (-INF, NAN):
        assert not fault(desc, given, [np.asarray([[one]]).astype(BFLOAT16.numpy)])


def test_a_wave_of_what_may_be_infinite_may_be_nan():
    w, x = Writer(), tensor("x", 2, 2)
    desc = w.desc("wave", (x,), w.op("Sin", w.op("ReduceSum", x, shape=(2,), axis=(1,)), shape=(2,)))
    (found,) = enclose(desc, [single(3e38, 3e38, 3, 4).reshape(2, 2)])
    assert found.unknown.tolist() == [True, False]
    assert not fault(desc, [single(3e38, -3e38, 3, 4).reshape(2, 2)], [single(NAN, np.sin(7))])
    assert fault(desc, [single(1, 2, 3, 4).reshape(2, 2)], [single(np.sin(3), NAN)])


def test_half_precision_is_known_to_its_own_last_place():
    w, x = Writer(), tensor("x", 3, dtype=FLOAT16)
    desc = w.desc("exp", (x,), w.op("Exp", x, shape=(3,)))
    inputs = [np.asarray([0.1, 1, -3], np.float16)]
    (found,) = results(desc, inputs)
    assert not fault(desc, inputs, [found])
    assert fault(desc, inputs, [np.nextafter(np.nextafter(found, np.float16(9)), np.float16(9))])


def test_integers_wrap_around_and_must_be_equal():
    w, x, y = Writer(), tensor("x", 2, dtype=INT32), tensor("y", 2, dtype=INT32)
    desc = w.desc("add", (x, y), w.op("Add", x, y, shape=(2,)))
    inputs = [np.asarray([2**31 - 1, 1], np.int32), np.asarray([1, 1], np.int32)]
    assert not fault(desc, inputs, [np.asarray([-(2**31), 2], np.int32)])
    assert fault(desc, inputs, [np.asarray([-(2**31), 3], np.int32)])


def cast(kind: DType, name: str, shape: tuple[int, ...], *more: Any, **attrs: object) -> KernelDesc:
    """An operator on 2 x 2 floats that are cut to integers of a data type."""
    w, x = Writer(), tensor("x", 2, 2)
    whole = w.op("Cast", x, shape=(2, 2), dtype=kind, dst_type=kind.name)
    return w.desc(name, (x,), w.op(name, whole, *more, shape=shape, dtype=kind, **attrs))


DOUBTFUL = np.asarray([[INF, 5], [7, 9]], np.float32)
"""Cut to integers, the first may be any number."""


@pytest.mark.parametrize(
    ("desc", "known"),
    [
        (cast(INT32, "ReduceSum", (2,), axis=(1,)), [False, True]),
        (cast(INT32, "ReduceProd", (2,), axis=(0,)), [False, True]),
        (cast(INT32, "CumSum", (2, 2), axis=0), [[False, True], [False, True]]),
        (cast(INT32, "CumProd", (2, 2), axis=1), [[False, False], [True, True]]),
        (cast(INT32, "Abs", (2, 2)), [[False, True], [True, True]]),
        (cast(INT32, "FloorMod", (2, 2), constant(4, INT32)), [[False, True], [True, True]]),
    ],
    ids=["ReduceSum", "ReduceProd", "CumSum", "CumProd", "Abs", "FloorMod"],
)
def test_integers_that_may_be_any_number_make_any_number(desc: KernelDesc, known: Any):
    (found,) = enclose(desc, [DOUBTFUL])
    np.testing.assert_array_equal(found.points, known)
    assert not fault(desc, [DOUBTFUL], results(desc, [DOUBTFUL]))
    assert (found.low <= found.high).all()


def test_what_may_be_any_number_may_be_any_narrower_one():
    w, x = Writer(), tensor("x", 2, 2)
    whole = w.op("Cast", x, shape=(2, 2), dtype=INT64, dst_type="int64")
    desc = w.desc("narrowed", (x,), w.op("Cast", whole, shape=(2, 2), dtype=INT16, dst_type="int16"))
    (found,) = enclose(desc, [DOUBTFUL])
    assert (found.low[0, 0], found.high[0, 0]) == (-(2**15), 2**15 - 1)
    assert found.points.tolist() == [[False, True], [True, True]]


def test_a_factor_that_may_be_any_number_makes_any_product_of_its_row():
    w, x, y = Writer(), tensor("x", 2, 2), tensor("y", 2, 2, dtype=INT32)
    whole = w.op("Cast", x, shape=(2, 2), dtype=INT32, dst_type="int32")
    desc = w.desc("products", (x, y), w.op("MatMul", whole, y, shape=(2, 2), dtype=INT32))
    (found,) = enclose(desc, [DOUBTFUL, np.asarray([[1, 2], [3, 4]], np.int32)])
    assert found.points.tolist() == [[False, False], [True, True]]


def test_integers_beyond_float64_are_known_where_their_operands_are():
    """Ranges of others are computed in float64, which such numbers do not fit."""
    w, x, y = Writer(), tensor("x", 2), tensor("y", 2, dtype=INT64)
    whole = w.op("Cast", x, shape=(2,), dtype=INT64, dst_type="int64")
    desc = w.desc("thirds", (x, y), w.op("FloorDiv", w.op("Add", whole, y, shape=(2,)), constant(3, INT64), shape=(2,)))
    given = [single(INF, 0), np.asarray([1, 2**63 - 1])]
    (found,) = enclose(desc, given)
    assert found.low[1] == found.high[1] == (2**63 - 1) // 3
    assert found.low[0] < 0 < found.high[0]


def test_a_cast_of_what_does_not_fit_may_be_any_number():
    desc = unary("Cast", kind=INT32)
    for found in ([7, 0, 2], [-(2**31), 3, 2]):
        assert not fault(desc, [single(1e20, NAN, 2.9)], [np.asarray(found, np.int32)])
    assert fault(desc, [single(1e20, NAN, 2.9)], [np.asarray([0, 0, 3], np.int32)])


def test_an_argument_of_the_maximum_is_any_place_that_may_hold_it():
    w, x = Writer(), tensor("x", 1, 4)
    desc = w.desc("argmax", (x,), w.op("Argmax", w.op("Exp", x, shape=(1, 4)), shape=(1,), dtype=INT32, axis=(1,)))
    (tie,) = enclose(desc, [single(0, 1, np.nextafter(np.float32(1), np.float32(0)), -1)[None]])
    assert (tie.low[0], tie.high[0]) == (1, 2)
    (clear,) = enclose(desc, [single(0, 1, 2, -1)[None]])
    assert (clear.low[0], clear.high[0]) == (2, 2)


def test_complex_numbers_are_known_by_their_parts():
    w, x, y = Writer(), tensor("x", 1, dtype=COMPLEX64), tensor("y", 1, dtype=COMPLEX64)
    desc = w.desc("product", (x, y), w.op("Mul", x, y, shape=(1,)))
    inputs = [np.asarray([1 + 2j], np.complex64), np.asarray([3 - 1j], np.complex64)]
    assert not fault(desc, inputs, [np.asarray([5 + 5j], np.complex64)])
    assert fault(desc, inputs, [np.asarray([5 + 5.0001j], np.complex64)])


@pytest.mark.parametrize("kind", [COMPLEX64, COMPLEX128], ids=str)
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_quotients_of_complex_numbers_are_known_at_all_magnitudes(kind: DType, size: float) -> None:
    w, x, y = Writer(), tensor("x", 64, dtype=kind), tensor("y", 64, dtype=kind)
    desc = w.desc("quotient", (x, y), w.op("RealDiv", x, y, shape=(64,)))
    parts = np.random.default_rng(0).normal(size=(4, 64)) * size
    inputs = [(parts[0] + 1j * parts[1]).astype(kind.numpy), (parts[2] + 1j * parts[3]).astype(kind.numpy)]
    found = np.divide(*(array.astype(np.clongdouble) for array in inputs))
    assert not fault(desc, inputs, [found.astype(kind.numpy)])
    off = 1 + 100 * np.finfo(kind.numpy).eps
    assert fault(desc, inputs, [(found * off).astype(kind.numpy)])


def test_the_fault_names_the_first_place_and_the_range():
    wanted = [Interval(single(1, 2, 3), single(1, 2.5, 3))]
    assert agree(["y"], [single(1, 2.25, 3)], wanted).fault == ""
    found = agree(["y"], [single(1, 2.75, 4)], wanted).fault
    assert found == "y: 2 of 3 elements differ, first at [1]: 2.75, expected 2.0 to 2.5"


def test_narrowed_complex_numbers_are_rounded_part_by_part():
    w, x = Writer(), tensor("x", 3, dtype=COMPLEX128)
    desc = w.desc("narrowed", (x,), w.op("Cast", x, shape=(3,), dtype=COMPLEX64, dst_type="complex64"))
    numbers = np.asarray([1 / 3 - 2j / 3, 0.1 + 0.7j, 1e30 - 1e-300j])
    assert not fault(desc, [numbers], [numbers.astype(np.complex64)])
    assert fault(desc, [numbers], [(numbers * (1 + 1e-5)).astype(np.complex64)])


def test_each_product_of_a_sum_may_lose_half_of_the_smallest_number():
    w, x, y = Writer(), tensor("x", 1, 4), tensor("y", 4, 1)
    desc = w.desc("products", (x, y), w.op("MatMul", x, y, shape=(1, 1), transpose_a=False, transpose_b=False))
    small, part = np.full((1, 4), 2.0**-140, np.float32), np.full((4, 1), 2.0**-9 * 0.6, np.float32)
    separately = np.full((1, 1), 4 * 2.0**-149, np.float32)  # 0.6 of the smallest number, rounded four times
    together = np.full((1, 1), 2 * 2.0**-149, np.float32)
    assert not fault(desc, [small, part], [separately])
    assert not fault(desc, [small, part], [together])
    assert fault(desc, [small, part], [2 * separately])
    assert fault(desc, [0 * small, part], [separately])


def test_a_factor_that_may_round_to_zero_says_nothing_beside_an_infinite_one():
    """The smallest number of half precision times 2^-6 is 0 or, with more digits, is not: 0 times infinity is NaN."""
    w, x, y = Writer(), tensor("x", 2, 2, dtype=FLOAT16), tensor("y", 2, 2, dtype=FLOAT16)
    small = w.op("Mul", x, constant(2.0**-6, FLOAT16), shape=(2, 2), dtype=FLOAT16)
    desc = w.desc("sums", (x, y), w.op("MatMul", small, y, shape=(2, 2), dtype=FLOAT16))
    given = [np.asarray([[2.0**-24, 1], [1, 1]], np.float16), np.asarray([[INF, 1], [1, 1]], np.float16)]
    for first in (NAN, INF):
        assert not fault(desc, given, [np.asarray([[first, 2.0**-6], [INF, 2.0**-5]], np.float16)])
    assert fault(desc, given, [np.asarray([[INF, 2.0**-6], [NAN, 2.0**-5]], np.float16)])
