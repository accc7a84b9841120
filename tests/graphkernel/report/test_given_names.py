"""Whatever a file calls its values: reports, explanations and tables have the lines that they have for plain names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kernel_examples import softmax

import graphkernel as gk
from graphkernel.report.table import print_table
from kernelgen.composite.document import map_tensors
from kernelgen.composite.link import unlinked
from kernelgen.composite.write import written

HOSTILE = [
    "\x1b[31mred",
    "a\nfalse line",
    "a\r\x1b]0;title\x07",
    "\u2028b",
    "<script>alert(1)</script>",
    "\x9b2J",
    "a\tb",
]


def _graph(folder: Path, end: str) -> gk.Graph:
    """A softmax whose kernel and values all have names that end so."""
    desc = map_tensors(unlinked(softmax()), lambda tensor: replace(tensor, name=tensor.name + end))
    place = folder / "kernel.json"
    place.write_text(json.dumps(written(replace(desc, name=desc.name + end))))
    return gk.load(place)


def _said(graph: gk.Graph) -> list[str]:
    """All that is printed about a graph."""
    explanation = gk.explain(graph, opt_level=2)
    executable = gk.compile(graph, opt_level=2)
    executable(np.zeros((6, 9), np.float32))
    return [explanation.summary, explanation.why("Exp", "ReduceMax"), str(explanation), str(executable.report)]


@pytest.mark.parametrize("end", HOSTILE)
def test_a_name_stays_within_its_line(end: str, tmp_path: Path) -> None:
    said, plain = _said(_graph(tmp_path, end)), _said(_graph(tmp_path, "z"))
    for found, expected in zip(said, plain, strict=True):
        assert len(found.splitlines()) == len(expected.splitlines())
        assert all(line.isprintable() for line in found.split("\n"))
    assert gk.compile(_graph(tmp_path, end), opt_level=2).report.to_html().count("<script>") == 1  # the page's own


@pytest.mark.parametrize("end", HOSTILE)
def test_a_cell_stays_within_its_row(end: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("a", "b"), [(end, 1), (2, end)])
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == 4
    assert all(line.isprintable() for line in lines)
