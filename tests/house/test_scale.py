"""The large scale: rooms without circles, folders and files that can be overlooked, operators that few files name."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from docs.rooms import import_graph, room_graph
from tests.support.sources import ROOT, rooms, sources

MOST_FILES = 25
MOST_LINES = 400

# Operator -> files that hold its quoted name, at most. A ceiling goes down with the files; none may go up.
NAMED_IN = {
    "Gather": 5,
    "Transpose": 4,
    "StridedSlice": 2,
    "Select": 3,
    "OneHot": 5,
    "Conv2D": 2,
    "Erf": 2,
    "Cast": 14,
    "Reshape": 11,
    "MatMul": 7,
    "BroadcastTo": 3,
    "Concat": 7,
    "Tile": 7,
    "ReduceSum": 7,
    "Reciprocal": 8,
    "CumSum": 4,
    "TensorScatterAdd": 3,
    "CSRGather": 2,
    "Atan2": 1,
    "FastGeLU": 2,
}


@cache
def modules() -> nx.DiGraph[str]:
    """Which file imports which."""
    return import_graph(ROOT)


def circles(graph: nx.DiGraph[str]) -> list[list[str]]:
    """What imports itself, by way of others."""
    return [sorted(circle) for circle in nx.strongly_connected_components(graph) if len(circle) > 1]


def files_naming() -> Counter[str]:
    """Each text in quotes -> files that hold it."""
    return Counter(
        text
        for source in sources()
        for text in {
            node.value for node in source.nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
    )


def test_no_file_imports_itself_by_way_of_others() -> None:
    assert circles(modules()) == []


@pytest.mark.parametrize("depth", range(2, 7))
def test_no_room_imports_itself_by_way_of_others(depth: int) -> None:
    assert circles(room_graph(modules(), depth)) == []


def test_folders_can_be_overlooked() -> None:
    files = {str(room.relative_to(ROOT)): len(list(room.glob("*.py"))) for room in rooms()}
    assert {room: count for room, count in files.items() if count > MOST_FILES} == {}


def test_files_can_be_overlooked() -> None:
    lines = {source.path: len(source.lines) for source in sources()}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}


def test_few_files_name_an_operator() -> None:
    found = files_naming()
    assert {name: found[name] for name, most in NAMED_IN.items() if found[name] > most} == {}


def test_circles_are_found(tmp_path: Path) -> None:
    for name, text in {
        "a/one": "from kernelgen.b import two\n",
        "b/two": "import kernelgen.c.three\n",
        "b/other": "",
        "c/three": "from typing import TYPE_CHECKING\nfrom kernelgen.b.other import x\n"
        "if TYPE_CHECKING:\n    from kernelgen.a.one import y\n",
    }.items():
        path = tmp_path / "kernelgen" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    planted = import_graph(tmp_path)
    assert circles(planted) == []
    assert circles(room_graph(planted, 2)) == [["kernelgen.b", "kernelgen.c"]]
