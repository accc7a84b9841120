"""Normalised descriptions as kernels: callers see the shapes that they wrote, and every stage is there to be read."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor
from normalise_cases import CASES, boundary

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.stages import DESC_STAGES, pipeline_named
from kernelgen.tensor.dims import sym
from kernelgen.verify.record import Status
from kernelgen.verify.verify_one import verify


@pytest.mark.parametrize("name", CASES)
def test_kernel_agrees_with_the_reference(name: str) -> None:
    record = verify(CASES[name].desc, "python")
    assert record.status is Status.PASSED, record.message


def crossed() -> KernelDesc:
    """[4, N] as [N, 4]: no dim of one lines up with dims of the other."""
    w, x = Writer(), tensor("x", 4, sym("N"))
    turned = w.op("Reshape", w.op("Exp", x, shape=(4, sym("N"))), shape=(sym("N"), 4))
    return w.desc("crossed", (x,), w.op("Neg", turned, shape=(sym("N"), 4)))


def test_symbolic_reshapes_of_arguments_need_not_line_up() -> None:
    x = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
    (y,) = kernelgen.compile(crossed(), "python")(x)
    assert y.shape == (3, 4)
    np.testing.assert_allclose(y, -np.exp(x).reshape(3, 4), rtol=1e-6)


def test_callers_keep_their_shapes() -> None:
    kernel = kernelgen.compile(boundary(), "python")
    assert kernel.desc == boundary()
    assert kernel.nest.argument_shapes == tuple(t.shape for t in (*boundary().inputs, *boundary().outputs))


def test_every_stage_is_dumped_with_its_reason() -> None:
    stages = list(kernelgen.compile(boundary(), "python").stages)
    names = [*(stage.name for stage in pipeline_named("cpu").forms), *(stage.name for stage in DESC_STAGES)]
    assert stages[: len(names)] == names
    assert len(set(names)) == len(names)
    assert all(stage.why for stage in DESC_STAGES)
