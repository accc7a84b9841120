"""Training steps that are measured: where they start from, what is compared, and that ours are kernels."""

from __future__ import annotations

import numpy as np
import pytest

import graphkernel as gk
from benchmarks.training.__main__ import error_of
from benchmarks.training.programs import FIRST, Arrays, Program, programs
from graphkernel.runtime.executable import Executable

PROGRAMS = {program.name: program for program in programs(2, tiny=True)}


def stepped(program: Program) -> tuple[Arrays, Arrays, Executable]:
    """Arrays before a step and after it, and what made it."""
    graph = program.graph()
    start = program.start(graph)
    after, executable = start.copied(), gk.compile(graph, threads=1)
    executable(*after.all)
    return start, after, executable


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_step_starts_from_zero_first_moments_which_then_are_a_tenth_of_the_gradients(name: str) -> None:
    program = PROGRAMS[name]
    start, after, _ = stepped(program)
    firsts = [key for key in start.moments if key.endswith(FIRST)]
    assert not any(start.moments[key].any() for key in firsts)
    assert sum(after.moments[key].any() for key in firsts) >= len(firsts) - 1
    again = program.start(program.graph())
    assert all(np.array_equal(mine, other) for mine, other in zip(again.all, start.all, strict=True))


def test_a_wrong_gradient_is_an_error_and_rounding_of_one_that_is_zero_is_none() -> None:
    truth = {"a_first": np.ones(3), "b_first": np.full(2, 1e-9), "a_weight": np.full(3, 100.0)}
    assert error_of(truth, truth) == 0
    assert error_of({**truth, "b_first": np.zeros(2)}, truth) < 1e-5
    assert error_of({**truth, "a_first": np.full(3, 0.5)}, truth) == 0.5
