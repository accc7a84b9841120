from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphkernel as gk
from examples import seeds


@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("program", seeds.graphs(), ids=lambda program: program[0].name)
def test_tutorial_prints_what_it_printed(program: tuple[gk.Graph, tuple[np.ndarray, ...], float], level: int) -> None:
    graph, inputs, expected = program
    executable = gk.compile(graph, opt_level=level)
    (result,) = executable(*inputs)
    assert (np.round(result, 6) == np.float32(expected)).all()
    assert executable.report.kernel_calls == (1 if level else 0)
    assert (executable.graph is graph) == (level == 0)


def test_dump_as_text_writes_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gk.optimize(seeds.graphs()[0][0], flags="--dump_as_text=true")
    assert list((tmp_path / "graph_kernel_dump").iterdir())
