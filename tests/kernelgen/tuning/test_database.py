"""What tuning finds is kept, holds for its machine alone, and is followed byte for byte."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_examples import column_sum, softmax

import graphkernel as gk
import kernelgen
from graphkernel import ops
from graphkernel.cli.tuning import kernels_of
from graphkernel.handoff import PLAN
from kernelgen.composite.write import dump_desc
from kernelgen.errors import ArgumentError
from kernelgen.farm import Journal, answers, local
from kernelgen.farm.journal import digest
from kernelgen.farm.sandbox import TaskError, end_children
from kernelgen.kernel import Kernel
from kernelgen.strict_json import from_json, to_json
from kernelgen.tensor.graph import Graph
from kernelgen.tuning.comparison import Ratio, outside
from kernelgen.tuning.database import Bounds, Finding, Subject, Tunings, digest_of, machine_here
from kernelgen.tuning.neighbours import neighbours
from kernelgen.tuning.task import finding, is_gain, request, tuned, tuned_here


def graph() -> Graph:
    def net(x: Any) -> Any:
        e = ops.exp(x - ops.reduce_max(x, axis=(1,), keep_dims=True))
        return e / ops.reduce_sum(e, axis=(1,), keep_dims=True)

    return gk.trace(net, gk.spec((64, 300), "float32"))


def another_plan(kernel: Kernel) -> kernelgen.Plan:
    """One that the kernel would not have taken itself."""
    for _, plan in neighbours(kernel.plan):
        try:
            if kernelgen.compile(kernel.desc, "cpu", plan, kernel.constants).source != kernel.source:
                return replace(plan, subject="")
        except kernelgen.KernelgenError:
            continue
    raise AssertionError("there is none")


def found_for(subject: Subject, plan: str, **changes: Any) -> Finding:
    known = Finding(
        subject.key, "cpu", machine_here(), (), plan, Bounds(0.5, 0.5, 0.5), 0.01, 1e-3, ("a change",), 7, ""
    )
    return replace(known, **changes)


def written(path: Path, *findings: Finding) -> Path:
    with Journal(path) as journal:
        for number, each in enumerate(findings):
            journal.add(digest("f", str(number).encode()), to_json(each))
    return path


@pytest.fixture
def database(tmp_path: Path) -> Path:
    (subject,) = kernels_of(gk.optimize(graph())).values()
    kernel = kernelgen.compile(kernelgen.load_desc(subject.description))
    return written(tmp_path / "found.jsonl", found_for(subject, json.dumps(another_plan(kernel).to_json())))


def source_of(graph: Graph, **more: object) -> str:
    made: list[Kernel] = []

    def compiler(desc: kernelgen.KernelDesc, **asked: object) -> Kernel:
        made.append(kernelgen.compile(desc, **asked))  # pyright: ignore[reportArgumentType]
        return made[-1]

    gk.compile(graph, compiler=compiler, host="numpy", **more)  # pyright: ignore[reportArgumentType]
    return made[0].source


def test_compile_follows_what_was_found_byte_for_byte(database: Path) -> None:
    plain, followed = source_of(graph()), source_of(graph(), tuned=database)
    assert followed != plain
    assert followed == source_of(graph(), tuned=str(database))
    assert followed == source_of(gk.optimize(graph(), tuned=database)), "the graph carries the plans"
    assert followed == source_of(gk.parse(str(gk.optimize(graph(), tuned=database)))), "its text too"


def test_a_product_is_tuned_as_its_network_has_it(tmp_path: Path) -> None:
    """With constant weights, which are laid out before all calls: what is measured is what the network runs."""
    weights = np.random.default_rng(0).standard_normal((48, 64)).astype(np.float32)
    net = gk.trace(lambda x: ops.relu(x @ weights), gk.spec((40, 48)))
    (subject,) = kernels_of(gk.optimize(net)).values()
    assert subject.constants == (1,)
    desc = kernelgen.load_desc(subject.description)
    kernel = kernelgen.compile(desc, constants=subject.constants)
    found = finding(subject, "cpu", 2)
    assert found.kernel == subject.key
    if not found.plan:
        assert found.source == digest_of(kernel.source) != digest_of(kernelgen.compile(desc).source)
    path = written(tmp_path / "found.jsonl", found_for(subject, json.dumps(another_plan(kernel).to_json())))
    made = [kernels(gk.compile(net, tuned=tuned)) for tuned in (None, path)]
    assert made[0] == [kernel.source] != made[1]


def kernels(exe: gk.Executable) -> list[str]:
    """The texts of an executable's kernels."""
    found = (getattr(step, "kernel", None) for step in exe.program.steps)
    return [kernel.source for kernel in found if isinstance(kernel, Kernel)]


def test_plans_travel_with_the_package(database: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(0).random((64, 300), np.float32)
    exe = gk.compile(graph(), tuned=database)
    exe.save(tmp_path / "net.gkx")
    loaded = gk.load_compiled(tmp_path / "net.gkx")
    np.testing.assert_array_equal(loaded(x)[0], exe(x)[0])
    (node,) = (node for node in loaded.plan.graph.operators if node.body is not None)
    assert node.attrs[PLAN] == Tunings.read(database).findings[0].plan


def test_what_was_compiled_before_with_other_plans_is_not_taken(database: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path))

    def plans(**more: object) -> list[object]:
        exe = gk.compile(graph(), **more)  # pyright: ignore[reportArgumentType]
        return [node.attrs.get(PLAN) for node in exe.plan.graph.operators if node.body is not None]

    for _ in range(2):
        assert plans() == [None]
        assert plans(tuned=database) != [None]


