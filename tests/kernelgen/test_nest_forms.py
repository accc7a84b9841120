"""Passes of nests say which form they need and give: the forms hold on typical kernels, and a swapped order is caught."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from kernel_examples import column_sum, layer_norm, momentum, softmax, split_reshape, transpose_add
from product_kernels import Shape, layer

from kernelgen.errors import NestError
from kernelgen.nest.nodes import Nest
from kernelgen.nest_stages import Stage, run_checked
from kernelgen.plan import Plan
from kernelgen.stage_log import Trail
from kernelgen.stages import pipeline_named, to_raw_nest
from kernelgen.tensor.dims import sym

KERNELS = {
    "softmax": softmax(64, 128),
    "softmax_symbolic": softmax(sym("M"), sym("N")),
    "layer_norm": layer_norm(64, 1024),
    "column_sum": column_sum(),
    "transpose_add": transpose_add(100, 200),
    "split_reshape": split_reshape(),
    "momentum": momentum(),
    "layer": layer(Shape(64, 64, 64)),
}
MACHINES = ("cpu", "gpu", "ascend")


@cache
def raw(name: str, machine: str) -> Nest:
    return to_raw_nest(KERNELS[name], Plan(), pipeline_named(machine), Trail())[0]


def run_all(stages: Sequence[Stage[Nest]], nest: Nest) -> Nest:
    for stage in stages:
        nest = run_checked(stage, nest, Plan())
    return nest


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", KERNELS)
def test_every_pass_finds_and_leaves_the_forms_that_it_names(name: str, machine: str) -> None:
    run_all(pipeline_named(machine).nest_stages, raw(name, machine))


def relied_on(stages: Sequence[Stage[Nest]]) -> list[str]:
    """The passes that give a form which a later one needs."""
    return [
        stage.name
        for place, stage in enumerate(stages)
        if {form.name for form in stage.gives} & {form.name for later in stages[place:] for form in later.needs}
    ]


@pytest.mark.parametrize(
    ("machine", "name"),
    [(machine, name) for machine in MACHINES for name in relied_on(pipeline_named(machine).nest_stages)],
)
def test_a_pass_that_comes_behind_the_one_that_needs_it_is_caught(machine: str, name: str) -> None:
    """On some kernel; on others there is nothing for it to do, and the order does not matter."""
    stages = list(pipeline_named(machine).nest_stages)
    (late,) = (stage for stage in stages if stage.name == name)
    user = max(k for k, stage in enumerate(stages) if {f.name for f in stage.needs} & {f.name for f in late.gives})
    stages.remove(late)
    stages.insert(user, late)
    caught = [kernel for kernel in KERNELS if is_caught(stages, raw(kernel, machine))]
    assert caught


def is_caught(stages: Sequence[Stage[Nest]], nest: Nest) -> bool:
    try:
        run_all(stages, nest)
    except NestError as error:
        return "a nest of the form" in str(error)
    return False


@pytest.mark.parametrize(
    ("first", "second"),
    [("join_tails", "to_grids"), ("sink", "contract_shared"), ("hoist", "chains"), ("places", "barriers")],
)
def test_two_passes_for_devices_in_the_wrong_order_are_caught(first: str, second: str) -> None:
    stages = list(pipeline_named("gpu").nest_stages)
    names = [stage.name for stage in stages]
    one, other = names.index(first), names.index(second)
    stages[one], stages[other] = stages[other], stages[one]
    with pytest.raises(NestError, match="needs a nest of the form"):
        run_all(stages, raw("layer_norm", "gpu"))
