"""Kernels of all families compile for both architectures within the budget; what does not is named, and fails the run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_examples import softmax

from benchmarks.gpu import compiles
from benchmarks.gpu.compiles import ARCHS, OTHERS, SHARED, Task, compiled, faults, lines
from benchmarks.gpu.descriptions import Amount, distinct
from kernelgen.composite.write import dump_desc
from kernelgen.errors import BackendUnavailable, CodegenError
from kernelgen.targets.gpu.launch.nvrtc import version
from tests.support.sources import ROOT

FITS = {"registers": 32, "shared": 0, "stack": 0, "spilled": 0, "calls": False, "seconds": 0.1}


@pytest.fixture(autouse=True)
def _compiler() -> None:
    try:
        version()
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.long
def test_a_sample_compiles_within_the_budget(tmp_path: Path) -> None:
    out = tmp_path / "resources.json"
    command = [sys.executable, "-m", "benchmarks", "gpu_compile", "--tiny", "--jobs", "1", "--json", str(out)]
    done = subprocess.run(command, cwd=ROOT, timeout=300, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    record = json.loads(out.read_text())
    assert record["failed"] == {}
    assert sum(family["compiled"] for family in record["families"].values()) > 40
    assert {arch for family in record["families"].values() for arch in family["most"]} == {*ARCHS, *OTHERS}


def test_equal_kernels_are_compiled_once() -> None:
    found = list(distinct(Amount(graphs=12, tiny=True), ("random_graphs", "random_graphs")))
    assert len(found) == len(list(distinct(Amount(graphs=12, tiny=True), ("random_graphs",))))


def test_what_does_not_compile_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def rejects(*_: Any) -> None:
        raise CodegenError("line 3: expected a ';'")

    path = tmp_path / "softmax.info"
    path.write_text(json.dumps(dump_desc(softmax(4, 64))))
    good = compiled(Task("examples", "softmax", path))
    assert faults([good]) == {}
    assert all(good[arch]["registers"] > 0 for arch in ARCHS)
    monkeypatch.setattr(compiles, "compile_cuda", rejects)
    assert faults([compiled(Task("examples", "softmax", path))]) == {
        "examples/softmax": "CodegenError: line 3: expected a ';'"
    }


def test_what_is_above_the_budget_is_named() -> None:
    rows = [
        {"family": "f", "name": "spills", "sm_80": FITS, "sm_90": FITS | {"spilled": 4096}},
        {"family": "f", "name": "saves", "sm_80": FITS, "sm_90": FITS | {"spilled": 64, "calls": True}},
        {"family": "f", "name": "large", "sm_80": FITS | {"shared": SHARED["sm_80"] + 1}, "sm_90": FITS},
        {"family": "f", "name": "refused", "refused": "unsupported-op"},
    ]
    found = faults(rows)
    assert list(found) == ["f/spills", "f/large"]
    assert "sm_90: 4096 bytes are spilled" in found["f/spills"]
    assert "sm_80: 166913 bytes of shared memory" in found["f/large"]


def test_a_kernel_is_a_line_of_the_file() -> None:
    record: Any = {"seconds": 1, "kernels": [{"name": "a"}, {"name": "b"}], "date": "today"}
    text = lines(record)
    assert json.loads(text) == record
    assert len(text.splitlines()) == 8
