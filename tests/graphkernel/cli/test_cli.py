from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

import graphkernel as gk
from graphkernel import ops
from graphkernel.cli import CHECK_FAILED, WRONG_USE, app, main
from graphkernel.cli.base import fitted
from graphkernel.passes.cluster import graph_kernel_cluster
from graphkernel.pipeline import PIPELINE
from graphkernel.runtime.onnxruntime.whole_model import WholeModel
from tests.support.onnx_models import model as onnx_model

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


def cells(line: str) -> list[str]:
    """What stands between two blanks or more."""
    return re.split("  +", line.strip())


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
    head, row = map(cells, call("run", path, "--dim", "N=3", "--against", against).splitlines())
    assert row[1] == "float32[3, 4]"
    compared = against != "nothing"
    assert head == ["output", "type", *(["apart", "verdict"] if compared else []), "values"]
    assert not compared or (float(row[2]) < 1e-6 and row[3] == "same")


def test_run_takes_arrays_from_a_file(path: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=np.zeros((2, 4), np.float32), w=np.zeros((4, 4), np.float32))
    assert "min 1, mean 1, max 1" in call("run", path, "--input", tmp_path / "in.npz")


def test_bench_shows_onnxruntime_unfused_and_fused_with_speed_and_memory(tmp_path: Path) -> None:
    model = tmp_path / "net.onnx"
    onnx.save(onnx_model([onnx.helper.make_node("Exp", ["x"], ["y"])], {"x": np.ones((3, 4), np.float32)}), model)
    found = RUNNER.invoke(app, ["bench", str(model), "--rounds", "2", "--json"], catch_exceptions=False)
    rows = json.loads(found.stdout)
    assert [row["contestant"] for row in rows] == ["onnxruntime", "unfused", "fused"]
    assert [row["speed"] for row in rows] == pytest.approx([rows[0]["least"] / row["least"] for row in rows])
    assert min(row["peak memory"] for row in rows) > 2**20
    assert "x float32[3, 4]: " in found.stderr
    assert " threads of " in found.stderr or "1 thread of " in found.stderr
    assert re.search(r"fused is [0-9.]+ times as fast as onnxruntime", found.stderr)


def test_profile_sorts_by_cost_and_has_the_names_of_the_report(path: Path) -> None:
    table = call("profile", path, "--rounds", "2")
    head, *rows = map(cells, table.splitlines()[:-1])
    assert head == ["what runs", "kind", "calls", "ms", "share"]
    assert sorted(row[1] for row in rows) == ["host", "kernel", "kernel"]
    assert [float(row[3]) for row in rows] == sorted((float(row[3]) for row in rows), reverse=True)
    assert abs(sum(float(row[-1].rstrip("%")) for row in rows) - 100.0) < 0.2
    reported = call("report", path)
    assert all(row[0] in reported for row in rows)
    assert re.search(r"kernel [0-9.e-]+ ms \([0-9.]+%\), host [0-9.e-]+ ms \([0-9.]+%\); [0-9.e-]+ ms in all", table)


