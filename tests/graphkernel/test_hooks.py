"""Hooks between steps."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.declarations import builtin_catalogue
from graphkernel.driver import optimize
from graphkernel.errors import OptionError, PassError
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import OPS, Tensor
from graphkernel.options import Options
from graphkernel.passes.base import Context, Hook, Pass, Step, graph_pass, run_steps
from graphkernel.pipeline import steps_for
from graphkernel.step_hooks import Clock, ClusterText, Dump, SameNumbers, Trail, Verify, dumps_for
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.operators.elemwise import EXP, NEG
from kernelgen.tensor.text import parse


def mynet(x: Tensor) -> Tensor:
    return ops.neg(ops.neg(x * 2.0)) + 1.0


GRAPH = trace(mynet, spec(("N", 4)))


def run(*hooks: Hook, level: int = 2) -> Graph:
    options = Options(opt_level=level)
    return run_steps(GRAPH, steps_for(options), builtin_catalogue().context(options), hooks)


@graph_pass
def wrong_numbers(graph: Graph, context: Context) -> Graph:
    """Computes something else."""
    return graph.with_outputs((Builder().emit(EXP, graph.outputs[0]),))


@graph_pass
def wrong_type(graph: Graph, context: Context) -> Graph:
    """Claims a type that the operator does not give."""
    from dataclasses import replace

    node = Builder().node(NEG, graph.outputs)
    return graph.with_outputs(replace(node, types=(spec((3,)),)).outs)


def only(entry: Pass) -> tuple[Step, ...]:
    return (Step(entry, "cluster", 1, level=1, why=""),)


def test_verify_names_the_step_that_left_an_invalid_graph() -> None:
    run(Verify())
    with pytest.raises(PassError, match="wrong_type left an invalid graph 'mynet': invariant"):
        run_steps(GRAPH, only(wrong_type), Context(), (Verify(),))


def test_same_numbers_names_the_guilty_step() -> None:
    arrays = [np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)]
    run(SameNumbers(arrays))
    with pytest.raises(PassError, match="wrong_numbers changed output 0 of graph 'mynet' by up to"):
        run_steps(GRAPH, only(wrong_numbers), Context(), (SameNumbers(arrays),))


def test_dumps_are_numbered_and_can_be_read_back(tmp_path: Path) -> None:
    fused = run(Dump(tmp_path))
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files][:2] == ["0000_input.gk", "0001_stage1_cluster_4_graph_kernel_cluster.gk"]
    assert parse(files[0].read_text(), OPS) == GRAPH
    assert parse(files[-1].read_text(), OPS) == fused


def test_a_step_that_changed_nothing_writes_nothing(tmp_path: Path) -> None:
    run(Dump(tmp_path), level=0)
    assert list(tmp_path.iterdir()) == []


def test_cluster_text(tmp_path: Path) -> None:
    run(ClusterText(tmp_path), level=1)
    text = (tmp_path / f"graph_kernel_cluster_{os.getpid()}.txt").read_text()
    lines = text.splitlines()
    assert lines[0].startswith("Source nodes of ")
    assert "Fused_" in lines[0]
    assert [line.split(" = ")[1].split("(")[0] for line in lines[1:5]] == ["Mul", "Neg", "Neg", "Add"]
    assert set(lines[5]) == {"="}


def test_the_clock_knows_every_step_that_does_something() -> None:
    clock = Clock()
    run(clock)
    assert set(clock.seconds) == {
        step.name for step in steps_for(Options()) if step.enabled and not step.pass_.absorbed
    }
    assert all(seconds > 0 for seconds in clock.seconds.values())


def test_which_dumps_the_options_ask_for(tmp_path: Path) -> None:
    assert dumps_for(Options()) == ()
    assert dumps_for(Options(dump_dir=str(tmp_path))) == (Dump(tmp_path),)
    kept, text = dumps_for(Options(dump_as_text=True))
    assert (kept, text) == (Dump(Path("graph_kernel_dump")), ClusterText(Path("graph_kernel_dump")))


def test_same_numbers_lets_16_bits_round() -> None:
    narrow = np.array([1000.0, 1.0], np.float16)
    check = SameNumbers([narrow])
    rounded, wrong = (trace(lambda x, by=by: x + by, spec((2,), "float16")) for by in (1.0, 8.0))
    same = trace(lambda x: x, spec((2,), "float16"))
    step = only(wrong_numbers)[0]
    check(step, same, rounded)
    with pytest.raises(PassError, match="changed output 0"):
        check(step, same, wrong)


def test_a_trail_counts() -> None:
    trail = Trail()
    run(trail, level=1)
    assert trail.steps == len(
        [step for step in steps_for(Options(opt_level=1)) if step.enabled and not step.pass_.absorbed]
    )
    assert 0 < trail.changed < trail.steps


def test_a_variable_asks_for_dumps_that_can_be_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MS_DEV_DUMP_GRAPH_KERNEL_IR", "on")
    fused = optimize(GRAPH)
    graphs = sorted((tmp_path / "graph_kernel_dump").glob("*.gk"))
    assert [parse(file.read_text(), OPS) for file in graphs][:: len(graphs) - 1] == [GRAPH, fused]
    assert [file.name[:4] for file in graphs] == [f"{number:04d}" for number in range(len(graphs))]
    assert len(list((tmp_path / "graph_kernel_dump").glob("graph_kernel_cluster_*.txt"))) == 1


@pytest.mark.parametrize("flags", ["--dump_dir=/proc/no/such", "--dump_dir={file}/inside", "--dump_as_text=on"])
def test_a_dump_that_cannot_be_written_is_told(flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "graph_kernel_dump").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError, match=r"dump: .*cannot be written"):
        optimize(GRAPH, flags=flags.format(file=tmp_path / "graph_kernel_dump"))


@pytest.mark.parametrize("variable", ["GRAPHKERNEL_DUMP_DIR", "MS_DEV_GRAPH_KERNEL_FLAGS"])
def test_a_dump_that_a_variable_asks_for_only_warns(
    variable: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    flags = "--opt_level=2 --dump_dir=/proc/no/such"
    monkeypatch.setenv(variable, flags if variable.endswith("FLAGS") else "/proc/no/such")
    assert optimize(GRAPH).operators
    assert [record.message for record in caplog.records if "cannot be written" in record.message][1:] == []
    assert "/proc/no/such" in caplog.text
