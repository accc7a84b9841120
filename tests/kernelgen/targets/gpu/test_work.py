"""A sample of blocks is no longer than others: how much a thread does decides how many run, and whether any do."""

from __future__ import annotations

import numpy as np
import pytest

import kernelgen
from kernelgen.errors import BackendUnavailable, UnsupportedError
from kernelgen.kernel import Kernel
from kernelgen.nest.nodes import Grid
from kernelgen.plan import Plan
from kernelgen.samples.inputs import draw
from kernelgen.stages import lower
from kernelgen.targets.entries import Sample
from kernelgen.targets.gpu.launch import interpret
from kernelgen.targets.gpu.launch.statement_count import work_of
from kernelgen.tensor.dims import sym
from tests.support.product_kernels import Shape, product


def grid_of(terms: object) -> Grid:
    nest = lower(product(Shape(256, 256, terms if isinstance(terms, int) else sym("K"))), Plan(), "gpu").nest
    (grid,) = (part for part in nest.body.statements if isinstance(part, Grid))
    return grid


def test_work_grows_with_the_terms_of_a_sum() -> None:
    few, many = work_of(grid_of(64), {}), work_of(grid_of(640), {})
    assert 4 * few < many < 10 * few
    assert 4 * work_of(grid_of("K"), {"K": 64}) < work_of(grid_of("K"), {"K": 640})


def sampled() -> Sample:
    desc = product(Shape(1024, 1024, 256))
    kernel = kernelgen.compile(desc, "gpu")
    assert isinstance(kernel, Kernel)
    try:
        found = kernel.without_device().sample(draw(desc, 0), [np.zeros((1024, 1024), np.float32)])
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert found is not None
    return found


def test_blocks_that_do_much_are_few() -> None:
    assert sampled().blocks == interpret.SAMPLE_BLOCKS < interpret.SAMPLE_THREADS // 256


def test_a_thread_that_does_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpret, "LONGEST", 100)
    with pytest.raises(UnsupportedError, match="budget"):
        sampled()
