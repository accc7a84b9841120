"""Partial results of reductions: which reductions get them, that every term is there once, and what it does to loops."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import kernel_examples as examples
import numpy as np
import pytest
from kernel_examples import Writer, tensor

import kernelgen
from kernelgen import stages
from kernelgen.checker import check
from kernelgen.composite.description import KernelDesc
from kernelgen.errors import ProofError
from kernelgen.nest.nodes import For, LoopKind
from kernelgen.nest_stages import Stage
from kernelgen.plan import CpuPlan, Partials, Plan
from kernelgen.poly.build_scop import to_scop
from kernelgen.poly.grouping.fold_axes import fold
from kernelgen.poly.grouping.merge_groups import group
from kernelgen.poly.grouping.privatise import Reduction, Target, best_cut, privatise
from kernelgen.poly.model.relations import relations
from kernelgen.poly.model.text import show_scop
from kernelgen.samples.inputs import draw
from kernelgen.stages import lower
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.dtypes import INT32

EAGER = Partials(count=4, least=16, fewest=2, nanoseconds=0.0, strip=1 << 30, terms=2, unknown=4)
EVERYWHERE = Plan(CpuPlan(partials=EAGER))


def total(extent: Dim = 40) -> KernelDesc:
    w, x = Writer(), tensor("x", extent)
    return w.desc("total", (x,), w.op("ReduceSum", x, shape=(1,), axis=(0,), keep_dims=True))


def both_sums(rows: Dim = 64, columns: Dim = 24) -> KernelDesc:
    w, x = Writer(), tensor("x", rows, columns)
    by_row = w.op("ReduceSum", x, shape=(rows, 1), axis=(1,), keep_dims=True)
    return w.desc("both", (x,), by_row, w.op("ReduceSum", x, shape=(1, columns), axis=(0,), keep_dims=True))


def cross_entropy(rows: Dim = 64, columns: Dim = 40) -> KernelDesc:
    w, x, y = Writer(), tensor("x", rows, columns), tensor("y", rows, columns)
    full, row = (rows, columns), (rows, 1)
    shifted = w.op("Sub", x, w.op("ReduceMax", x, shape=row, axis=(1,), keep_dims=True), shape=full)
    sums = w.op("ReduceSum", w.op("Exp", shifted, shape=full), shape=row, axis=(1,), keep_dims=True)
    logits = w.op("Sub", shifted, w.op("Log", sums, shape=row), shape=full)
    return w.desc(
        "loss", (x, y), w.op("ReduceSum", w.op("Mul", logits, y, shape=full), shape=(1, 1), axis=(0, 1), keep_dims=True)
    )


def histogram(count=200):
    w, x, ids = Writer(), tensor("x", count), tensor("ids", count, dtype=INT32)
    return w.desc("histogram", (x, ids), w.op("UnsortedSegmentSum", x, ids, shape=(3,), num_segments=3))


def softmax_of_all(count=300):
    w, x = Writer(), tensor("x", count)
    top = w.op("ReduceMax", x, shape=(1,), axis=(0,), keep_dims=True)
    e = w.op("Exp", w.op("Sub", x, top, shape=(count,)), shape=(count,))
    return w.desc(
        "all", (x,), w.op("Div", e, w.op("ReduceSum", e, shape=(1,), axis=(0,), keep_dims=True), shape=(count,))
    )


KERNELS = {
    "total": total, "both sums": both_sums, "cross entropy": cross_entropy, "histogram": histogram,
    "softmax of all": softmax_of_all, "columns": lambda: examples.column_sum(70, 12),
    "symbolic": lambda: both_sums(sym("M"), sym("N")), "symbolic total": lambda: total(sym("N")),
    "symbolic loss": lambda: cross_entropy(sym("M"), sym("N")),
}  # fmt: skip


def grouped(desc: KernelDesc):
    return group(fold(to_scop(desc)))


def test_a_sum_over_everything() -> None:
    assert (
        show_scop(privatise(grouped(total()), EAGER))
        == """scop total[]
  input x: f32[40]
  output t0: f32[]
  workspace t0_G0_0: f32[2]
  G0[i0_block < 2 = i0 / 24, i0 < 40]:
    let v0: f32 = x[i0]
    t0_G0_0[i0_block] += v0
  G0_sum0[i0 < 2]:
    t0[] += t0_G0_0[i0]
