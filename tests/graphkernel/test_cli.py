from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import graphkernel as gk
from graphkernel import ops
from graphkernel.cli import CHECK_FAILED, WRONG_USE, app

RUNNER = CliRunner()


def net(x: Any, w: Any) -> Any:
    return ops.exp(ops.matmul(ops.add(ops.mul(x, 2.0), 1.0), w))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    gk.save(gk.trace(net, gk.spec(("N", 4)), gk.spec((4, 4))), tmp_path / "net.gk")
    return tmp_path / "net.gk"


def call(*arguments: object) -> str:
    found = RUNNER.invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_optimize_writes_what_load_reads(path: Path, tmp_path: Path) -> None:
    call("optimize", path, "-o", tmp_path / "out.gk", "--opt-level", "1", "--flags", "--disable_cluster_ops=Exp")
    fused = gk.load(tmp_path / "out.gk")
    assert fused == gk.optimize(gk.load(path), 1, flags="--disable_cluster_ops=Exp")
    assert [node.op.name for node in fused.operators] == ["Fused", "MatMul", "Exp"]


def test_explain(path: Path) -> None:
    assert "4 operators became 2 kernels" in call("explain", path)
    assert "are both in kernel" in call("explain", path, "--why", "Mul", "Add")
    assert json.loads(call("explain", path, "--json"))["decisions"]
    assert len(call("explain", path, "--all")) > len(call("explain", path))


def test_report(path: Path, tmp_path: Path) -> None:
    assert "Fused_Mul_Add" in call("report", path)
    call("report", path, "-o", tmp_path / "r.html")
    call("report", path, "-o", tmp_path / "r.json")
    assert "<table" in (tmp_path / "r.html").read_text()
    assert json.loads((tmp_path / "r.json").read_text())["kernels"]


@pytest.mark.parametrize("against", ["unfused", "numpy", "nothing"])
def test_run(path: Path, against: str) -> None:
    *_, name, values = call("run", path, "--dim", "N=3", "--against", against).splitlines()
    _, type_, _, difference = values.split("\t")
    assert type_ == "float32[3, 4]"
    assert difference == "" if against == "nothing" else float(difference) < 1e-6
    assert name.endswith(against)


def test_run_takes_arrays_from_a_file(path: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.zeros((2, 4), np.float32), w=np.zeros((4, 4), np.float32))
    assert "min 1, mean 1, max 1" in call("run", path, "--input", tmp_path / "in.npz")


def test_run_fails_when_results_differ(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphkernel.cli.evaluate", lambda graph, arrays: (np.zeros((8, 4), np.float32),))
    found = RUNNER.invoke(app, ["run", str(path), "--against", "numpy"])
    assert found.exit_code == CHECK_FAILED
    assert "the results differ" in found.output


@pytest.mark.parametrize(("command", "line"), [
    ("passes", "stage3_split_4_graph_kernel_splitter\t1\ton"),
    ("ops", "ReduceSum\tREDUCE"),
    ("patterns", "reduce_fwd_depth\tfusion"),
    ("expanders", "Softmax\t"),
    ("flags", "--opt_level\tint\t2"),
    ("doctor", "numpy\t" + np.__version__),
])  # fmt: skip
def test_catalogues(command: str, line: str) -> None:
    assert line in call(command)


def test_passes_show_what_is_off() -> None:
    assert "graph_kernel_cse\t2\toff" in call("passes", "--opt-level", "1")


@pytest.mark.parametrize(("arguments", "message"), [
    (["explain", "nothing.gk"], "nothing.gk: there is no such file"),
    (["run", "{path}", "--input", "no.npz"], "no.npz: there is no such file"),
    (["run", "{path}", "--input", "{path}"], "not an .npz file"),
    (["explain", "."], ".: not a file"),
    (["run", "{path}", "--dim", "N"], "--dim N: write NAME=EXTENT"),
    (["optimize", "{path}", "-o", "x.gk", "--flags", "--opt_levle=1"], "opt_level"),
    (["report", "{path}", "-o", "x.pdf"], "a report is written as .html or .json, not .pdf"),
])  # fmt: skip
def test_wrong_use_is_one_line(arguments: list[str], message: str, path: Path) -> None:
    filled = [argument.format(path=path) for argument in arguments]
    command = [sys.executable, "-m", "graphkernel", *filled]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == WRONG_USE
    assert message in found.stderr
    assert "Traceback" not in found.stderr
