"""Every declared pass, and the pipeline at every level, on random programs: valid, same numbers, readable, idempotent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from graphkernel.declarations import builtin_catalogue
from graphkernel.ops import OPS
from graphkernel.options import Options
from graphkernel.passes.base import Pass, Step, run_steps
from graphkernel.pipeline import steps_for
from graphkernel.step_hooks import SameNumbers, Verify
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.text import parse
from tests.support.random_programs import programs

pytestmark = pytest.mark.usefixtures("shared_kernels")

Program = tuple[Graph, list[np.ndarray[Any, Any]]]
CATALOGUE = builtin_catalogue()
FLAGS = ("", "--exact_precision_mode=false", "--target=gpu", "--target=ascend")


@pytest.mark.parametrize("entry", CATALOGUE.passes, ids=lambda entry: entry.name)
@given(program=programs())
def test_a_pass_alone(entry: Pass, program: Program) -> None:
    graph, arrays = program
    context = CATALOGUE.context(Options())
    step = Step(entry, "cluster", 0, level=0, why="alone")
    after = run_steps(graph, (step,), context, (Verify(), SameNumbers(arrays)))
    assert parse(str(after), OPS) == after
    assert entry(graph, CATALOGUE.context(Options())) == after, "the same input gives another output"
    assert entry(after, context) == after, "a second run changes more"


@pytest.mark.parametrize("level", [1, 2, 3])
@pytest.mark.parametrize("flags", FLAGS)
@given(program=programs())
def test_the_pipeline(flags: str, level: int, program: Program) -> None:
    graph, arrays = program
    options = Options.parse(f"{flags} --opt_level={level}")
    steps = steps_for(options, CATALOGUE)
    after = run_steps(graph, steps, CATALOGUE.context(options), (Verify(), SameNumbers(arrays)))
    assert str(run_steps(graph, steps, CATALOGUE.context(options))) == str(after), "two runs differ"
    assert [value.type for value in after.outputs] == [value.type for value in graph.outputs]
