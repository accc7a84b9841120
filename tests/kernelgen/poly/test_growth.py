"""Lowering costs as much as the kernel is long: twice the operators, twice the time, on the usual stack."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from kernel_examples import softmax

from kernelgen.composite.description import KernelDesc
from kernelgen.plan import Plan
from kernelgen.poly.build_scop import to_scop
from kernelgen.poly.grouping.fold_axes import fold
from kernelgen.poly.grouping.merge_groups import group
from kernelgen.poly.model.relations import relations
from kernelgen.stages import lower
from tests.support.hostile import chain, many_inputs, softmaxes


def seconds(desc: KernelDesc) -> float:
    """Of processor time, the better one of two runs."""
    found: list[float] = []
    for _ in range(2):
        start = time.process_time()
        lower(desc, Plan())
        found.append(time.process_time() - start)
    return min(found)


@pytest.mark.parametrize(("make", "few", "many"), [(chain, 100, 400), (softmaxes, 8, 32), (many_inputs, 100, 400)])
def test_the_time_of_lowering_grows_with_the_number_of_operators(
    make: Callable[[int], KernelDesc], few: int, many: int
) -> None:
    quadratic = (many / few) ** 2
    assert seconds(make(many)) < seconds(make(few)) * quadratic / 2


def test_a_chain_of_values_needs_no_deeper_stack() -> None:
    assert lower(chain(990), Plan()).nest.body.statements


def test_dependences_come_pair_by_pair() -> None:
    pairs = relations(group(fold(to_scop(softmax())))).flow_pairs
    assert {(pair.source, pair.target) for pair in pairs} == {("G0", "G1"), ("G1", "G2")}


def test_dependences_inside_a_domain_have_both_ends_there() -> None:
    whole = relations(group(fold(to_scop(softmax()))))
    first = whole.domain.get_set_list().get_at(0).to_union_set()
    assert not list(whole.flow_pairs.inside(first))
    assert len(list(whole.flow_pairs.inside(whole.domain))) == len(list(whole.flow_pairs))
