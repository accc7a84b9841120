"""Every pass keeps results bit for bit, inputs and outputs, and does nothing the second time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from normalise_cases import ASCEND, CASES, GPU, Pass, stitched

from kernelgen.canonical.argument_shapes import reshape_arguments
from kernelgen.composite.bind_sizes import bind
from kernelgen.composite.check import check
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.rewriting import Rewriting
from kernelgen.composite.specialize import specialize
from kernelgen.samples.inputs import draw
from kernelgen.semantics import reference
from kernelgen.stages import DESC_STAGES
from kernelgen.tensor.dims import product
from kernelgen.tensor.operators.elemwise import ADD, SUB
from tests.random_kernels.generate import kernel

PASSES: dict[str, Pass] = {stage.name: stage.run for stage in DESC_STAGES}
Array = np.ndarray[Any, Any]


def all_passes(desc: KernelDesc) -> KernelDesc:
    for run in PASSES.values():
        desc = run(desc)
    return desc


def results(desc: KernelDesc, inputs: Sequence[Array]) -> list[bytes]:
    """The bits of the outputs and of all inputs after, for inputs of any shapes; zeros count without their sign."""
    shapes = [[int(dim) for dim in tensor.shape] for tensor in desc.inputs]  # pyright: ignore[reportArgumentType]
    arrays = [array.reshape(shape).copy() for array, shape in zip(inputs, shapes, strict=True)]
    return [
        np.where(array == 0, np.zeros_like(array), array).tobytes() for array in (*reference(desc)(*arrays), *arrays)
    ]


def assert_same(run: Pass, desc: KernelDesc, inputs: Sequence[Array]) -> None:
    changed = run(desc)
    check(changed)
    assert_same_arguments(run, desc, changed)
    if run is not all_passes:  # a later pass may give an earlier one something to do
        assert run(changed) is changed
    sizes = bind(desc, [array.shape for array in inputs])
    assert results(specialize(changed, sizes), inputs) == results(specialize(desc, sizes), inputs)


def assert_same_arguments(run: Pass, desc: KernelDesc, changed: KernelDesc) -> None:
    for before, after in ((desc.inputs, changed.inputs), (desc.outputs, changed.outputs)):
        if run not in (all_passes, reshape_arguments):
            assert after == before
        assert [replace(t, shape=()) for t in after] == [replace(t, shape=()) for t in before]
        assert [product(t.shape) for t in after] == [product(t.shape) for t in before]
    assert changed.symbols == desc.symbols


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_pass_on_its_cases(name: str, seed: int) -> None:
    case = CASES[name]
    check(case.desc)
    assert_same(case.run, case.desc, draw(case.desc, seed))


@pytest.mark.parametrize("name", CASES)
def test_all_passes_on_all_cases(name: str) -> None:
    desc = CASES[name].desc
    for run in (*PASSES.values(), GPU, ASCEND, all_passes):
        assert_same(run, desc, draw(desc))


@pytest.mark.parametrize("name", CASES)
def test_values_that_hints_name_stay(name: str) -> None:
    desc = stitched(CASES[name].desc)
    changed = all_passes(desc)
    check(changed)
    assert {node.out.name for node in desc.operators} <= {node.out.name for node in changed.operators}
    assert_same(all_passes, desc, draw(desc))


@pytest.mark.parametrize("seed", range(150))
def test_random_kernels(seed: int) -> None:
    sample = kernel(Random(seed), steps=20)
    for run in (*PASSES.values(), GPU, ASCEND, all_passes):
        assert_same(run, sample.desc, sample.inputs)


def test_nothing_to_do_is_the_same_object() -> None:
    desc = all_passes(CASES["copies"].desc)
    assert all(run(desc) is desc for run in PASSES.values())


def test_a_changed_result_would_be_seen() -> None:
    desc = CASES["subexpressions"].desc

    def broken(given: KernelDesc) -> KernelDesc:
        walk = Rewriting(given)
        for place, node in enumerate(given.operators):
            walk.keep(node, op=SUB if place == 0 and node.op is ADD else None)
        return walk.done()

    with pytest.raises(AssertionError):
        assert_same(broken, desc, draw(desc))
