"""Reductions over no elements give the neutral element, in every hand and for every data type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from kernelgen.tensor.types import dtype

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def neutral(name: str, of: str) -> Any:
    if name in ("reduce_sum", "reduce_prod"):
        return int(name == "reduce_prod")
    lower = name == "reduce_max"
    if of in FLOATS:
        return -np.inf if lower else np.inf
    return np.iinfo(of).min if lower else np.iinfo(of).max


@pytest.mark.parametrize("of", FLOATS + INTEGERS)
@pytest.mark.parametrize("name", ["reduce_sum", "reduce_prod", "reduce_max", "reduce_min"])
@pytest.mark.parametrize("level", [0, 2])
def test_of_no_elements(name: str, of: str, level: int) -> None:
    x = np.zeros((3, 0), dtype(of).numpy)
    graph = gk.trace(lambda x: getattr(ops, name)(x, 1), x)
    (found,) = gk.compile(graph, opt_level=level)(x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, np.full(3, neutral(name, of), x.dtype))
    np.testing.assert_array_equal(gk.evaluate(graph, [x])[0], found)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_the_neutral_element_is_not_seen_beside_elements(name: str) -> None:
    rows = np.array([[-np.inf, -np.inf], [np.inf, np.inf], [np.nan, 1], [2, 3]], np.float32)
    (found,) = gk.compile(gk.trace(lambda x: getattr(ops, name)(x, 1), rows))(rows)
    np.testing.assert_array_equal(found, (np.max if name == "reduce_max" else np.min)(rows, 1))


@pytest.mark.parametrize("function", [ops.softmax, ops.log_softmax])
def test_a_softmax_over_no_elements_has_none(function: Any) -> None:
    x = np.zeros((64, 0), np.float32)
    for level in (0, 2):
        assert gk.compile(gk.trace(function, x), opt_level=level)(x)[0].shape == (64, 0)
