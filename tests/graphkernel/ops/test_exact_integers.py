"""Integers never pass through floats: every operator on them against Python's exact integers, at every level.

Each is computed by its numpy meaning, folded at compile time, and by kernels, with its operands given at run time or known.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import TypeRuleError
from graphkernel.ops import OPS

pytestmark = pytest.mark.usefixtures("shared_kernels")

Array = np.ndarray[Any, Any]
TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
LEVELS = range(4)


def numbers(of: str) -> list[int]:
    """Small and extreme numbers of a type, and those that float32 and float64 cannot hold."""
    info = np.iinfo(of)
    wanted = [0, 1, 2, 3, 7, 100, 2**24 + 1, 2**53 + 1, info.max // 2, info.max - 1, info.max]
    wanted += [-1, -2, -3, -7, -(2**24) - 1, -(2**53) - 1, info.min + 1, info.min]
    return sorted({number for number in wanted if info.min <= number <= info.max})


def wrapped(value: int, of: str) -> int:
    """A whole number as the type holds it."""
    info = np.iinfo(of)
    return (value - int(info.min)) % 2**info.bits + int(info.min)


def truncated(x: int, y: int) -> int:
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def power(x: int, y: int) -> int:
    if y >= 0:
        return pow(x, y, 2**64)  # enough, as the width of every type divides 64 bits
    return {1: 1, -1: 1 - 2 * (y % 2)}.get(x, 0)


TWO: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": truncated, "pow": power,
    "floor_div": lambda x, y: 0 if y == 0 else x // y, "floor_mod": lambda x, y: 0 if y == 0 else x % y,
    "mod": lambda x, y: 0 if y == 0 else x - y * truncated(x, y), "maximum": max, "minimum": min,
    "equal": operator.eq, "less": operator.lt, "greater_equal": operator.ge,
}  # fmt: skip
ONE: dict[str, Callable[[int], int]] = {
    "neg": operator.neg, "abs": abs, "sign": lambda x: (x > 0) - (x < 0), "square": lambda x: x * x,
}  # fmt: skip
REDUCTIONS: dict[str, Callable[[Sequence[int]], int]] = {
    "reduce_sum": sum, "reduce_max": max, "reduce_min": min, "reduce_prod": lambda row: reduce(operator.mul, row),
}  # fmt: skip
PREDICATES = ("equal", "less", "greater_equal")


def as_array(values: Iterable[int], of: str, name: str) -> Array:
    return np.array(
        [bool(v) if name in PREDICATES else wrapped(v, of) for v in values], "bool" if name in PREDICATES else of
    )


def assert_same_at_every_level(function: Callable[..., Any], inputs: Sequence[Array], expected: Array) -> None:
    graph = gk.trace(function, *(gk.spec(x.shape, x.dtype.name) for x in inputs))
    for level in LEVELS:
        (found,) = gk.compile(graph, opt_level=level)(*inputs)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected, f"level {level}")


@pytest.mark.parametrize("of", TYPES)
@pytest.mark.parametrize("name", TWO)
def test_two_operands(name: str, of: str) -> None:
    function = getattr(ops, name)
    x, y = (grid.reshape(-1) for grid in np.meshgrid(np.array(numbers(of), of), np.array(numbers(of), of)))
    expected = as_array((TWO[name](int(a), int(b)) for a, b in zip(x, y, strict=True)), of, name)
    np.testing.assert_array_equal(function(x, y), expected)
    assert_same_at_every_level(function, [x, y], expected)
    known = gk.compile(
        gk.trace(lambda a: (function(x, y), function(a, y), function(x, a)), gk.spec(x.shape, of)), opt_level=2
    )
    folded, right_known, _ = known(x)
    np.testing.assert_array_equal(folded, expected)
    np.testing.assert_array_equal(right_known, expected)
    np.testing.assert_array_equal(known(y)[2], expected)


@pytest.mark.parametrize("of", TYPES)
@pytest.mark.parametrize("name", ["div", "floor_div", "mod", "floor_mod", "pow"])
@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_a_number_on_the_right(name: str, of: str, number: int) -> None:
    """Rules that rewrite divisions and powers by constants keep what they mean."""
    x = np.array(numbers(of), of)
    expected = as_array((TWO[name](int(a), number) for a in x), of, name)
    assert_same_at_every_level(lambda a: getattr(ops, name)(a, number), [x], expected)


@pytest.mark.parametrize("of", TYPES)
def test_one_operand(of: str) -> None:
    x = np.array(numbers(of), of)
    for name, exact in ONE.items():
        expected = as_array((exact(int(a)) for a in x), of, name)
        np.testing.assert_array_equal(getattr(ops, name)(x), expected)
        assert_same_at_every_level(getattr(ops, name), [x], expected)


@pytest.mark.parametrize("of", TYPES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, of: str) -> None:
    x = np.array([numbers(of), numbers(of)[::-1], [number | 1 for number in numbers(of)]], of)
    expected = as_array((REDUCTIONS[name](row.tolist()) for row in x), of, name)
    np.testing.assert_array_equal(getattr(ops, name)(x, axis=1), expected)
    assert_same_at_every_level(lambda a: getattr(ops, name)(a, axis=1), [x], expected)


@pytest.mark.parametrize("of", TYPES)
def test_numbers_in_attributes(of: str) -> None:
    """Padding, filling, clamping and factors: numbers that the type holds and a float does not."""
    most = int(np.iinfo(of).max)
    x = np.array([0, 1, most - 1, most], of)
    padded = np.array([most - 2, *x.tolist(), most - 2, most - 2], of)
    assert_same_at_every_level(lambda a: ops.pad(a, ((1, 2),), value=most - 2), [x], padded)
    assert_same_at_every_level(lambda a: ops.clamp_scalar(a, max=most - 1), [x], np.minimum(x, most - 1))
    product = as_array((v * (most - 2) for v in x.tolist()), of, "")
    assert_same_at_every_level(lambda a: ops.muls(a, other=most - 2), [x], product)
    filled = ops.apply(OPS["ConstantOfShape"], np.array([4]), shape=(4,), value=most - 2, dtype=of)
    np.testing.assert_array_equal(filled, np.full(4, most - 2, of))


@pytest.mark.parametrize(("of", "number"), [("int8", 128), ("uint8", -1), ("int64", 2**63), ("int32", 0.5)])
def test_a_number_that_the_type_does_not_hold_is_refused(of: str, number: float) -> None:
    with pytest.raises(TypeRuleError, match="must be a whole number that"):
        ops.pad(np.zeros(3, of), ((1, 1),), value=number)
