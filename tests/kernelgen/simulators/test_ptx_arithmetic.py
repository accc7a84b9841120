"""Single instructions against exact arithmetic: fractions for floats, Python's integers for integers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.ptx_lines import evaluate, rounded

RANDOM = np.random.default_rng(3)
DTYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}
EXACT: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "fma": lambda a, b, c: a * b + c,
}


def floats(kind: str, count: int, spread: float = 3.0) -> np.ndarray:
    """Numbers of many sizes without zeros; a third of them have few bits, so that ties between two results occur."""
    values = RANDOM.standard_normal(count) * np.exp2(RANDOM.uniform(-spread, spread, count).round())
    few = np.round(values[::3] * 8) / 8
    values[::3] = np.where(few == 0, 0.125, few)
    return values.astype(np.float32).astype(DTYPES[kind])


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div", "fma"])
def test_single_precision_rounds_once(operation: str, mode: str) -> None:
    check_rounding(operation, mode, "f32", 200)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f64"])
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fma"])
def test_other_formats_round_once(operation: str, kind: str) -> None:
    check_rounding(operation, "rn", kind, 200)


def check_rounding(operation: str, mode: str, kind: str, count: int) -> None:
    sources = [floats(kind, count) for _ in range(3 if operation == "fma" else 2)]
    if operation == "fma":  # products that a third number almost cancels, and ties that only its last bits break
        sources[2][::4] = (-sources[0] * sources[1]).astype(DTYPES[kind])[::4]
        sources[2][1::4] = np.float32(2.0**-30)
    operands = ", ".join(["{a}", "{b}", "{c}"][: len(sources)])
    got = evaluate(f"{operation}.{mode}.{kind} {{d}}, {operands};", sources, DTYPES[kind])
    for number, result in enumerate(got):
        exact = EXACT[operation](*(Fraction(float(source[number])) for source in sources))
        assert float(result) == float(rounded(exact, kind, mode)), exact


def test_fma_breaks_a_tie_by_the_last_bits_of_its_addend() -> None:
    """(1 + 2^-12)^2 lies in the middle of two f32 numbers; 2^-80 more decides, and a sum in float64 would have lost that."""
    a, c = np.full(3, 1 + 2.0**-12, np.float32), np.array([2.0**-80, 0, -(2.0**-80)], np.float32)
    got = evaluate("fma.rn.f32 {d}, {a}, {b}, {c};", [a, a, c], np.float32)
    assert (got - 1).tolist() == [2.0**-11 + 2.0**-23, 2.0**-11, 2.0**-11]


@pytest.mark.parametrize(
    ("target", "source", "mode"),
    [
        *(("f32", "f64", mode) for mode in ("rn", "rz", "rm", "rp")),
        *(("f16", "f32", mode) for mode in ("rn", "rz", "rm", "rp")),
        *(("bf16", "f32", mode) for mode in ("rn", "rz")),  # PTX has no others
    ],
)
def test_narrowing(target: str, source: str, mode: str) -> None:
    values = floats(source, 300, 12.0) * floats(source, 300)
    got = evaluate(f"cvt.{mode}.{target}.{source} {{d}}, {{a}};", [values], DTYPES[target])
    for value, result in zip(values, got, strict=True):
        assert float(result) == float(rounded(Fraction(float(value)), target, mode)), value


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_large_integers_to_floats(mode: str) -> None:
    values = RANDOM.integers(-(2**63), 2**63, 200) >> RANDOM.integers(0, 40, 200)
    got = evaluate(f"cvt.{mode}.f32.s64 {{d}}, {{a}};", [values], np.float32)
    for value, result in zip(values, got, strict=True):
        assert float(result) == float(rounded(Fraction(int(value)), "f32", mode)), value


def test_floats_to_integers_clamp() -> None:
    values = np.array([1.5, 2.5, -1.5, -0.5, 3e9, -3e9, np.nan, np.inf, -np.inf], np.float32)
    limits = np.iinfo(np.int32)
    nearest = [2, 2, -2, 0, limits.max, limits.min, 0, limits.max, limits.min]
    assert evaluate("cvt.rni.s32.f32 {d}, {a};", [values], np.int32).tolist() == nearest
    unsigned = [1, 2, 0, 0, 3000000000, 0, 0, 2**32 - 1, 0]
    assert evaluate("cvt.rzi.u32.f32 {d}, {a};", [values], np.uint32).tolist() == unsigned
    assert evaluate("cvt.rmi.f32.f32 {d}, {a};", [values[:4]], np.float32).tolist() == [1, 2, -2, -1]


def test_flush_and_saturation() -> None:
    values = np.array([1e-40, -1e-40, 0.25, 3.0, -3.0, np.nan], np.float32)
    ones = np.ones_like(values)
    flushed = evaluate("mul.ftz.f32 {d}, {a}, {b};", [values, ones], np.float32)
    assert flushed[:3].tolist() == [0, 0, 0.25]
    assert np.signbit(flushed[1])
    clamped = evaluate("mul.sat.f32 {d}, {a}, {b};", [values, ones], np.float32)
    assert clamped[2:].tolist() == [0.25, 1, 0, 0]


def test_nan_loses_against_a_number_unless_asked_for() -> None:
    a, b = np.array([np.nan, 1], np.float32), np.array([2, np.nan], np.float32)
    assert evaluate("max.f32 {d}, {a}, {b};", [a, b], np.float32).tolist() == [2, 1]
    assert np.isnan(evaluate("max.NaN.f32 {d}, {a}, {b};", [a, b], np.float32)).all()


def integers(kind: type, count: int = 200) -> np.ndarray:
    limits = np.iinfo(kind)
    values = RANDOM.integers(limits.min, limits.max, count, dtype=kind, endpoint=True)
    values[:6] = [limits.min, limits.max, 0, 1, limits.max // 2, 3]
    return values


def wrap(value: int, kind: type) -> int:
    bits = 8 * np.dtype(kind).itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if np.dtype(kind).kind == "i" and value >> (bits - 1) else value


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@pytest.mark.parametrize(
    ("suffix", "kind"), [("s32", np.int32), ("u32", np.uint32), ("s64", np.int64), ("u64", np.uint64)]
)
def test_integers_wrap(suffix: str, kind: type) -> None:
    a, b, c = integers(kind), np.where(integers(kind) == 0, kind(7), integers(kind)), integers(kind)
    b = np.where(b == 0, kind(5), b)
    width = 8 * np.dtype(kind).itemsize
    table: dict[str, Callable[[int, int, int], int]] = {
        f"add.{suffix} {{d}}, {{a}}, {{b}};": lambda a, b, c: a + b,
        f"mul.lo.{suffix} {{d}}, {{a}}, {{b}};": lambda a, b, c: a * b,
        f"mul.hi.{suffix} {{d}}, {{a}}, {{b}};": lambda a, b, c: a * b >> width,
        f"mad.lo.{suffix} {{d}}, {{a}}, {{b}}, {{c}};": lambda a, b, c: a * b + c,
        f"mad.hi.{suffix} {{d}}, {{a}}, {{b}}, {{c}};": lambda a, b, c: (a * b >> width) + c,
        f"div.{suffix} {{d}}, {{a}}, {{b}};": lambda a, b, c: truncated(a, b),
        f"rem.{suffix} {{d}}, {{a}}, {{b}};": lambda a, b, c: a - truncated(a, b) * b,
        f"min.{suffix} {{d}}, {{a}}, {{b}};": lambda a, b, c: min(a, b),
    }
    for instruction, meaning in table.items():
        got = evaluate(instruction, [a, b, c][: 3 if "{c}" in instruction else 2], kind)
        wanted = [wrap(meaning(int(x), int(y), int(z)), kind) for x, y, z in zip(a, b, c, strict=True)]
        assert got.tolist() == wanted, instruction


def test_products_of_double_width() -> None:
    a, b = integers(np.int32), integers(np.int32)
    assert (
        evaluate("mul.wide.s32 {d}, {a}, {b};", [a, b], np.int64).tolist()
        == (a.astype(np.int64) * b.astype(np.int64)).tolist()
    )


def test_shifts_clamp() -> None:
    a, by = integers(np.int32), RANDOM.integers(0, 40, 200).astype(np.uint32)
    left = [wrap(int(x) << int(n), np.int32) if n < 32 else 0 for x, n in zip(a, by, strict=True)]
    assert evaluate("shl.b32 {d}, {a}, {b};", [a, by], np.int32).tolist() == left
    right = [int(x) >> int(n) for x, n in zip(a, by, strict=True)]
    assert evaluate("shr.s32 {d}, {a}, {b};", [a, by], np.int32).tolist() == right


def test_bits() -> None:
    a, b = integers(np.uint32), integers(np.uint32)
    start, length = (RANDOM.integers(0, 36, 200).astype(np.uint32) for _ in range(2))
    masks = [(1 << min(int(n), 32)) - 1 for n in length]
    assert evaluate("popc.b32 {d}, {a};", [a], np.uint32).tolist() == [int(x).bit_count() for x in a]
    assert evaluate("clz.b32 {d}, {a};", [a], np.uint32).tolist() == [32 - int(x).bit_length() for x in a]
    assert evaluate("brev.b32 {d}, {a};", [a], np.uint32).tolist() == [int(f"{int(x):032b}"[::-1], 2) for x in a]
    assert evaluate("bfe.u32 {d}, {a}, {b}, {c};", [a, start, length], np.uint32).tolist() == [
        int(x) >> int(s) & mask for x, s, mask in zip(a, start, masks, strict=True)
    ]
    assert evaluate("bfi.b32 {d}, {a}, {b}, {c}, {e};", [a, b, start, length], np.uint32).tolist() == [
        (int(y) & ~(mask << int(s)) | (int(x) & mask) << int(s)) & 0xFFFFFFFF
        for x, y, s, mask in zip(a, b, start, masks, strict=True)
    ]
    assert evaluate("lop3.b32 {d}, {a}, {b}, {c}, 0x96;", [a, b, start], np.uint32).tolist() == (a ^ b ^ start).tolist()
    assert evaluate("prmt.b32 {d}, {a}, {b}, 0x0123;", [a, b], np.uint32).tolist() == a.byteswap().tolist()


def test_comparisons_know_nan() -> None:
    a = np.array([1, 2, np.nan, 0], np.float32)
    b = np.array([2, 2, 1, -0.0], np.float32)
    expected = {"lt": [1, 0, 0, 0], "ltu": [1, 0, 1, 0], "eq": [0, 1, 0, 1], "ne": [1, 0, 0, 0], "neu": [1, 0, 1, 0]}
    expected |= {"num": [1, 1, 0, 1], "nan": [0, 0, 1, 0], "geu": [0, 1, 1, 1]}
    for name, wanted in expected.items():
        line = f"setp.{name}.f32 %q, {{a}}, {{b}}; selp.u32 {{d}}, 1, 0, %q;"
        assert evaluate(line, [a, b], np.uint32).tolist() == wanted, name


@pytest.mark.parametrize(
    ("name", "function"), [("ex2", np.exp2), ("lg2", np.log2), ("rsqrt", lambda x: 1 / np.sqrt(x)), ("sin", np.sin)]
)
def test_approximate_functions_are_correctly_rounded_here(name: str, function: Callable[[Any], Any]) -> None:
    values = np.abs(floats("f32", 200))
    got = evaluate(f"{name}.approx.f32 {{d}}, {{a}};", [values], np.float32)
    assert (got == function(values.astype(np.float64)).astype(np.float32)).all()


def test_packed_halves_go_side_by_side() -> None:
    a, b = floats("f16", 400), floats("f16", 400)
    got = evaluate("add.f16x2 {d}, {a}, {b};", [a.view(np.uint32), b.view(np.uint32)], np.uint32)
    assert (got.view(np.float16) == a + b).all()


def test_tensor_float_keeps_ten_bits() -> None:
    values = np.array([1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-20, 1 + 3 * 2.0**-11, -1 - 2.0**-11], np.float32)
    got = evaluate("cvt.rna.tf32.f32 {d}, {a};", [values], np.float32)
    assert got.tolist() == [1 + 2.0**-10, 1 + 2.0**-10, 1 + 2.0**-9, -1 - 2.0**-10]
