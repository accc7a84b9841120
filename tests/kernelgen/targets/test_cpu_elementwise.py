"""Elementwise nests on the CPU target against numpy: extents around the vector width, every function, every dtype."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgen.errors import UnsupportedError
from kernelgen.nest.nodes import Call, Literal, Load, Nest, Store
from kernelgen.nest.scalars import SCALARS
from kernelgen.targets.cpu import TARGET
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, DTYPES, FLOAT32, Category, DType, dtype
from tests.support.nests import I, block, buffer, call, loop, map_nest, output, run, run_map

EXTENTS = (0, 1, 2, 3, 7, 8, 9, 31, 64, 65, 1000)
REAL = tuple(d for d in DTYPES if d.category is not Category.COMPLEX)
NUMBERS = tuple(d for d in REAL if d != BOOL)
FLOATS = tuple(d for d in REAL if d.is_float)
INTEGERS = tuple(d for d in REAL if d.is_integer)


def sample(type_: DType, size: int, seed: int = 0) -> np.ndarray:
    """Mixed signs and exponents; integers over their whole range with small ones and zeros among them."""
    random = np.random.default_rng(seed)
    if type_ == BOOL:
        return random.integers(0, 2, size).astype(bool)
    if type_.is_float:
        values = random.standard_normal(size) * 10.0 ** random.integers(-3, 3, size)
        return values.astype(type_.numpy)
    limits = np.iinfo(type_.numpy)
    values = random.integers(limits.min, limits.max, size, dtype=type_.numpy, endpoint=True)
    small = random.integers(0 if limits.min == 0 else -3, 4, size).astype(type_.numpy)
    return np.where(random.integers(0, 2, size) == 0, values, small)


def assert_same(got: np.ndarray, expected: np.ndarray) -> None:
    """Equal values, NaN equal to NaN; numpy's own comparison does not know the NaN of bfloat16."""
    assert got.dtype == expected.dtype
    if got.dtype == BFLOAT16.numpy:
        got, expected = got.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("extent", EXTENTS)
def test_extents(extent: int) -> None:
    x, y = sample(FLOAT32, extent, 1), sample(FLOAT32, extent, 2)
    got = run_map(lambda a, b: call("mul", call("add", a, b), b), x, y)
    assert_same(got, (x + y) * y)


ARITHMETIC = [
    (function, type_)
    for function in ("add", "sub", "mul", "maximum", "minimum")
    for type_ in REAL
    if (function, type_) != ("sub", BOOL)  # numpy has no difference of bools
]


@pytest.mark.parametrize(("function", "type_"), ARITHMETIC, ids=str)
def test_arithmetic(function: str, type_: DType) -> None:
    x, y = sample(type_, 77, 1), sample(type_, 77, 2)
    assert_same(run_map(lambda a, b: call(function, a, b), x, y), SCALARS[function].numpy(x, y))


@pytest.mark.parametrize("type_", FLOATS, ids=str)
@pytest.mark.parametrize("function", ["maximum", "minimum"])
@pytest.mark.parametrize("bound", [0.25, -np.inf, np.nan])
@pytest.mark.parametrize("is_first", [False, True])
def test_known_bounds_hand_on_what_is_no_number(function: str, type_: DType, bound: float, is_first: bool) -> None:
    x = sample(type_, 77)
    x[::5] = np.nan
    known = Literal(bound, type_)
    got = run_map(lambda a: call(function, known, a) if is_first else call(function, a, known), x)
    with np.errstate(invalid="ignore"):
        expected = SCALARS[function].numpy(x, np.asarray(bound, type_.numpy))
    assert_same(got, expected)


def test_a_known_bound_is_one_comparison() -> None:
    nest = map_nest(lambda a: call("maximum", a, Literal(0.25, FLOAT32)), 64, FLOAT32)
    text = TARGET.emit(nest)
    assert "fcmp ogt" in text
    assert "fcmp uno" not in text


