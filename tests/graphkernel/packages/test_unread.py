"""A graph that is read when somebody looks at it, and is one like any other then."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from graphkernel.ops import OPS
from graphkernel.packages.unread import Content, UnreadGraph, content_of
from kernelgen.tensor.constant_data import ConstantData
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.text import parse, show
from kernelgen.tensor.types import TensorType, dtype

WEIGHT = np.arange(32, dtype=np.float32)


def graph() -> Graph:
    builder = Builder()
    x = builder.parameter("x", TensorType((32,), dtype("float32")))
    return Graph("net", (x,), (builder.emit(OPS["Add"], x, builder.constant(WEIGHT)),))


def unread() -> tuple[UnreadGraph, list[Graph]]:
    """An unread graph, and what was read of it so far."""
    content, seen = content_of(graph()), list[Graph]()

    def read() -> Graph:
        weights = {digest: ConstantData(digest, array) for digest, array in content.constants.items()}
        seen.append(parse(content.text, OPS, weights))
        return seen[-1]

    return UnreadGraph(Content(*content), read), seen


def test_its_content_is_known_without_reading() -> None:
    found, seen = unread()
    content = content_of(found)
    assert isinstance(found, Graph)
    assert content.text == show(graph())
    assert [array.tolist() for array in content.constants.values()] == [WEIGHT.tolist()]
    assert not seen


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(lambda found: found == graph(), id="equal"),
        pytest.param(lambda found: graph() == found, id="equal from the other side"),
        pytest.param(lambda found: hash(found) == hash(graph()), id="hash"),
        pytest.param(lambda found: str(found) == show(graph()), id="text"),
        pytest.param(lambda found: repr(found) == repr(graph()), id="repr"),
        pytest.param(lambda found: found.output_names == ("output",), id="names"),
        pytest.param(lambda found: found.results == () and found.aliases == (), id="fields with a default"),
        pytest.param(lambda found: replace(found, results=("y",)).output_names == ("y",), id="replace"),
        pytest.param(lambda found: copy.deepcopy(found) == graph(), id="copy"),
        pytest.param(lambda found: pickle.loads(pickle.dumps(found)) == graph(), id="pickle"),
    ],
)
def test_whoever_looks_sees_the_graph_which_is_read_once(look) -> None:
    found, seen = unread()
    assert look(found)
    assert look(found)
    assert type(found) is Graph
    assert len(seen) == 1


def test_what_was_read_has_the_content_of_before() -> None:
    found, _ = unread()
    assert len(found.operators) == 1
    assert content_of(found).text == show(graph())