def test_findings_of_other_machines_and_targets_are_not_followed(tmp_path: Path) -> None:
    subject = Subject(dump_desc(softmax()))
    other = written(tmp_path / "other", found_for(subject, "{}", machine="another; 64 threads"))
    assert Tunings.read(other).plan(subject, "cpu") == ""
    ascend = written(tmp_path / "ascend", found_for(subject, "{}", target="ascend"))
    assert Tunings.read(ascend).plan(subject, "cpu") == ""


def test_kernels_are_known_whatever_they_are_called() -> None:
    one = dump_desc(softmax())
    assert Subject(one).key == Subject({**one, "op": "another"}).key != Subject(dump_desc(column_sum())).key
    assert Subject(one).key != Subject(one, (0,)).key != Subject(one, (1,)).key


def test_a_plan_that_no_longer_fits_is_told_of_and_not_followed(tmp_path: Path, caplog) -> None:
    (subject,) = kernels_of(gk.optimize(graph())).values()
    for number, plan in enumerate(('{"version": 99}', '{"bands": []}', "nonsense")):
        path = written(tmp_path / str(number), found_for(subject, plan))
        with caplog.at_level(logging.WARNING):
            assert source_of(graph(), tuned=path) == source_of(graph())
        assert "tuned plan unused" in caplog.text
        assert "tune again into a new file" in caplog.text
        caplog.clear()


def test_a_file_of_something_else_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "x").write_text('{"key": "a", "answer": {"kernel": 3}}\n')
    with pytest.raises(ArgumentError):
        gk.compile(graph(), tuned=tmp_path / "x")
    with pytest.raises(ArgumentError, match="cannot be read"):
        gk.compile(graph(), tuned=tmp_path / "none")


def test_a_kernel_is_tuned_over_a_crew_and_known_the_second_time(tmp_path: Path) -> None:
    subject = Subject(dump_desc(softmax(8, 40)))
    asked = request(subject, most=3)
    with local(1) as crew, Journal(tmp_path / "found.jsonl") as journal:
        ((_, first),) = answers(tuned, [("softmax", asked)], crew, journal)
    found = from_json(Finding, first)
    assert (found.kernel, found.machine) == (subject.key, machine_here())
    assert found.trials == 3
    assert bool(found.plan) == bool(found.changes)
    with local(1) as crew, Journal(tmp_path / "found.jsonl") as journal:
        assert list(answers(tuned, [("softmax", asked)], crew, journal)) == [("softmax", first)]
    assert Tunings.read(tmp_path / "found.jsonl").plan(subject, "cpu") == found.plan
    plan = kernelgen.Plan.from_json(json.loads(found.plan)) if found.plan else None
    assert digest_of(kernelgen.compile(softmax(8, 40), "cpu", plan).source) == found.source


def test_a_machine_of_another_kind_measures_nothing() -> None:
    asked = {**json.loads(request(Subject(dump_desc(softmax())))), "machine": "another"}
    with pytest.raises(TaskError, match="asked for another"):
        tuned_here(json.dumps(asked).encode())


def test_a_worker_measures_with_as_many_threads_as_whoever_asked_would_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask tells what it starts to use one."""
    asked = request(Subject(dump_desc(softmax(8, 40))), most=1)
    machine = machine_here()
    end_children()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    try:
        found = from_json(Finding, json.loads(tuned(asked))["answer"])
    finally:
        end_children()
    assert found.machine == machine


def test_a_kernel_that_cannot_be_compiled_has_no_plan() -> None:
    description = dump_desc(softmax())
    description["op_desc"][0]["name"] = "Conv2DBackpropFilter"
    with pytest.raises(kernelgen.KernelgenError):
        kernelgen.compile(kernelgen.load_desc(description))
    assert finding(Subject(description), "cpu", 3).plan == ""


@pytest.mark.parametrize(
    ("ratio", "noise", "kept"),
    [
        (Ratio(0.7, 0.6, 0.8, 0.5, 31), 0.05, True),
        (Ratio(0.7, 0.6, 0.8, 0.5, 31), 0.25, False),  # the machine is busy
        (Ratio(0.9, 0.6, 1.2, 0.5, 31), 0.05, False),  # nobody knows
        (Ratio(0.99, 0.98, 0.995, 0.9, 31), 0.01, False),
        (Ratio(1.3, 1.2, 1.4, 1.1, 31), 0.0, False),
    ],
)
def test_a_plan_is_kept_only_for_a_gain_beyond_the_noise(ratio: Ratio, noise: float, kept: bool) -> None:
    assert is_gain(ratio, noise) is kept


def test_bounds_hold_the_median_of_many_in_most_cases() -> None:
    random = np.random.default_rng(0)
    for turns in (6, 9, 31):
        drawn = np.sort(random.exponential(size=(4000, turns)), axis=1)
        left = outside(turns)
        inside = (drawn[:, left] <= np.log(2)) & (np.log(2) <= drawn[:, -1 - left])
        assert inside.mean() > 0.94
