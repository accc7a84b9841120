"""What quantizers write is rounded in one instruction behind its bounds: the same bytes, and the same numbers read of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from nests import I, block, buffer, call, local, loop, output, run

from kernelgen.nest.nodes import Alloc, Call, Expr, Let, Literal, Load, Nest, Ref, Statement, Store
from kernelgen.targets.cpu import TARGET
from kernelgen.tensor.dtypes import FLOAT32, FLOAT64, INT8, INT32, UINT8, DType

COUNT = 4096
X = buffer("x", COUNT)
HALVES = np.arange(-400, 400, dtype=np.float32) + np.float32(0.5)
SPECIAL = np.array(
    [np.nan, 0.0, -0.0, np.inf, -np.inf, 1e-45, -1e-38, 3e38, -3e38, 2**31, -(2**31), 2**24 + 2], np.float32
)
AROUND = [np.nextafter(HALVES, np.float32(to)) for to in (-np.inf, np.inf)]
VALUES = np.resize(np.concatenate([HALVES, *AROUND, SPECIAL, SPECIAL * np.float32(0.02)]), COUNT)

BYTES = [
    (UINT8, 0, 0, 255), (UINT8, 114, 0, 255), (UINT8, 255, 0, 255), (UINT8, 0, 3, 200), (INT8, 0, -128, 127),
    (INT8, 0, -127, 127), (INT8, 7, 0, 127), (UINT8, 9, 0, 0),
    (INT8, 5, -128, 127), (INT8, -128, -128, 127), (UINT8, 9, 9, 255),
]  # fmt: skip


def literal(value: float) -> Literal:
    return Literal(float(value), FLOAT32)


def quantized(x: Expr, divisor: float, zero: int, low: int, high: int) -> list[Expr]:
    """Quotient, nearest integer, that moved by the zero point, and its bounds, each of the one before."""
    found = [call("div", x, literal(divisor))]
    found.append(call("round", found[-1]))
    if zero:
        found.append(call("add", found[-1], literal(zero)))
    found.append(call("maximum", found[-1], literal(low)))
    return [*found, call("minimum", found[-1], literal(high))]


def bound(steps: Sequence[Expr]) -> tuple[list[Let], Ref]:
    """The steps as bindings, each of which reads the one before by its name."""
    lets: list[Let] = []
    before: dict[Expr, Ref] = {}
    for number, step in enumerate(steps):
        args = tuple(before.get(arg, arg) for arg in step.args) if isinstance(step, Call) else ()
        lets.append(Let(f"v{number}", Call(step.function, args, step.dtype) if isinstance(step, Call) else step))
        before[step] = Ref(f"v{number}", step.dtype)
    return lets, before[steps[-1]]


def nest(steps: Sequence[Expr], byte: DType, zero: int, *, bindings: bool, read: DType | None) -> Nest:
    """Stores the byte, or what is read of it: its distance from the zero point, or the number itself."""
    lets, last = bound([Load(X, (I,)), *steps]) if bindings else ([], steps[-1])
    value: Expr = Call("cast", (last,), byte)
    if read == INT32:
        value = call("sub", Call("cast", (value,), INT32), Literal(zero, INT32))
    elif read is not None:
        value = Call("cast", (value,), read)
    y = output("y", COUNT, dtype=value.dtype)
    body: list[Statement] = [*lets, Store(y, (I,), value)]
    return Nest("quantized", (), (X, y), block(loop(I, COUNT, *body)))


def meant(divisor: float, byte: DType, zero: int, low: int, high: int, read: DType | None) -> np.ndarray:
    with np.errstate(all="ignore"):
        nearest = np.rint(VALUES / np.float32(divisor))
        whole = np.minimum(np.maximum(nearest + np.float32(zero), np.float32(low)), np.float32(high))
    whole = np.where(np.isnan(whole), 0, whole).astype(byte.numpy)
    if read is None:
        return whole
    return whole.astype(np.int32) - zero if read == INT32 else whole.astype(read.numpy)


@pytest.mark.parametrize("divisor", [1.0, 0.02, 3.0, 1e-30])
@pytest.mark.parametrize("bindings", [False, True])
@pytest.mark.parametrize("read", [None, INT32, FLOAT32, FLOAT64])
@pytest.mark.parametrize(("byte", "zero", "low", "high"), BYTES)
def test_bytes_and_what_is_read_of_them_are_as_written(
    byte: DType, zero: int, low: int, high: int, *, read: DType | None, bindings: bool, divisor: float
) -> None:
    steps = quantized(Load(X, (I,)), divisor, zero, low, high)
    made = nest(steps, byte, zero, bindings=bindings, read=read)
    expected = meant(divisor, byte, zero, low, high, read)
    got = np.zeros_like(expected)
    run(made, VALUES, got)
    np.testing.assert_array_equal(got, expected)
    assert "llvm.lrint" in TARGET.emit(made)
    assert ("roundeven" in TARGET.emit(made)) <= bindings, "bindings that nobody reads go later"


X0 = Load(X, (I,))
ROUNDED = call("round", call("div", X0, literal(0.5)))


def bounded(x: Expr, low: float, high: float) -> Expr:
    return call("minimum", call("maximum", x, literal(low)), literal(high))


@pytest.mark.parametrize(
    "value",
    [
        bounded(X0, 0, 255), bounded(ROUNDED, 0.5, 255), bounded(ROUNDED, 7, 3), bounded(ROUNDED, 0, 256),
        bounded(ROUNDED, -1, 255), bounded(call("add", ROUNDED, literal(2.0**40)), 0, 255),
        bounded(call("floor", X0), 0, 255), call("maximum", ROUNDED, literal(0)), call("minimum", ROUNDED, literal(255)),
    ],
    ids=["not rounded", "half a bound", "no number between", "beyond a byte", "below a byte", "a large zero",
        "downwards", "no upper bound", "no lower bound"],
)  # fmt: skip
def test_other_bytes_are_left_as_they_are(value: Expr) -> None:
    y = output("y", COUNT, dtype=UINT8)
    text = TARGET.emit(Nest("other", (), (X, y), block(loop(I, COUNT, Store(y, (I,), Call("cast", (value,), UINT8))))))
    assert "llvm.lrint" not in text


@pytest.mark.parametrize("whole", [INT32, UINT8])
def test_wider_integers_and_doubles_are_left_as_they_are(whole: DType) -> None:
    wide = FLOAT32 if whole == INT32 else FLOAT64
    x, y = buffer("x", COUNT, dtype=wide), output("y", COUNT, dtype=whole)
    nearest = call("round", Load(x, (I,)))
    value = call("minimum", call("maximum", nearest, Literal(0.0, wide)), Literal(255.0, wide))
    text = TARGET.emit(Nest("wide", (), (x, y), block(loop(I, COUNT, Store(y, (I,), Call("cast", (value,), whole))))))
    assert "llvm.lrint" not in text


def test_numbers_stand_on_either_side() -> None:
    swapped = call("minimum", literal(255), call("maximum", literal(0), ROUNDED))
    y, got = output("y", COUNT, dtype=UINT8), np.zeros(COUNT, np.uint8)
    made = Nest("swapped", (), (X, y), block(loop(I, COUNT, Store(y, (I,), Call("cast", (swapped,), UINT8)))))
    run(made, VALUES, got)
    np.testing.assert_array_equal(got, meant(0.5, UINT8, 0, 0, 255, None))
    assert "llvm.lrint" in TARGET.emit(made)


@pytest.mark.parametrize("is_byte", [False, True])
def test_what_was_loaded_for_a_binding_stays_what_it_was(*, is_byte: bool) -> None:
    """A binding that reads a local, which changes before the binding is read."""
    held = local("held", COUNT)
    read = call("round", call("div", Load(held, (I,)), literal(0.5)))
    first: Expr = Call("cast", (bounded(read, 0, 255),), UINT8) if is_byte else read
    name = Ref("v", first.dtype)
    value = Call("cast", (name if is_byte else Call("cast", (bounded(name, 0, 255),), UINT8),), FLOAT32)
    y, got = output("y", COUNT), np.zeros(COUNT, np.float32)
    body = loop(I, COUNT, Store(held, (I,), X0), Let("v", first), Store(held, (I,), literal(77)), Store(y, (I,), value))
    run(Nest("changed", (), (X, y), block(Alloc(held), body)), VALUES, got)
    np.testing.assert_array_equal(got, meant(0.5, UINT8, 0, 0, 255, FLOAT32))
