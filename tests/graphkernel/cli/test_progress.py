"""What commands and the library tell of how far they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.bisect import bisect
from graphkernel.cli.progress import Lines, progress, within
from graphkernel.declarations import builtin_catalogue
from graphkernel.errors import PassError
from graphkernel.options import Options
from graphkernel.passes.base import run_steps
from graphkernel.passes.cluster import graph_kernel_cluster
from graphkernel.pipeline import PIPELINE
from graphkernel.step_hooks import SameNumbers

GRAPH = gk.trace(lambda x, w: ops.exp(ops.matmul(ops.neg(ops.exp(x)), w)), gk.spec((4, 4)), gk.spec((4, 4)))
X = np.ones((4, 4), np.float32)
Heard = list[tuple[str, int, int]]


def test_compiling_tells_its_steps_and_kernels() -> None:
    heard: Heard = []
    gk.compile(GRAPH, 2, progress=lambda *said: heard.append(said))
    steps = [(done, total) for what, done, total in heard if what == "optimizing"]
    assert [done for done, _ in steps] == list(range(1, len(steps) + 1))
    assert {total for _, total in steps} == {len(steps)}
    assert [said for said in heard if said[0] == "compiling kernels"] == [
        ("compiling kernels", 0, 2),
        ("compiling kernels", 1, 2),
    ]


def test_bisecting_tells_its_steps() -> None:
    heard: Heard = []
    assert bisect(GRAPH, [X, X], Options(), progress=lambda *said: heard.append(said)) is None
    assert heard[0] == ("step", 0, len(heard) - 1)
    assert heard[-1][0] == "comparing kernels"


def test_a_log_hears_at_most_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    times = iter([0.0, 1.0, 9.9, 10.0, 10.0, 11.0, 25.0, 25.0])
    tell = within(Lines(said.append, lambda: next(times)), "check")
    for done in range(5):
        tell("step", done, 5 if done else 0)
    assert said == ["check: step, 2 of 5", "check: step, 4 of 5"]
    with progress("a short command") as quiet:
        quiet("step", 1, 2)
    assert capsys.readouterr().err == ""


def test_a_step_that_only_rounds_otherwise_keeps_the_numbers() -> None:
    graph = gk.trace(lambda x: ops.sub(ops.add(x, 10000.0), 10000.0), gk.spec((4, 4)))
    (step,) = [step for step in PIPELINE if step.pass_ is graph_kernel_cluster]
    arrays = [np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)]

    def becoming(function: object) -> None:
        other = gk.trace(function, gk.spec((4, 4)))  # pyright: ignore[reportArgumentType]  # any function of tensors
        planted = replace(step, pass_=replace(graph_kernel_cluster, run=lambda graph, context: other))
        run_steps(graph, (planted,), builtin_catalogue().context(Options()), (SameNumbers(arrays),))

    becoming(lambda x: ops.mul(x, 1.0))
    with pytest.raises(PassError, match="changed output 0"):
        becoming(lambda x: ops.mul(x, 1.01))