"""
    )


def test_blocks_of_unknown_extents_are_dealt_out_in_turn() -> None:
    text = show_scop(privatise(grouped(total(sym("N"))), Partials()))
    assert "G0[i0_block < 64 = i0 / 32768, i0 < N]" in text
    assert "G0_sum0[i0 < 64, 32768 * i0 < N]" in text


def test_every_instance_is_in_one_block() -> None:
    """``{ S[i] -> S[floor(i / length), i] }`` is a bijection of the domain."""
    for desc in (total(43), total(sym("N"))):
        before = grouped(desc)
        after = privatise(before, EAGER)
        context = isl.Context()
        forget = isl.UnionMap.read_from_str(context, "{ G0[b, i] -> G0[i] }")
        domain = relations(after, context=context).domain
        onto = forget.intersect_domain(domain.intersect(isl.UnionSet.read_from_str(context, "{ G0[b, i] }")))
        assert onto.range().is_equal(relations(before, context=context).domain)
        assert onto.is_injective()


@pytest.mark.parametrize("name", KERNELS)
def test_values_are_those_of_the_description(name: str) -> None:
    desc = KERNELS[name]()
    kernel = kernelgen.compile(desc, plan=EVERYWHERE)
    assert "_block <" in kernel.stages["privatise"]
    for sizes in ({"M": 1, "N": 1}, {"M": 37, "N": 50}, {"M": 129, "N": 16}, {"M": 3, "N": 700}):
        arrays = draw(desc, 1, {s: sizes[s] for s in desc.symbols})
        for found, wanted in zip(kernel(*arrays), kernelgen.reference(desc)(*arrays), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", KERNELS)
def test_the_outermost_loop_is_parallel_and_the_checker_agrees(name: str) -> None:
    desc = KERNELS[name]()
    lowered = lower(desc, EVERYWHERE)
    loops = [part for part in lowered.nest.body.statements if isinstance(part, For)]
    assert any(loop.kind is LoopKind.PARALLEL for loop in loops)
    assert lowered.proof.about("parallel")
    found = check(lowered.nest, desc)
    assert found.fault is None
    assert "terms" in found.shown


def test_rows_and_columns_are_summed_in_one_pass() -> None:
    nest = lower(both_sums(), EVERYWHERE).nest
    loops = [part for part in nest.body.statements if isinstance(part, For)]
    assert sum("x[" in str(part) or "name='x'" in repr(part) for part in loops) == 1


def test_phases_of_a_row_stay_in_one_loop() -> None:
    """The maximum, the sum and the loss of a row follow each other, and need no temporary of all rows."""
    nest = lower(cross_entropy(), EVERYWHERE).nest
    assert [b.name for b in nest.buffers if b.space.value == "workspace"] == ["t7_G3_0"]


@pytest.mark.parametrize(
    "desc",
    [
        total(1000),
        examples.softmax(4096, 4096),
        both_sums(64, 64),
        examples.softmax(sym("M"), sym("N")),
    ],
    ids=["short", "rows are enough", "short both", "unknown rows are enough"],
)
def test_what_does_not_pay_is_left_alone(desc: KernelDesc) -> None:
    scop = grouped(desc)
    assert privatise(scop, Partials()) is scop


def test_products_and_scans_are_left_alone() -> None:
    w, x, y = Writer(), tensor("x", 4, 4096), tensor("y", 4096, 4)
    product = grouped(w.desc("product", (x, y), w.op("MatMul", x, y, shape=(4, 4))))
    assert privatise(product, EAGER) is product
    w, x = Writer(), tensor("x", 4096)
    scan = grouped(w.desc("scan", (x,), w.op("CumSum", x, shape=(4096,), axis=0)))
    assert privatise(scan, EAGER) is scan


def test_the_axis_with_most_blocks_is_cut_then_the_outermost() -> None:
    both = (Target(frozenset({0}), 4096), Target(frozenset({1}), 4096))
    cut = best_cut(Reduction((4096, 4096), both, 0.1), Partials())
    assert cut is not None
    assert (cut.position, cut.length, cut.count) == (0, 64, 64)
    wide = best_cut(
        Reduction((8, 1 << 20), (Target(frozenset({0}), 8), Target(frozenset({1}), 1 << 20)), 0.1), Partials()
    )
    assert wide is not None
    assert wide.position == 1


def test_blocks_do_not_depend_on_the_machine(monkeypatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert show_scop(privatise(grouped(total(1 << 22)), Partials())).count("< 64") == 2


# ---------------------------------------------------------------- planted faults


def lost_sum(scop):
    return replace(scop, statements=tuple(s for s in scop.statements if "_sum" not in s.name))


def repeated_sum(scop):
    sums = [replace(s, name=f"{s.name}_again") for s in scop.statements if "_sum" in s.name]
    return replace(scop, statements=(*scop.statements, *sums))


def sum_before_its_terms(scop):
    return replace(scop, statements=scop.statements[::-1])


def one_partial_for_all(scop):
    """The blocks share the first partial result."""

    def one(statement):
        body = tuple(
            replace(part, index=(kernelgen.nest.nodes.Num(0), *part.index[1:])) if "_G0_" in part_name(part) else part
            for part in statement.body
        )
        return replace(statement, body=body)

    return replace(scop, statements=tuple(map(one, scop.statements)))


def part_name(part) -> str:
    return getattr(getattr(part, "buffer", None), "name", "")


def blocks_too_long(scop):
    """Blocks overlap what their number says: fewer of them are counted than there are."""

    def one(statement):
        its = tuple(replace(it, extent=it.extent - 1) if it.blocks is not None else it for it in statement.iterators)
        return replace(statement, iterators=its)

    return replace(scop, statements=tuple(map(one, scop.statements)))


@pytest.mark.parametrize("fault", [lost_sum, repeated_sum, sum_before_its_terms, one_partial_for_all, blocks_too_long])
def test_faults_are_rejected(fault, monkeypatch) -> None:
    desc = total()
    monkeypatch.setattr(stages, "SCOP_STAGES", (*stages.SCOP_STAGES, Stage(fault, "planted")))
    try:
        nest = lower(desc, EVERYWHERE).nest
    except ProofError:
        return
    assert check(nest, desc).fault is not None


def test_without_sharing_rows_keep_their_own_loop_beside_columns() -> None:
    alone = replace(EAGER, shared=False)
    scop = group(fold(to_scop(both_sums())), alone)
    assert len(scop.statements) == 2
    found = privatise(scop, alone)
    blocked = {each.name for each in found.statements if any(it.blocks for it in each.iterators)}
    assert len(found.statements) == 3
    assert len(blocked) == 1
    assert (
        len({each.name for each in privatise(scop, EAGER).statements if any(it.blocks for it in each.iterators)}) == 2
    )


@pytest.mark.parametrize(("rows", "columns"), [(256, 768), (4096, 128)])
def test_a_device_makes_partial_results_of_columns_alone(rows: int, columns: int) -> None:
    nest = kernelgen.compile(both_sums(rows, columns), target="gpu").nest
    assert all(each.shape[-1] == columns for each in nest.buffers if each.space.value == "workspace")
