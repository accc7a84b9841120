"""Random composite kernels: every target gives what the reference gives, in outputs and in updated inputs.

``python -m tests.random_kernels`` runs many more. What it found is kept in ``tests/random_kernels/cases``.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from kernelgen.composite.check import check as check_desc
from kernelgen.composite.link import linked, unlinked
from kernelgen.composite.read import load_desc
from kernelgen.composite.scalar_rules import ELEMENTWISE
from kernelgen.composite.write import dump_desc
from kernelgen.nest.nodes import Nest
from kernelgen.semantics.table import MEANINGS
from kernelgen.system.answering import processor_seconds
from kernelgen.targets import python
from kernelgen.targets.base import Entry, Target
from kernelgen.tensor.dtypes import BFLOAT16
from tests.random_kernels.check import Kind, Outcome, check
from tests.random_kernels.generate import FAMILIES, kernel
from tests.random_kernels.minimize import minimize
from tests.random_kernels.stored import from_json, to_json
from tests.random_kernels.values import Sample

PATIENT = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
)
CASES = sorted((Path(__file__).parents[1] / "random_kernels" / "cases").glob("*.json"))
TARGETS = ["cpu", "python", "gpu"]
REFUSALS = {"unsupported-op", "unsupported-layout", "unsupported-attr", "unsupported-dtype", "budget"}


@pytest.mark.parametrize("target", TARGETS)
@given(random=st.randoms(use_true_random=False))
@PATIENT
def test_random_kernels_agree_with_the_reference(target: str, random: Random) -> None:
    sample = kernel(random, steps=20)
    agrees(sample, target)


@pytest.mark.parametrize("target", [*TARGETS, "ascend"])
@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_what_failed_once_agrees(case: Path, target: str) -> None:
    agrees(from_json(case), target)


def agrees(sample: Sample, target: str) -> None:
    """Right, or refused with a reason."""
    outcome = check(sample, target)
    if outcome.reason == "run BackendUnavailable":
        pytest.skip(outcome.message)
    assert outcome.kind is not Kind.FAILED, f"{outcome.reason}: {outcome.message}\n{sample}"
    assert outcome.kind is Kind.PASSED or outcome.reason in REFUSALS


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_draws_sound_kernels(family: str) -> None:
    for seed in range(12):
        sample = kernel(Random(seed), 200, 15, [family])
        assert check_desc(sample.desc) is sample.desc
        again, inputs = load_desc(dump_desc(sample.desc)), {tensor.name for tensor in sample.desc.inputs}
        assert [tensor.type for tensor in again.outputs] == [tensor.type for tensor in sample.desc.outputs]
        for one, other in zip(again.outputs, sample.desc.outputs, strict=True):  # an input is given out as a copy of it
            assert one.name == other.name or other.name in inputs


def test_every_operator_is_drawn() -> None:
    drawn = {op.op.name for seed in range(500) for op in kernel(Random(seed), 60).desc.operators}
    assert {op.name for op in (*MEANINGS, *ELEMENTWISE)} - drawn == {"Custom", "UserDefined"}


def test_writing_beside_an_array_is_seen() -> None:
    def one_more(source: str, nest: Nest) -> Entry:
        run = python.load(source, nest)

        def entry(arrays: tuple[Any, ...], symbols: tuple[int, ...]) -> None:
            run(arrays, symbols)
            output = arrays[len(sample.desc.inputs)].reshape(-1)
            as_strided(output, (output.size + 1,))[-1] = 0

        return entry

    sample = next(s for s in (kernel(Random(seed), families=[]) for seed in range(60)) if s.desc.operators)
    assert check(sample, Target("spilling", python.emit, one_more)).reason == "out-of-bounds"


def test_the_same_seed_draws_the_same_kernel() -> None:
    first, again = kernel(Random(5)), kernel(Random(5))
    assert first.desc == again.desc
    for one, other in zip(first.inputs, again.inputs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_samples_can_be_stored() -> None:
    for seed in range(30):
        sample = kernel(Random(seed), families=["complex", "gather"])
        again = from_json(to_json(sample))
        assert again.desc == sample.desc
        for one, other in zip(sample.inputs, again.inputs, strict=True):
            assert one.dtype == other.dtype
            if one.dtype == BFLOAT16.numpy:  # whose NaN numpy's comparison does not know
                one, other = one.astype(np.float32), other.astype(np.float32)
            np.testing.assert_array_equal(one, other)


def test_failures_are_made_small() -> None:
    drawn = (kernel(Random(seed)) for seed in range(1000))
    sample = next(s for s in drawn if len(s.desc.operators) > 10 and s.desc.operators[-1].op.name == "Select")
    last = unlinked(sample.desc)
    sample = replace(sample, desc=linked(replace(last, outputs=last.ops[-1].outs)))
    small = minimize(sample, lambda candidate: any(op.op.name == "Select" for op in candidate.desc.operators))
    assert check_desc(small.desc)
    assert [op.op.name for op in small.desc.operators] == ["Select"]


def test_a_failure_may_not_turn_into_another() -> None:
    wrong, other = Outcome(Kind.FAILED, "wrong-answer", "t1: ..."), Outcome(Kind.FAILED, "run KeyError", "...")
    assert wrong.resembles(Outcome(Kind.FAILED, "wrong-answer", "t2: ..."))
    assert not wrong.resembles(other)


def test_a_wrong_kernel_is_seen() -> None:
    def planted(nest: Nest) -> str:
        return python.emit(nest).replace("'add'", "'sub'")

    wrong = Target("wrong", planted, python.load)
    samples = [s for s in (kernel(Random(seed), families=[]) for seed in range(60)) if s.desc.operators]
    kinds = {check(s, wrong).kind for s in samples if any(op.op.name == "Add" for op in s.desc.operators)}
    assert Kind.FAILED in kinds
    assert {check(s, "python").kind for s in samples[:20]} == {Kind.PASSED}


def test_time_limits_count_what_a_process_had_of_the_processor() -> None:
    """A busy machine makes no failures: a process that waits for its turn is not late."""
    spent, start = processor_seconds(os.getpid()), time.process_time()
    while time.process_time() < start + 0.2:
        pass
    assert processor_seconds(os.getpid()) - spent >= 0.1 or not Path("/proc/self/stat").exists()
    assert processor_seconds(0) == 0.0
