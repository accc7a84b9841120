"""Every choice is in the plan: it replays byte for byte, edits of it take effect, and what is wrong with one is said."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from kernel_examples import column_sum, half_sum, layer_norm, momentum, softmax, split_reshape, transpose_add
from operator_kernels import F, draw, one

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.errors import ArgumentError, KernelgenError, ProofError
from kernelgen.nest.marks import PARALLEL, VECTOR
from kernelgen.plan import CpuPlan, LoopPlan, PiecePlan, Plan
from kernelgen.targets import find_target
from kernelgen.targets.cpu.emit import emit_for
from kernelgen.targets.cpu.loops.code_plan import choose
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dims import sym
from tests.random_kernels.generate import kernel as random_kernel

PRODUCT = one("MatMul", [(F, (37, 19)), (F, (19, 70))], [(F, (37, 70))], transpose_a=False, transpose_b=False)
KERNELS = {
    "softmax": softmax(),
    "layer_norm": layer_norm(),
    "column_sum": column_sum(),
    "transpose_add": transpose_add(100, 90),
    "split_reshape": split_reshape(),
    "momentum": momentum(),
    "half_sum": half_sum(),
    "product": PRODUCT,
    "softmax_symbolic": softmax(sym("M"), sym("N")),
    "column_sum_symbolic": column_sum(sym("M"), sym("N")),
}


def replayed(document: object) -> Plan:
    """A plan after a journey through a file."""
    return Plan.from_json(json.loads(json.dumps(document)))


def edited(plan: Plan, *path: str | int, value: Any) -> Plan:
    """The plan with the value at a path of its JSON; what was printed is chosen anew when bands change."""
    document = plan.to_json()
    if path[0] == "bands":
        document["code"] = None
    inner: Any = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return replayed(document)


def agrees(desc: KernelDesc, plan: Plan) -> None:
    """The kernel of a plan computes what the reference says."""
    inputs = draw(desc)
    expected = kernelgen.reference(desc)(*inputs)
    for found, right in zip(compile(desc, "cpu", plan)(*inputs), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", KERNELS)
def test_a_plan_replays_to_the_same_source(name: str) -> None:
    kernel = compile(KERNELS[name])
    plan = replayed(kernel.plan.to_json())
    again = compile(KERNELS[name], "cpu", plan)
    assert plan == kernel.plan == again.plan
    assert again.source == kernel.source
    assert again.cached, "the machine code is found by the source"


@pytest.mark.parametrize("seed", range(0, 200, 5))
def test_plans_of_random_kernels_replay_to_the_same_source(seed: int) -> None:
    desc = random_kernel(Random(seed)).desc
    kernel = compile(desc, UNLOADED)
    again = compile(desc, UNLOADED, replayed(kernel.plan.to_json()))
    assert again.source == kernel.source
    assert again.plan == kernel.plan


def test_bands_say_why() -> None:
    kernel = compile(column_sum())
    assert kernel.stages["plan"].splitlines() == [
        "band 0: G0 [i1, i0]",
        "    parallel i1 by 2048; i0 by 2; vector i1; i0 unrolled",
        "    why: contiguity i1 +6, i0 -1; no dependence crosses i1; 5000 partial results: 2048 of them stay in L1; "
        "2 of 70 rows i0 meet in registers before a partial result is touched; "
        "i1 is the first loop that no dependence crosses: parallel",
    ]  # fmt: skip
    assert kernel.stages["choices"].startswith("vector 0: lanes ")


EDITS: dict[str, tuple[str, tuple[str | int, ...], Any]] = {
    "tile of a strip": ("column_sum", ("bands", 0, "pieces", 0, "loops", 0, "tile"), 100),
    "rows at once": ("column_sum", ("bands", 0, "pieces", 0, "loops", 1, "tile"), 7),
    "other loops": ("column_sum", ("bands", 0, "pieces", 0, "loops"), [{"member": 1}, {"member": 0, "mark": "vector"}]),
    "one thread": ("column_sum", ("bands", 0, "pieces", 0, "loops", 0, "mark"), ""),
    "no vectors": ("softmax", ("bands", 1, "pieces", 0, "loops", 0, "mark"), ""),
    "odd tiles": ("transpose_add", ("bands", 0, "pieces", 0, "loops", 1, "tile"), 17),
    "lanes": ("softmax", ("code", "vectors", 1, "lanes"), 2),
    "more lanes than registers have": ("softmax", ("code", "vectors", 1, "lanes"), 64),
    "copies": ("half_sum", ("code", "vectors", 0, "copies"), 8),
    "sums in short blocks": ("half_sum", ("code", "vectors", 0, "sum_block"), 128),
    "small squares": ("transpose_add", ("code", "tiles", 0), {"size": 4, "rows": 2}),
    "no squares": ("transpose_add", ("code", "tiles", 0), {"size": 1}),
    "threads": ("softmax", ("code", "parallels", 0, "threads"), True),
    "past the caches": ("transpose_add", ("code", "streamed"), "t1"),
    "a smaller block": ("product", ("cpu", "block"), [4, 16]),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_plan_takes_effect_and_computes_the_same(name: str) -> None:
    desc = KERNELS[EDITS[name][0]]
    kernel = compile(desc)
    _, path, value = EDITS[name]
    start = replace(kernel.plan, bands=None, code=None) if path[0] == "cpu" else kernel.plan
    plan = edited(start, *path, value=value)
    assert compile(desc, "cpu", plan).source != kernel.source
    agrees(desc, plan)


def test_loops_may_be_put_into_another_order() -> None:
    desc, plan = PRODUCT, compile(PRODUCT).plan
    assert plan.bands is not None
    (band,) = plan.bands
    order = (LoopPlan(2), LoopPlan(0), LoopPlan(1, mark=VECTOR))
    single = replace(band, pieces=(PiecePlan(order),))
    agrees(desc, replace(plan, bands=(single,), code=None))


def test_vectors_may_run_in_tiles_inside_a_sum() -> None:
    """The bounds of the vector loop depend on a loop inside the sum: its results cannot be held around the sum."""
    plan = compile(PRODUCT).plan
    assert plan.bands is not None
    loops = (LoopPlan(0, mark=PARALLEL), LoopPlan(2), LoopPlan(1, tile=16), LoopPlan(1, mark=VECTOR))
    agrees(PRODUCT, replace(plan, bands=(replace(plan.bands[0], pieces=(PiecePlan(loops),)),), code=None))


def test_a_sum_in_two_pieces_is_rejected_by_the_proof() -> None:
    """Each piece would start it anew."""
    plan = compile(softmax()).plan
    pieces = [{"loops": [{"member": 0}], "whole": [{"member": 0, "size": 4}]}, {"loops": [{"member": 0}]}]
    with pytest.raises(ProofError, match="pieces failed: terms of one result in two pieces"):
        compile(softmax(), "cpu", edited(plan, "bands", 0, "pieces", value=pieces))
    agrees(softmax(), edited(plan, "bands", 2, "pieces", value=pieces))
    assert compile(PRODUCT).proof.about("pieces")


def test_a_dependent_loop_marked_parallel_is_rejected_by_the_proof() -> None:
    plan = compile(softmax()).plan
    over_columns = edited(plan, "bands", 0, "pieces", 0, "loops", 0, "mark", value="parallel")
    with pytest.raises(ProofError, match="parallel"):
        compile(softmax(), "cpu", over_columns)


def test_a_scan_marked_parallel_is_rejected_by_the_proof() -> None:
    scan = one("CumSum", [(F, (6, 5))], [(F, (6, 5))], axis=0, exclusive=False, reverse=False)
    plan = compile(scan).plan
    assert plan.bands is not None
    assert plan.bands[0].members == ("i1", "i0")
    wrong = [{"loops": [{"member": 1, "mark": "parallel"}, {"member": 0}]}]
    with pytest.raises(ProofError, match="parallel"):
        compile(scan, "cpu", edited(plan, "bands", 0, "pieces", value=wrong))
    agrees(
        scan, edited(plan, "bands", 0, "pieces", value=[{"loops": [{"member": 0, "mark": "parallel"}, {"member": 1}]}])
    )


MISFITS: dict[str, tuple[tuple[str | int, ...], Any, str]] = {
    "too few bands": (("bands",), [], "the plan has 0 bands, the schedule has 4"),
    "another statement": (("bands", 1, "statements"), ["G7"], "band 1 of the schedule has 1 members over G1; the plan"),
    "a lost member": (("bands", 0, "pieces", 0, "loops"), [], r"band 0, piece 0: loops over members \[\]"),
    "no such member": (("bands", 2, "pieces", 0, "loops", 0, "member"), 3, "band 2, piece 0: there is no member 3"),
    "a tile of nothing": (("bands", 2, "pieces", 0, "loops", 0, "tile"), 0, "band 2, piece 0: a tile of 0"),
    "no rest": (("bands", 0, "pieces", 0, "whole"), [{"member": 0, "size": 2}], "band 0: the last piece must take"),
    "vectors around loops": (("bands", 3, "pieces", 0, "loops", 0, "mark"), "vector", "band 3, piece 0: the vector"),
    "an unknown mark": (("bands", 3, "pieces", 0, "loops", 0, "mark"), "magic", "unknown mark 'magic'"),
    "too many vectors": (("code", "vectors"), [{"lanes": 4}] * 9, "more vectors than the nest"),
    "too few threads": (("code", "parallels"), [], "fewer parallels than the nest"),
    "an input past the caches": (("code", "streamed"), "x", "x cannot be stored past the caches"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_plan_that_does_not_fit_is_refused(name: str) -> None:
    path, value, message = MISFITS[name]
    with pytest.raises(KernelgenError, match=message):
        compile(softmax(), "cpu", edited(compile(softmax()).plan, *path, value=value))


WRONG: dict[str, tuple[tuple[str | int, ...], Any, str]] = {
    "a number": (("bands", 0, "pieces", 0, "loops", 0, "member"), "i", r"\$.bands\[0\].pieces\[0\].loops\[0\].member: "),
    "a truth value": (("code", "parallels", 0, "threads"), 1, r"\$.code.parallels\[0\].threads: expected bool, found int 1"),
    "an unknown name": (("cpu", "chunks"), 1, r"\$.cpu.chunks: unknown; known: chunk, strip"),
    "a pair": (("cpu", "block"), [8], r"\$.cpu.block: expected 2 items, found 1"),
    "a list": (("bands",), {}, r"\$.bands: expected a list, found dict"),
    "an object": (("cpu",), 3, r"\$.cpu: expected an object, found int 3"),
    "a size": (("cpu", "tile"), 0, r"\$.cpu: tile is 0; sizes are at least 1"),
    "a power of two": (("code", "vectors", 0, "lanes"), 3, r"\$.code.vectors\[0\]: lanes is 3"),
    "something": (("bands", 0), {"members": [], "pieces": []}, r"\$.bands\[0\].statements: missing"),
    "a mark": (("bands", 0, "pieces", 0, "loops", 0, "mark"), "thread 0", r"loops\[0\].mark: a thread loop"),
    "a mark's text": (("bands", 0, "pieces", 0, "loops", 0, "mark"), 1, r"loops\[0\].mark: expected str"),
    "this version": (("version",), 7, r"\$: version is 7, this is version 1; make the plan anew"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_json_is_refused_with_its_path(name: str) -> None:
    path, value, message = WRONG[name]
    with pytest.raises(ArgumentError, match=message):
        edited(compile(softmax()).plan, *path, value=value)


def test_a_plan_for_another_description_is_refused_unless_it_is_freed() -> None:
    plan = compile(softmax(6, 9)).plan
    with pytest.raises(ArgumentError, match=r"the plan was made for softmax \w+, this is softmax \w+"):
        compile(softmax(6, 10), "cpu", plan)
    agrees(softmax(6, 10), replace(plan, subject=""))


@pytest.mark.parametrize(
    ("path", "value", "rest"),
    [
        (("bands",), [], ("bands", "code")),
        (("bands", 1, "statements"), ["G7"], ("bands", "code")),
        (("code", "vectors"), [{"lanes": 4}] * 9, ("code",)),
        (("code", "vectors"), [], ("code",)),
    ],
)
def test_a_plan_from_before_a_change_is_refused_with_what_to_leave_out(
    path: tuple[str | int, ...], value: Any, rest: tuple[str, ...]
) -> None:
    plan = compile(softmax()).plan
    outdated = edited(plan, *path, value=value)
    with pytest.raises(ArgumentError, match=f"a plan with {' and '.join(rest)} null has them chosen"):
        compile(softmax(), "cpu", outdated)
    for part in rest:
        outdated = edited(outdated, part, value=None)
    agrees(softmax(), outdated)


def test_the_sizes_alone_are_a_plan() -> None:
    plan = Plan(CpuPlan(strip=256, rows=5))
    assert "i1 by 256; i0 by 5; vector i1; i0 unrolled" in compile(column_sum(), "cpu", plan).stages["plan"]
    agrees(column_sum(), plan)


def test_other_targets_follow_the_bands() -> None:
    plan = edited(compile(column_sum()).plan, "bands", 0, "pieces", 0, "loops", 0, "tile", value=100)
    kernel = compile(column_sum(), "python", plan)
    assert ", 100)" in kernel.source
    assert kernel.plan.code is None


def test_choices_for_a_processor_are_followed_for_another() -> None:
    """What is written down decides, not what would be chosen: vectors of 64 bytes on a processor with 16."""
    nest = compile(softmax(6, 512), "python").nest
    wide = Host("wide", frozenset({"avx2", "fma", "avx512f", "avx512vl", "avx512bw", "avx512vbmi2"}))
    narrow = Host("narrow", frozenset({"sse4.1"}))
    assert "<16 x float>" in emit_for(nest, narrow, choose(nest, wide))
    assert "<16 x float>" not in emit_for(nest, narrow)


def test_text_of_a_band_in_pieces() -> None:
    text = compile(PRODUCT).stages["plan"]
    assert re.search(r"where i0 in whole \d+, i1 in whole \d+\n", text)
    assert text.splitlines()[-1].startswith("    why: a product of rows i0, columns i1")


UNLOADED = replace(find_target("cpu"), load=lambda source, nest: _nothing)


def _nothing(arrays: tuple[object, ...], symbols: tuple[int, ...]) -> None:
    raise AssertionError("this kernel is not to be run")
