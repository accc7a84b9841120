"""Indices are indices and tables keep their data type, whatever the other operand holds: traced, and read from ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

import graphkernel as gk
from graphkernel import ops
from graphkernel.frontends.onnx.importer import import_onnx
from tests.support.onnx_models import model

pytestmark = pytest.mark.usefixtures("shared_kernels")

Array = np.ndarray[Any, Any]
TABLES = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
)
INDEX_TYPES = ("int32", "int64")
ROWS = 400
"""More than an index of 8 bits reaches."""


def table(of: str) -> Array:
    """Rows that a round trip through any other data type would change, where the type has such numbers."""
    kind = np.dtype(of)
    if kind.kind in "iu":
        highest = np.iinfo(of).max
        return np.array([highest - 3 * row % highest for row in range(ROWS)], of)
    return (np.arange(ROWS) % 2).astype(of) if kind.kind == "b" else np.linspace(-1, 1, ROWS).astype(of)


def indices(of: str) -> Array:
    return np.array([300, -1, 0, 256, -ROWS, 399], of)


def assert_same_everywhere(graph: gk.Graph, inputs: list[Array], expected: Array) -> None:
    (found,) = gk.evaluate(graph, inputs)
    for answer in (found, *(gk.compile(graph, opt_level=level)(*inputs)[0] for level in range(4))):
        assert answer.dtype == expected.dtype
        np.testing.assert_array_equal(answer, expected)


@pytest.mark.parametrize("index_type", INDEX_TYPES)
@pytest.mark.parametrize("of", TABLES)
@pytest.mark.parametrize("constant", ["table", "indices"])
def test_a_traced_gather(of: str, index_type: str, constant: str) -> None:
    data, places = table(of), indices(index_type)
    if constant == "table":
        graph, inputs = gk.trace(lambda i: ops.gather(data, i), gk.spec(places.shape, index_type)), [places]
    else:
        graph, inputs = gk.trace(lambda x: ops.gather(x, places), gk.spec(data.shape, of)), [data]
    assert_same_everywhere(graph, inputs, data[places])


@pytest.mark.parametrize("of", TABLES)
def test_whole_numbers_of_python_are_indices(of: str) -> None:
    data = table(of)
    graph = gk.trace(lambda x: ops.gather(x, [300, -1]), gk.spec(data.shape, of))
    assert_same_everywhere(graph, [data], data[[300, -1]])
    np.testing.assert_array_equal(ops.gather(data, [300, -1]), data[[300, -1]])
    graph = gk.trace(lambda x: ops.gather(x, 300), gk.spec(data.shape, of))
    assert_same_everywhere(graph, [data], data[300])


@pytest.mark.parametrize("of", [name for name in TABLES if name != "bool"])
def test_traced_scatter_and_addresses(of: str) -> None:
    data = table(of)
    addresses = np.array([[300], [0], [256]])
    assert_same_everywhere(
        gk.trace(lambda x: ops.gather_nd(x, addresses), gk.spec(data.shape, of)), [data], data[[300, 0, 256]]
    )
    updates = np.ones(3, of)
    added = data.copy()
    added[[300, 0, 256]] += updates
    graph = gk.trace(lambda x: ops.tensor_scatter_add(x, addresses, updates), gk.spec(data.shape, of))
    assert_same_everywhere(graph, [data], added)


def test_data_of_one_type_and_one_hot_indices_of_another() -> None:
    graph = gk.trace(lambda i: ops.one_hot(i, 300, np.int64(2**40 + 3), np.int64(-1)), gk.spec(2, "int32"))
    expected = np.full((2, 300), -1, np.int64)
    expected[0, 299] = expected[1, 0] = 2**40 + 3
    assert_same_everywhere(graph, [np.array([299, 0], np.int32)], expected)


def onnx_cases(data: Array, places: Array) -> dict[str, tuple[Any, dict[str, Array], Array]]:
    """(node, constants, expected) of every operator with indices, over data ``x`` and indices ``i``."""
    column = places[:, None]
    firsts = np.where(places < 0, places + ROWS, places)
    scattered = data.copy()
    scattered[firsts] = data[0]
    return {
        "Gather": (helper.make_node("Gather", ["x", "i"], ["y"]), {}, data[places]),
        "GatherElements": (helper.make_node("GatherElements", ["x", "i"], ["y"]), {}, data[places]),
        "GatherND": (helper.make_node("GatherND", ["x", "j"], ["y"]), {"j": column.astype(np.int64)}, data[places]),
        "ScatterElements": (
            helper.make_node("ScatterElements", ["x", "i", "u"], ["y"]), {"u": np.full(len(places), data[0])}, scattered,
        ),
        "ScatterND": (
            helper.make_node("ScatterND", ["x", "j", "u"], ["y"]),
            {"j": column.astype(np.int64), "u": np.full(len(places), data[0])}, scattered,
        ),
    }  # fmt: skip


@pytest.mark.parametrize("index_type", INDEX_TYPES)
@pytest.mark.parametrize("of", TABLES)
@pytest.mark.parametrize(("name", "constant"), [
    ("Gather", "x"), ("Gather", "i"), ("GatherElements", "x"), ("GatherElements", "i"), ("GatherND", ""),
    ("ScatterElements", "x"), ("ScatterElements", "i"), ("ScatterND", ""),
])  # fmt: skip
def test_operators_of_onnx(name: str, constant: str, of: str, index_type: str) -> None:
    data, places = table(of), indices(index_type)
    node, more, expected = onnx_cases(data, places)[name]
    given = {key: array for key, array in {"x": data, "i": places, **more}.items() if key in node.input}
    constants = {key: array for key, array in given.items() if key == constant or key in more}
    inputs = {key: array for key, array in given.items() if key not in constants}
    graph = import_onnx(model([node], inputs, constants=constants, opset=18))
    assert_same_everywhere(graph, list(inputs.values()), expected)
