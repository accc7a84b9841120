"""A model that is new is loaded and compiled by another process: this one gets what it would have made, and nothing else."""

from __future__ import annotations

import gc
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import graphkernel as gk
from graphkernel import driver, elsewhere
from graphkernel.elsewhere import ModelFile
from graphkernel.errors import FrontendError
from graphkernel.frontends.load import load as load_anew
from graphkernel.packages.reports import report_text
from graphkernel.packages.unread import UnreadGraph, file_of
from kernelgen.native import mapped
from kernelgen.system.notices import warn_once

pytestmark = [
    pytest.mark.release_memory,
    pytest.mark.skipif(not mapped.is_supported(), reason="executables are kept on x86-64 Linux"),
]

X = np.random.default_rng(0).normal(size=(3, 64)).astype(np.float32)
HEAVY = ("onnx", "islpy", "llvmlite", "pydantic", "networkx", "graphkernel.driver", "graphkernel.frontends.load")
"""What compiles or leads there: nothing that runs a model needs it."""


def written(path: Path, layers: int = 1, *, external: bool = False, declared: int = 0) -> Path:
    """A model of two kernels for each of its ``layers``, none of which is like another."""
    nodes, weights, value = list[onnx.NodeProto](), list[onnx.TensorProto](), "x"
    for k in range(layers):
        size = (64 + k, 65 + k)
        weights.append(numpy_helper.from_array(np.random.default_rng(k).normal(size=size).astype(np.float32), f"w{k}"))
        nodes.append(helper.make_node("MatMul", [value, f"w{k}"], [f"m{k}"]))
        nodes.append(helper.make_node("Softmax", [f"m{k}"], [value := f"y{k}"], axis=-1))
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", size])
        for name, size in (("x", 64), (value, declared or 64 + layers))
    ]
    graph = helper.make_graph(nodes, "net", infos[:1], infos[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save_model(model, path, save_as_external_data=external, size_threshold=1024, location="weights.bin")
    return path


def is_made_here(executable: gk.Executable) -> bool:
    return any(hasattr(getattr(step, "kernel", None), "lowered") for step in executable.plan.steps)


def children() -> set[str]:
    """The processes that this one started and that still run."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {child for path in tasks for child in path.read_text().split()}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(elsewhere, "_is_worth_it", lambda _: True)  # this process has all long since
    return tmp_path / "cache"


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_nothing_that_compiles_comes_into_a_process(layers: int, tmp_path: Path) -> None:
    program = (
        "import sys, numpy as np, graphkernel as gk\n"
        "exe = gk.compile(gk.load(sys.argv[1]))\n"
        "np.save(sys.argv[2], exe(np.load(sys.argv[3]))[0])\n"
        f"print(len(exe.program.steps), *sorted(set(sys.modules) & set({HEAVY!r})))"
    )
    path, given, result = written(tmp_path / "net.onnx", layers), tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(given, X)
    command = [sys.executable, "-c", program, *map(str, (path, result, given))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split()[1:] == []
    assert done.stderr == ""
    np.testing.assert_array_equal(np.load(result), driver.compile(load_anew(path))(X)[0])


def test_graph_and_executable_are_those_that_this_process_makes(tmp_path: Path) -> None:
    path = written(tmp_path / "net.onnx", 2)
    asked: dict[str, Any] = {"opt_level": 3, "flags": {"enable_parallel_fusion": True}, "threads": 1}
    graph = gk.load(path, dims={"N": 3})
    here = load_anew(path, {"N": 3})
    made, expected = gk.compile(graph, **asked), driver.compile(here, **asked)
    assert type(graph) is UnreadGraph
    assert not is_made_here(made)
    assert (graph, graph.origins) == (here, here.origins)
    assert report_text(made.report) == report_text(expected.report)
    np.testing.assert_array_equal(made(X)[0], expected(X)[0])


def test_times_are_those_of_who_compiled(tmp_path: Path) -> None:
    path = written(tmp_path / "net.onnx", 2)
    first, again = (gk.compile(gk.load(path)).report for _ in range(2))
    assert first.optimize_ms > 0
    assert first.compile_ms > 0
    assert (len(first.kernels), {kernel.cached for kernel in first.kernels}) == (4, {False})
    assert (len(again.kernels), {kernel.cached for kernel in again.kernels}) == (4, {True})
    assert again.optimize_ms == 0


def test_progress_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "net.onnx", 2)
    there, here = list[tuple[str, int, int]](), list[tuple[str, int, int]]()
    gk.compile(gk.load(path), progress=lambda *step: there.append(step))
    driver.compile(load_anew(path), progress=lambda *step: here.append(step))
    optimizing = [step for step in here if step[0] == "optimizing"]
    assert there == [*optimizing, *(("compiling kernels", done, 4) for done in range(4))]


def test_what_loading_doubts_is_said_here(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    warn_once.cache_clear()
    gk.load(written(tmp_path / "net.onnx", declared=70))
    assert "result y0" in caplog.text


@pytest.mark.parametrize("child", ["no.such.module:answer", "tests.graphkernel.test_elsewhere:dies"])
def test_what_becomes_of_the_other_process_is_no_matter(
    child: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elsewhere, "_CHILD", child)
    path = written(tmp_path / "net.onnx")
    np.testing.assert_array_equal(gk.compile(gk.load(path))(X)[0], driver.compile(load_anew(path))(X)[0])


def dies(request: bytes) -> bytes:
    raise SystemExit(3)


def test_errors_are_met_here(tmp_path: Path) -> None:
    (tmp_path / "net.onnx").write_bytes(b"no model")
    with pytest.raises(FrontendError, match="cannot be read as an ONNX model"):
        gk.load(tmp_path / "net.onnx")
    graph = gk.load(written(tmp_path / "net.onnx"))
    with pytest.raises(gk.GraphKernelError, match="opt_level"):
        gk.compile(graph, flags="--opt_level=high")


def test_a_model_whose_weights_lie_beside_it_is_loaded_and_compiled_here(tmp_path: Path) -> None:
    path = written(tmp_path / "net.onnx", external=True)
    graph = gk.load(path)
    assert file_of(graph) is None
    np.testing.assert_array_equal(gk.compile(graph)(X)[0], driver.compile(load_anew(path))(X)[0])


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    before = children()
    graph = gk.load(written(tmp_path / "net.onnx"))
    assert children() - before, "it waits to compile the model"
    gk.compile(graph)
    assert children() == before
    graph = gk.load(written(tmp_path / "other.onnx"))
    del graph
    gc.collect()
    assert children() == before


def test_an_interrupt_ends_the_process(tmp_path: Path) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    before, graph = children(), gk.load(written(tmp_path / "net.onnx"))
    with pytest.raises(KeyboardInterrupt):
        gk.compile(graph, progress=interrupted)
    end = time.monotonic() + 60
    while children() - before and time.monotonic() < end:
        time.sleep(0.01)
    assert children() == before


def test_a_process_that_went_meanwhile_is_replaced(tmp_path: Path) -> None:
    before, graph = children(), gk.load(written(tmp_path / "net.onnx"))
    (waiting,) = children() - before
    os.kill(int(waiting), signal.SIGKILL)
    os.waitid(os.P_PID, int(waiting), os.WEXITED | os.WNOWAIT)
    assert not is_made_here(gk.compile(graph))


def test_who_has_it_or_reads_what_is_logged_does_it_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert not elsewhere._is_worth_it("onnx")
    assert elsewhere._is_worth_it("no such module")
    with monkeypatch.context() as watched:
        watched.setenv("GRAPHKERNEL_LOG", "info")
        assert not elsewhere._is_worth_it("no such module")
    with monkeypatch.context() as embedded:
        embedded.setattr(sys, "executable", "/usr/bin/blender")
        assert not elsewhere._is_worth_it("no such module")
    logging.getLogger("graphkernel").setLevel(logging.INFO)
    try:
        assert not elsewhere._is_worth_it("no such module")
    finally:
        logging.getLogger("graphkernel").setLevel(logging.NOTSET)


def test_what_cannot_be_asked_is_not(tmp_path: Path) -> None:
    before = children()
    ModelFile(str(tmp_path / "net.onnx"), None).compile({"flags": object()}, None)
    assert children() == before
