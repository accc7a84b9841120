"""bfloat16: operators compute in float32 or better and round once, to the nearest, ties to even."""

import math
import struct

import numpy as np
import pytest
from operator_cases import TARGETS, Case, numbers

from kernelgen.tensor.dtypes import BFLOAT16

KIND = BFLOAT16.numpy


def rounded(value):
    """The nearest bfloat16 of a number, from the bits of its float32."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    upper, lower = bits >> 16, bits & 0xFFFF
    upper += lower > 0x8000 or (lower == 0x8000 and upper & 1)
    return struct.unpack("<f", struct.pack("<I", upper << 16))[0]


def case(op, arrays, compute, attrs=None):
    """An element-wise case whose expected value is rounded by the bits."""
    wide = [a.astype(np.float64) for a in np.broadcast_arrays(*arrays)]
    values = [rounded(compute(*row)) for row in zip(*(w.ravel().tolist() for w in wide), strict=True)]
    expected = np.asarray(values, np.float32).reshape(wide[0].shape).astype(KIND)
    return Case(op, tuple(arrays), (expected,), attrs or {}, tolerance=8e-3)


X, Y = numbers(1, (3, 17), "bfloat16"), numbers(2, (17,), "bfloat16", 0.5, 2)
ELEMENTWISE = [
    case("Add", (X, Y), lambda a, b: a + b), case("Sub", (X, Y), lambda a, b: a - b),
    case("Mul", (X, Y), lambda a, b: a * b), case("RealDiv", (X, Y), lambda a, b: a / b),
    case("Maximum", (X, Y), max), case("Neg", (X,), lambda a: -a), case("Exp", (X,), math.exp),
    case("Tanh", (X,), math.tanh), case("Sqrt", (Y,), math.sqrt), case("Log", (Y,), math.log),
    case("Rsqrt", (Y,), lambda a: 1 / math.sqrt(a)), case("Floor", (X,), math.floor),
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("number", ELEMENTWISE, ids=str)
def test_elementwise(number, target):
    number.agrees(target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("op", ["Add", "Mul", "Sub"])
def test_one_rounding_to_nearest_even(op, target):
    x, y = numbers(5, (64, 5), "bfloat16", -300, 300), numbers(6, (64, 5), "bfloat16")
    function = {"Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": lambda a, b: a * b}[op]
    wanted = case(op, (x, y), function)
    (y_found,) = (wanted.expected,)
    Case(op, wanted.inputs, y_found, tolerance=1e-9).agrees(target)


@pytest.mark.parametrize("target", TARGETS)
def test_casts_round_to_the_nearest_even(target):
    x = np.asarray([1.0, 1.00390625, 1.01171875, 1.005, -1.00390625, 3.0e38, 1e-40, 0.1, 65504.0, math.inf], np.float32)
    expected = np.asarray([rounded(v) for v in x.tolist()], np.float32).astype(KIND)
    Case("Cast", (x,), (expected,), {"dst_type": "bfloat16"}, tolerance=1e-30).agrees(target)


@pytest.mark.parametrize("target", TARGETS)
def test_widening_is_exact(target):
    x = numbers(3, (257,), "bfloat16", -1000, 1000)
    Case("Cast", (x,), (x.astype(np.float32),), {"dst_type": "float32"}, tolerance=1e-30).agrees(target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("count", [1, 7, 300, 2000])
def test_sums_do_not_lose_terms(count, target):
    expected = np.asarray([rounded(float(count))] * 2, np.float32).astype(KIND)
    Case("ReduceSum", (np.ones((2, count), KIND),), (expected,), {"axis": (1,)}, tolerance=1e-9).agrees(target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["ReduceMax", "ReduceMin"])
def test_extremes_are_exact(name, target):
    x = numbers(4, (5, 33), "bfloat16")
    pick = max if name == "ReduceMax" else min
    expected = np.asarray([pick(row) for row in x.astype(np.float32).tolist()], np.float32).astype(KIND)
    Case(name, (x,), (expected,), {"axis": (1,)}, tolerance=1e-9).agrees(target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("op", "attrs", "expected"), [
    ("Transpose", {"perm": (1, 0)}, X.T.copy()), ("Reshape", {"shape": (17, 3)}, X.reshape(17, 3)),
    ("BroadcastTo", {"shape": (2, 3, 17)}, np.stack([X, X])),
], ids=["Transpose", "Reshape", "BroadcastTo"])  # fmt: skip
def test_moves_keep_the_bits(op, attrs, expected, target):
    Case(op, (X,), (expected,), attrs, tolerance=1e-30).agrees(target)
