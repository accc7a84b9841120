"""The tuner climbs by measured ratios, takes nothing that is refused, and every neighbour computes the same."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from kernel_examples import column_sum, softmax, transpose_add
from operator_kernels import F, draw, one

import kernelgen
from kernelgen import options
from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.errors import ArgumentError, BackendUnavailable, KernelgenError
from kernelgen.kernel import Kernel
from kernelgen.plan import CodePlan
from kernelgen.tuning.cost_order import estimated
from kernelgen.tuning.neighbours import neighbours
from kernelgen.tuning.tune import HOPELESS, TURNS, by_model, interleaved, tune

PRODUCT = one("MatMul", [(F, (21, 9)), (F, (9, 40))], [(F, (21, 40))], transpose_a=False, transpose_b=False)


@pytest.mark.parametrize("desc", [softmax(), column_sum(12, 300), transpose_add(70, 66), PRODUCT], ids=lambda d: d.name)
def test_neighbours_compute_the_same_or_are_refused(desc: KernelDesc) -> None:
    inputs = draw(desc)
    expected = kernelgen.reference(desc)(*inputs)
    kept = 0
    found_plans = list(neighbours(compile(desc).plan))
    for change, plan in found_plans[:: 1 + len(found_plans) // 8]:
        try:
            kernel = compile(desc, "cpu", plan)
        except KernelgenError:
            continue
        kept += 1
        for found, right in zip(kernel(*inputs), expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=2e-5, atol=2e-5, err_msg=change)
    assert kept >= 3


def strip(kernel: Kernel) -> int:
    """The first tile of a column sum."""
    assert kernel.plan.bands
    return kernel.plan.bands[0].pieces[0].loops[0].tile or 0


def longer_is_faster(first: Kernel, second: Kernel, turns: int) -> float:
    """A world in which strips of 8192 are the best."""
    return abs(8192 - strip(second) + 1) / abs(8192 - strip(first) + 1)


def test_it_climbs_to_the_best_of_a_known_world() -> None:
    kernel = compile(column_sum(2, 20000))
    found = tune(kernel, (), most=500, compare=longer_is_faster)
    assert (strip(kernel), strip(found.kernel)) == (2048, 8192)
    assert found.path == ("strip 4096 in place of 2048", "strip 8192 in place of 4096")
    assert compile(kernel.desc, "cpu", found.kernel.plan).source == found.kernel.source


def test_loops_of_one_band_are_changed_where_no_size_helps() -> None:
    kernel = compile(transpose_add(70, 66))

    def compare(first: Kernel, second: Kernel, turns: int) -> float:
        """A world in which no size and no other way to print the loops is any better."""
        is_far = second.plan.cpu == kernel.plan.cpu and second.plan.bands != kernel.plan.bands
        return 0.5 if is_far and first is kernel else 1.1

    found = tune(kernel, (), compare=compare)
    (change,) = found.path
    assert change.startswith("band 0: ")
    assert compile(kernel.desc, "cpu", found.kernel.plan).source == found.kernel.source


def test_nothing_better_means_the_kernel_itself() -> None:
    kernel = compile(column_sum(2, 20000))
    found = tune(kernel, (), most=6, compare=lambda first, second, turns: 1.0)
    assert found.kernel is kernel
    assert found.path == ()
    assert sum(trial.ratio is not None for trial in found.trials) == 6


def test_without_time_nothing_is_tried() -> None:
    kernel = compile(column_sum(2, 20000))
    found = tune(kernel, (), compare=longer_is_faster, seconds=-1.0)
    assert found.kernel is kernel
    assert not found.trials


def test_the_cost_model_says_what_is_measured_first() -> None:
    """Of near plans, then of far ones; what it thinks hopeless is never measured."""
    kernel, asked = compile(column_sum(64, 3000)), list[float]()

    def compare(first: Kernel, second: Kernel, turns: int) -> float:
        asked.append(estimated(second.lowered, options.thread_count()))
        return 1.0

    found = tune(kernel, (), compare=compare)
    falls = sum(second < first for first, second in pairwise(asked))
    assert len(set(asked)) > 2
    assert falls <= 1
    assert max(asked) <= HOPELESS * estimated(kernel.lowered, options.thread_count())
    assert len(asked) == sum(trial.ratio is not None for trial in found.trials)


def test_the_cost_model_sees_how_loops_are_printed() -> None:
    """More lanes than the processor has are no faster, fewer are slower."""
    kernel = compile(one("Exp", [(F, (4096,))], [(F, (4096,))]))
    assert kernel.plan.code
    (vector,) = kernel.plan.code.vectors

    def seconds(lanes: int) -> float:
        code = replace(kernel.plan.code or CodePlan(), vectors=(replace(vector, lanes=lanes),))
        return estimated(replace(kernel.lowered, plan=replace(kernel.plan, code=code)), 1)

    assert seconds(vector.lanes // 2) > 1.5 * seconds(vector.lanes)
    assert seconds(vector.lanes * 2) > 0.9 * seconds(vector.lanes)


def test_turns_are_spent_on_those_that_may_win() -> None:
    """Successive halving: what lost in few turns gets no more of them."""
    asked: dict[str, list[int]] = {}

    def compare(first: Kernel, second: Kernel, turns: int) -> float:
        asked.setdefault(second.source, []).append(turns)
        place = list(asked).index(second.source)
        return 0.9 - 0.1 * place if place < 4 else 1.2

    kernel = compile(column_sum(64, 3000))
    found = tune(kernel, (), most=8, compare=compare)
    spent = list(asked.values())
    assert [turns for turns in spent if turns[0] != TURNS[0]] == []
    assert [len(turns) for turns in spent[4:]] == [1] * 4
    assert sorted(len(turns) for turns in spent[:4]) == [1, 1, 2, 3]
    assert found.kernel.source == list(asked)[3]


def test_refused_neighbours_are_named_without_a_time() -> None:
    found = tune(compile(column_sum(12, 300)), (), compare=lambda first, second, turns: 1.0)
    assert "band 0: piece 0: i1 around i0" in [trial.change for trial in found.trials if trial.ratio is None]


def test_times_are_compared_on_copies() -> None:
    kernel, inputs = compile(softmax()), draw(softmax())
    before = [array.copy() for array in inputs]
    assert 0.2 < interleaved(inputs)(kernel, kernel, 9) < 5
    assert all((a == b).all() for a, b in zip(inputs, before, strict=True))


def test_the_model_of_a_gpu_stands_in_for_the_clock() -> None:
    desc = softmax(4, 4096)
    chosen = compile(desc, "gpu").plan
    plans = dict(neighbours(chosen))
    kernel = compile(desc, "gpu", plans["256 threads in place of 512"])
    try:
        found = tune(kernel, (), most=1, compare=by_model("H200"))
    except BackendUnavailable as error:
        pytest.skip(str(error))
    (trial,) = found.trials
    assert trial.change == "512 threads in place of 256"
    assert trial.ratio is not None
    assert 0.5 < trial.ratio < 1


def test_a_kernel_without_launches_has_nothing_to_compare() -> None:
    kernel = compile(softmax())
    with pytest.raises(ArgumentError, match="kernels for cpu have no estimate"):
        by_model("H200")(kernel, kernel, 1)
