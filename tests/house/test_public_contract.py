"""The names that scripts outside the project call, used as they are documented."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
import kernelgen
from graphkernel import ops
from tests.support.sources import ROOT

X = np.arange(16, dtype=np.float32).reshape(4, 4)
DESC = ROOT / "examples" / "fused_mul_add.json"
COMMANDS = ("optimize", "explain", "run", "passes", "ops", "patterns", "expanders", "flags", "doctor")


def mynet(x):
    return ops.add(ops.mul(x, 2.0), 1.0)


def traced() -> gk.Graph:
    return gk.trace(mynet, gk.spec((4, 4), "float32"))


def test_optimize_is_pure_and_its_text_reads_back() -> None:
    graph = traced()
    before = str(graph)
    fused = gk.optimize(graph, opt_level=2)
    assert str(graph) == before
    assert gk.parse(str(fused)) == fused
    assert gk.optimize(graph, opt_level=0) is graph
    assert gk.optimize(graph, target="cpu", flags="--opt_level=1") == gk.optimize(graph, flags={"opt_level": 1})


def test_executable_takes_and_gives_numpy() -> None:
    exe = gk.compile(gk.optimize(traced(), opt_level=2))
    (y,) = exe(X)
    assert (y == X * 2 + 1).all()
    buffer = np.zeros_like(X)
    (y,) = exe(X, out=(buffer,))
    assert y is buffer
    assert (buffer == X * 2 + 1).all()


def test_compile_does_both() -> None:
    (y,) = gk.compile(traced(), opt_level=2, target="cpu")(X)
    assert (y == X * 2 + 1).all()


def test_report_prints_in_every_form() -> None:
    report = gk.compile(traced(), opt_level=2).report
    assert "Mul" in str(report)
    assert json.loads(report.to_json())
    assert "<table" in report._repr_html_()


def test_jit_compiles_per_shape() -> None:
    fast = gk.jit(mynet, opt_level=2)
    for rows in (2, 3):
        assert (np.asarray(fast(X[:rows])) == X[:rows] * 2 + 1).all()


@pytest.mark.parametrize("ending", [".gk", ".json"])
def test_load_reads_what_was_written(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"net{ending}"
    path.write_text(str(traced()) if ending == ".gk" else DESC.read_text())
    assert len(gk.load(path).operators) == 2


@pytest.mark.parametrize("form", [DESC, str(DESC), DESC.read_text(), json.loads(DESC.read_text())], ids=type)
def test_kernelgen_alone(form: Any) -> None:
    desc = kernelgen.load_desc(form)
    kernel = kernelgen.compile(desc, target="cpu")
    assert (kernel(X)[0] == kernelgen.reference(desc)(X)[0]).all()
    assert kernel.source
    assert kernel.stages
    assert kernel.proof
    assert kernel.resources


def test_broken_description_says_where() -> None:
    broken = json.loads(DESC.read_text())
    broken["op_desc"][0]["input_desc"][0][0]["shape"] = "four"
    with pytest.raises(kernelgen.DescError, match=r"\$\.op_desc\[0\]\.input_desc\[0\]\[0\]\.shape"):
        kernelgen.load_desc(broken)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_exists(command: str) -> None:
    call = [sys.executable, "-m", "graphkernel", command, "--help"]
    assert subprocess.run(call, capture_output=True, timeout=60, cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize("command", ["compile", "verify", "show"])
def test_kernelgen_command_exists(command: str) -> None:
    call = [sys.executable, "-m", "kernelgen", command, "--help"]
    assert subprocess.run(call, capture_output=True, timeout=60, cwd=ROOT, check=False).returncode == 0