@pytest.mark.parametrize("type_", REAL, ids=str)
@pytest.mark.parametrize("function", ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
def test_comparisons(function: str, type_: DType) -> None:
    x, y = sample(type_, 77, 1), sample(type_, 77, 2)
    y[::5] = x[::5]
    assert_same(run_map(lambda a, b: call(function, a, b), x, y), SCALARS[function].numpy(x, y))


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
@pytest.mark.parametrize("function", ["floor_div", "floor_mod", "mod"])
def test_integer_division_never_traps(function: str, type_: DType) -> None:
    x, y = sample(type_, 200, 1), sample(type_, 200, 2)
    x[:3], y[:3] = np.iinfo(type_.numpy).min, [0, 1, np.array(-1).astype(type_.numpy)]
    with np.errstate(all="ignore"):
        expected = SCALARS[function].numpy(x, y)
    assert_same(run_map(lambda a, b: call(function, a, b), x, y), expected)


@pytest.mark.parametrize("type_", INTEGERS, ids=str)
def test_integer_power(type_: DType) -> None:
    x, y = sample(type_, 50, 1), (np.arange(50) % 7).astype(type_.numpy)
    assert_same(run_map(lambda a, b: call("pow", a, b), x, y), np.power(x, y))


@pytest.mark.parametrize("type_", NUMBERS, ids=str)
@pytest.mark.parametrize("function", ["neg", "abs", "sign", "floor", "ceil", "trunc", "round"])
def test_unary(function: str, type_: DType) -> None:
    x = sample(type_, 100)
    x[0] = 0
    with np.errstate(all="ignore"):
        is_exact = type_.is_integer and function == "round"  # numpy's rint makes floats of integers
        expected = x if is_exact else SCALARS[function].numpy(x).astype(type_.numpy)
    assert_same(run_map(lambda a: call(function, a), x), expected)


@pytest.mark.parametrize("type_", FLOATS, ids=str)
@pytest.mark.parametrize("function", ["div", "floor_div", "mod", "floor_mod"])
def test_float_division(function: str, type_: DType) -> None:
    x, y = sample(type_, 100, 1), sample(type_, 100, 2)
    x[:4], y[:4] = [0.0, -1.0, np.inf, 3.0], [0.0, 0.0, 2.0, -np.inf]
    with np.errstate(all="ignore"):
        wide = (x.astype(np.float32), y.astype(np.float32)) if type_.bits < 32 else (x, y)
        expected = SCALARS[function].numpy(*wide).astype(type_.numpy)
    assert_same(run_map(lambda a, b: call(function, a, b), x, y), expected)


@pytest.mark.parametrize("type_", FLOATS, ids=str)
@pytest.mark.parametrize("function", ["maximum", "minimum", "is_nan", "is_inf", "is_finite", "sign", "abs", "neg"])
def test_special_values(function: str, type_: DType) -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1.0, -2.0], type_.numpy)
    x, y = (grid.ravel().copy() for grid in np.meshgrid(values, values))
    arrays = (x, y)[: SCALARS[function].arity]
    with np.errstate(all="ignore"):
        expected = SCALARS[function].numpy(*arrays)
    assert_same(run_map(lambda *a: call(function, *a), *arrays), expected)


@pytest.mark.parametrize("source", REAL, ids=str)
@pytest.mark.parametrize("target", REAL, ids=str)
def test_casts(source: DType, target: DType) -> None:
    x = sample(source, 70)
    if source.is_float and target.is_integer:
        limits = np.iinfo(target.numpy)
        x = np.clip(np.nan_to_num(x.astype(np.float64)), max(limits.min, -120), min(limits.max, 120)).astype(
            source.numpy
        )
    with np.errstate(all="ignore"):
        expected = (x != 0) if target == BOOL else x.astype(target.numpy)
    assert_same(run_map(lambda a: Call("cast", (a,), target), x), expected)


def test_logic_and_select() -> None:
    x, y = sample(FLOAT32, 50, 1), sample(FLOAT32, 50, 2)
    got = run_map(
        lambda a, b: call(
            "select", call("logical_and", call("less", a, b), call("logical_not", call("greater", b, a))), a, b
        ), x, y,
    )  # fmt: skip
    assert_same(got, np.where((x < y) & ~(y > x), x, y))


def test_mixed_widths_share_one_loop() -> None:
    x = buffer("x", 29, dtype=dtype("float16"))
    y = output("y", 29, dtype=dtype("float64"))
    b = output("b", 29, dtype=BOOL)
    wide = Call("cast", (Load(x, (I,)),), y.dtype)
    body = block(loop(I, 29, Store(y, (I,), wide), Store(b, (I,), call("greater", wide, wide))))
    values, wides, flags = sample(x.dtype, 29), np.zeros(29), np.ones(29, bool)
    run(Nest("mixed", (), (x, y, b), body), values, wides, flags)
    assert_same(wides, values.astype(np.float64))
    assert not flags.any()


def test_complex_is_refused_with_a_reason() -> None:
    with pytest.raises(UnsupportedError) as error:
        TARGET.emit(map_nest(lambda a: a, 4, dtype("complex64")))
    assert error.value.code == "unsupported-dtype"
