"""What was compiled before is taken from disk: without optimizer and compiler, for the same question alone."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import graphkernel as gk
from graphkernel import ops, recall
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.packages import kept_weights
from graphkernel.runtime.kernel_cache import cached_kernels
from graphkernel.system.environment import Environment
from kernelgen.native import mapped
from kernelgen.system import object_cache
from kernelgen.system.limits import LIMITS
from tests.graphkernel.report.test_page import data_of
from tests.support.onnx_models import model

pytestmark = [
    pytest.mark.release_memory,
    pytest.mark.skipif(not mapped.is_supported(), reason="executables are kept on x86-64 Linux"),
]

WEIGHT = np.random.default_rng(0).normal(size=(64, 48)).astype(np.float32)
X = np.random.default_rng(1).normal(size=(4, 64)).astype(np.float32)


def traced(factor: float = 2.0) -> gk.Graph:
    def net(x):
        return ops.softmax(ops.relu(ops.matmul(x, WEIGHT)) * factor + 1.0, axis=-1)

    return gk.trace(net, gk.spec(("N", 64), "float32"))


def root_of(array: np.ndarray) -> object:
    """What owns the memory of an array."""
    found: Any = array  # numpy's base may be of any type
    while (inner := getattr(found, "base", getattr(found, "obj", None))) is not None:
        found = inner
    return found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path))
    return tmp_path


def kept(folder: Path) -> list[Path]:
    return [entry.path for entry in cached_kernels(folder) if entry.target == recall.ROOM]


def is_recalled(executable: gk.Executable) -> bool:
    """Whether no optimizer ran; kernels may be taken from disk in either case."""
    return executable.report.optimize_ms == 0


def test_the_second_time_nothing_is_compiled(folder: Path) -> None:
    first, second = gk.compile(traced()), gk.compile(traced())
    assert not is_recalled(first)
    assert is_recalled(second)
    assert np.array_equal(first(X)[0], second(X)[0])
    assert second.graph == first.graph
    assert len(kept(folder)) == 1
    assert kept(folder)[0].stat().st_size < WEIGHT.nbytes + (64 << 10)


def test_weights_that_were_laid_out_lie_in_arrays_of_their_own_that_start_with_a_line() -> None:
    weight = np.random.default_rng(2).normal(size=(64, 192)).astype(np.float32)
    graph = gk.trace(lambda x: ops.matmul(x, weight), gk.spec(("N", 64), "float32"))
    for made in (gk.compile(graph), gk.compile(graph)):
        arrays = [held.array for held in made.program.constants if held.array is not None and held.array.size > 1]
        assert arrays
        for array in arrays:
            assert isinstance(root_of(array), np.ndarray)
            assert array.ctypes.data % 64 == 0


def test_a_fresh_process_runs_neither_isl_nor_llvm(folder: Path) -> None:
    program = (
        "import sys, numpy as np, graphkernel as gk\n"
        "from tests.graphkernel.test_recall import X, traced\n"
        "before = {name.split('.')[0] for name in sys.modules}\n"
        "gk.compile(traced())(X)\n"
        "after = {name.split('.')[0] for name in sys.modules} - before\n"
        "print(*sorted(after & {'islpy', 'llvmlite', 'pydantic', 'networkx'}))"
    )

    def run() -> str:
        return subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
        ).stdout.strip()

    assert "llvmlite" in run()
    assert len(kept(folder)) == 1
    assert run() == ""


def test_another_question_has_another_answer(folder: Path) -> None:
    gk.compile(traced())
    others = (
        gk.compile(traced(3.0)), gk.compile(traced(), opt_level=1), gk.compile(traced(), opt_level=0),
        gk.compile(traced(), flags="--enable_low_precision=false"), gk.compile(traced(), host="numpy"),
    )  # fmt: skip
    assert not any(is_recalled(other) for other in others if any(hasattr(step, "kernel") for step in other.plan.steps))
    assert len(kept(folder)) == 6


@pytest.mark.parametrize("what", ["thread_count", "processor_level"])
def test_surroundings_are_those_of_now(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    for value in ("1", "2", "1"):
        monkeypatch.setattr(recall.options, what, lambda value=value: value)
        found.append(recall.surroundings())
    assert found[0] == found[2] != found[1]


def test_other_surroundings_have_another_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gk.compile(traced())
    for replaced in ("", "--opt_level=1"):
        monkeypatch.setenv("MS_DEV_GRAPH_KERNEL_FLAGS", replaced)
        gk.compile(traced())
    monkeypatch.setattr(recall, "surroundings", lambda: "another machine")
    assert not is_recalled(gk.compile(traced()))
    assert len(kept(folder)) == 4


def test_what_is_watched_is_compiled(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert not recall.is_kept("", Environment(dump_dir="somewhere"))
    assert not recall.is_kept("--enable_debug_mode=true", Environment())
    gk.compile(traced(), flags="--enable_debug_mode=true")
    gk.compile(traced(), compiler=lambda desc, target: lambda *inputs, out=None: ())
    assert kept(folder) == []


@pytest.mark.parametrize("size", [0, 100, -1])
def test_what_is_damaged_is_made_again(folder: Path, size: int) -> None:
    expected = gk.compile(traced())(X)
    (entry,) = kept(folder)
    sound = entry.read_bytes()
    entry.write_bytes(sound[:size])
    again = gk.compile(traced())
    assert not is_recalled(again)
    assert np.array_equal(again(X)[0], expected[0])
    assert entry.read_bytes() == sound
    assert is_recalled(gk.compile(traced()))


def with_large_weights() -> gk.Graph:
    weights = [np.random.default_rng(k).normal(size=(512, 512)).astype(np.float32) for k in range(3)]

    def net(x):
        for weight in weights:
            x = ops.relu(ops.matmul(x, weight))
        return x

    return gk.trace(net, gk.spec(("N", 512), "float32"))


def test_what_was_made_of_weights_lies_beside_the_graph_however_much_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_cache, "LIMITS", LIMITS._replace(object_bytes=3 << 19))
    monkeypatch.setattr(kept_weights, "FILE_BYTES", 1 << 20)
    x = np.ones((4, 512), np.float32)
    expected = gk.compile(with_large_weights())(x)[0]
    (entry,) = kept(folder)
    assert entry.stat().st_size < 1 << 20
    again = gk.compile(with_large_weights())
    assert is_recalled(again)
    assert np.array_equal(again(x)[0], expected)


def test_a_damaged_weight_beside_a_graph_is_made_again(folder: Path) -> None:
    x = np.ones((4, 512), np.float32)
    expected = gk.compile(with_large_weights())(x)[0]
    (entry,) = [each.path for each in cached_kernels(folder) if each.target == kept_weights.ROOM]
    sound = entry.read_bytes()
    entry.write_bytes(sound[:-4] + b"\0\0\0\1")
    again = gk.compile(with_large_weights())
    assert not is_recalled(again)
    assert np.array_equal(again(x)[0], expected)
    assert entry.read_bytes() == sound


def test_a_folder_that_others_may_write_to_is_not_used(folder: Path) -> None:
    gk.compile(traced())
    (folder / recall.ROOM).chmod(0o777)
    assert not is_recalled(gk.compile(traced()))


def test_it_can_be_pickled_and_saved(folder: Path, tmp_path: Path) -> None:
    gk.compile(traced())
    second = gk.compile(traced())
    third = pickle.loads(pickle.dumps(second))
    assert is_recalled(third)
    assert np.array_equal(third(X)[0], second(X)[0])
    second.save(tmp_path / "second.gkx")
    assert np.array_equal(gk.load_compiled(tmp_path / "second.gkx")(X)[0], second(X)[0])


def test_its_report_draws_the_graphs(folder: Path) -> None:
    first, second = gk.compile(traced()), gk.compile(traced())
    assert is_recalled(second)
    assert data_of(second.report.to_html())["before"] == data_of(first.report.to_html())["before"]


def test_numbers_that_several_operators_read_are_no_hindrance(folder: Path) -> None:
    """In the text of a graph such a number stands at each of them."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("Exp", ["d"], ["e"]),
        helper.make_node("Tanh", ["e"], ["y"]),
    ]
    constants = {"s": np.array(0.5, np.float32), "z": np.array(0, np.int8)}
    graph = import_onnx(model(nodes, {"x": X}, ("y",), constants))
    first, second = gk.compile(graph), gk.compile(graph)
    assert is_recalled(second)
    assert second.graph == first.graph
    assert [step.name for step in second.plan.steps] == [step.name for step in first.plan.steps]
    assert np.array_equal(first(X)[0], second(X)[0])