def test_run_fails_when_results_differ(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = gk.compile(gk.load(path), 2)
    wrong = MagicMock(return_value=(np.zeros((8, 4), np.float32),), report=right.report)
    monkeypatch.setattr("graphkernel.cli.running.compile", lambda *_, **__: wrong)
    found = RUNNER.invoke(app, ["run", str(path)])
    assert found.exit_code == CHECK_FAILED
    assert "the results differ" in found.output
    assert "differs" in found.stdout


@pytest.mark.parametrize(("command", "line"), [
    ("passes", "stage3_split_4_graph_kernel_splitter 1 on"),
    ("ops", "ReduceSum REDUCE"),
    ("patterns", "reduce_fwd_depth fusion"),
    ("expanders", "Softmax "),
    ("flags", "--opt_level int 2"),
    ("doctor", "numpy " + np.__version__),
])  # fmt: skip
def test_catalogues(command: str, line: str) -> None:
    assert any(" ".join(row.split()).startswith(line) for row in call(command).splitlines())


def test_long_lines_are_broken_at_words_for_a_terminal() -> None:
    text = "  one two three\nfour five six seven\n\nshort " + "long" * 10
    assert fitted(text, 12).split("\n") == [
        "  one two", "    three", "four five", "  six seven", "", "short", f"  {'long' * 10}",
    ]  # fmt: skip


def test_catalogues_are_searched_and_printed_as_json() -> None:
    found = json.loads(call("ops", "softmax", "LAST", "--json"))
    assert [row["operator"] for row in found] == ["SoftmaxCrossEntropyWithLogits"]
    assert len(call("expanders", "softmax").splitlines()) < len(call("expanders").splitlines())
    assert "nothing holds sofmax" in RUNNER.invoke(app, ["ops", "sofmax"]).stderr


def test_passes_show_what_is_off() -> None:
    assert "graph_kernel_cse 2 off" in " ".join(call("passes", "--opt-level", "1").split())


def test_passes_without_work_say_why() -> None:
    assert "stage0_preprocess_0_getitem_tuple 1 on nothing to do: " in " ".join(call("passes").split())


def test_check_tells_every_level(path: Path) -> None:
    head, *rows = map(cells, call("check", path, "--dim", "N=3").splitlines())
    assert head == ["level", "steps", "changed", "kernels", "largest difference", "verdict"]
    assert [(row[0], row[-1]) for row in rows] == [("0", "good"), ("1", "good"), ("2", "good"), ("3", "good")]
    assert rows[0][1:4] == ["0", "0", "0"]


def test_check_holds_what_was_read_to_onnxruntime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "net.onnx"
    node = onnx.helper.make_node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)
    onnx.save(onnx_model([node], {"x": np.ones((3, 4), np.float32)}), model)
    first, *_ = json.loads(call("check", model, "--json"))
    assert (first["level"], first["verdict"]) == ("read", "good")
    monkeypatch.setattr(WholeModel, "__call__", lambda self, *arrays: (np.zeros(3, np.int32),))
    found = RUNNER.invoke(app, ["check", str(model), "--json"])
    assert found.exit_code == CHECK_FAILED
    assert json.loads(found.stdout)[0]["verdict"].startswith("y is int64[3] (min ")


def test_check_of_one_level(path: Path) -> None:
    assert len(call("check", path, "--flags", "--opt_level=1").splitlines()) == 2


def test_check_names_a_step_that_changes_numbers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = replace(graph_kernel_cluster, run=lambda graph, context: graph.with_outputs(graph.inputs[:1]))
    table = [replace(step, pass_=planted) if step.pass_ is graph_kernel_cluster else step for step in PIPELINE]
    monkeypatch.setattr("graphkernel.pipeline.PIPELINE", tuple(table))
    found = RUNNER.invoke(app, ["check", str(path)])
    assert found.exit_code == CHECK_FAILED
    assert "pass stage1_cluster_4_graph_kernel_cluster changed output 0" in found.output


def test_bisect_of_a_right_model(path: Path) -> None:
    assert call("bisect", path) == "every step, every kernel and the whole run keep the numbers\n"


@pytest.mark.parametrize(("arguments", "message"), [
    (["explain", "nothing.gk"], "nothing.gk: there is no such file"),
    (["run", "{path}", "--input", "no.npz"], "no.npz: there is no such file"),
    (["run", "{path}", "--input", "{path}"], "not an .npz file"),
    (["explain", "."], ".: not a file"),
    (["run", "{path}", "--dim", "N"], "--dim N: write NAME=EXTENT"),
    (["optimize", "{path}", "-o", "x.gk", "--flags", "--opt_levle=1"], "opt_level"),
    (["optimize", "{path}", "-o", "nodir/x.gk"], "nodir/x.gk: there is no folder nodir"),
    (["report", "{path}", "-o", "nodir/x.html"], "nodir/x.html: there is no folder nodir"),
    (["explain", "{path}", "--opt-level", "-1"], "opt_level is -1; 0 off, 1 basic fusion"),
    (["explain", "{path}", "--opt-level", "7"], "opt_level is 7; 0 off, 1 basic fusion"),
    (["explain", "{path}", "--target", "cpuu"], "(did you mean 'cpu'?)"),
    (["report", "{path}", "-o", "x.pdf"], "a report is written as .html or .json, not .pdf"),
])  # fmt: skip
def test_wrong_use_is_one_line(
    arguments: list[str], message: str, path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of the entry point: what a process of its own would have printed, whoever prints it."""
    monkeypatch.setattr(sys, "argv", ["graphkernel", *(argument.format(path=path) for argument in arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capfd.readouterr().err
    assert ended.value.code == WRONG_USE
    assert message in said
    assert "Traceback" not in said
