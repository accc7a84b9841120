"""Golden cases of the fusion patterns: ``tests/golden/fusion/*.gk``.

A case is a title with the patterns that are enabled (parts of names), the graph before, and after ``-- after`` the graph
that clustering and splitting make of it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from graphkernel.ir.text import parse, show
from graphkernel.ops import OPS
from tests.support.fusion_nets import fused, same_numbers

FOLDER = Path(__file__).parents[2] / "golden" / "fusion"


def cases() -> list[object]:
    found: list[object] = []
    for path in sorted(FOLDER.glob("*.gk")):
        for text in path.read_text().split("== ")[1:]:
            head, _, body = text.partition("\n")
            title, _, patterns = head.partition(" | ")
            before, _, after = body.partition("-- after\n")
            enabled = tuple(name.strip() for name in patterns.split(","))
            found.append(pytest.param(before, after.strip(), enabled, id=f"{path.stem}: {title}"))
    return found


@pytest.mark.parametrize(("before", "after", "patterns"), cases())
def test_golden(before: str, after: str, patterns: tuple[str, ...]) -> None:
    graph = parse(before, OPS)
    result = fused(graph, enable_fusion_pattern_only=patterns)
    assert show(result).strip() == after
    if all(value.type.is_static for value in graph.inputs):
        same_numbers(graph, result)
