"""Places that data decides, statements that run in order, blocks of products: what is proved about them."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import numpy as np
import pytest
from operator_kernels import I32, F, Given, csr, draw, one

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.link import linked, unlinked
from kernelgen.composite.specialize import specialize
from kernelgen.driver import compile
from kernelgen.errors import ProofError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Expr,
    For,
    Index,
    IndexBinary,
    IndexOp,
    Let,
    Load,
    LoopKind,
    Space,
    Store,
)
from kernelgen.nest.walk import map_expression, statements
from kernelgen.plan import CpuPlan, Plan
from kernelgen.poly.build_scop import to_scop
from kernelgen.poly.grouping.fold_axes import fold
from kernelgen.poly.grouping.merge_groups import group
from kernelgen.poly.mapping.cpu import choose
from kernelgen.poly.model.relations import Relations, relations
from kernelgen.poly.model.scop import BodyStatement, Scop
from kernelgen.poly.proof.schedule_proof import prove
from kernelgen.poly.schedule.apply_plan import apply
from kernelgen.poly.schedule.compute_schedule import schedule
from kernelgen.tensor.dims import sym

GATHER = one("Gather", [(F, (7, 5)), (I32, (4,))], [(F, (4, 5))], axis=0)
SEGMENTS = one("UnsortedSegmentSum", [(F, (6, 5)), (I32, (6,))], [(F, (4, 5))], num_segments=4)
SCAN = one("CumSum", [(F, (4, 9))], [(F, (4, 9))], axis=1)
MATMUL = one("MatMul", [(F, (21, 50)), (F, (50, 70))], [(F, (21, 70))])
N, M = sym("N"), sym("M")


def grouped(desc: KernelDesc) -> tuple[Scop, Relations]:
    scop = group(fold(to_scop(desc)))
    return scop, relations(scop)


def kinds(desc: KernelDesc) -> list[LoopKind]:
    return [s.kind for s in statements(compile(desc, "python").nest.body) if isinstance(s, For)]


def unclamped(index: Index) -> Index:
    """The fault: a place as the data has it."""
    match index:
        case IndexBinary(IndexOp.MIN | IndexOp.MAX, left, _):
            return unclamped(left)
        case IndexBinary(op, left, right):
            return ix.binary(op, unclamped(left), unclamped(right))
        case _:
            return index


def without_clamps(part: BodyStatement) -> BodyStatement:
    def load(expr: Expr) -> Expr:
        return replace(expr, index=tuple(map(unclamped, expr.index))) if isinstance(expr, Load) else expr

    value = map_expression(part.value, load)
    if isinstance(part, Let):
        return replace(part, value=value)
    return replace(part, value=value, index=tuple(map(unclamped, part.index)))


@pytest.mark.parametrize("desc", [GATHER, SEGMENTS], ids=lambda d: d.name)
def test_bounds_hold_for_all_data_and_not_without_the_clamp(desc: KernelDesc) -> None:
    scop, whole = grouped(desc)
    assert prove(scop, whole, schedule(scop, whole)).about("bounds")
    wild = tuple(replace(s, body=tuple(map(without_clamps, s.body))) for s in scop.statements)
    broken = replace(scop, statements=wild)
    with pytest.raises(ProofError, match="bounds"):
        prove(broken, relations(broken), schedule(broken, relations(broken)))


def test_rows_that_data_scatters_may_meet_and_the_exact_dim_is_parallel() -> None:
    scop, whole = grouped(SEGMENTS)
    adding = scop.statements[-1]
    step = isl.UnionMap.read_from_str(whole.context, f"{{ {adding.name}[i, j] -> {adding.name}[i + 1, j] }}")
    assert not whole.reduction.intersect(step).is_empty()
    across = isl.UnionMap.read_from_str(whole.context, f"{{ {adding.name}[i, j] -> {adding.name}[k, j + 1] }}")
    assert whole.reduction.intersect(across).is_empty()


@pytest.mark.parametrize("desc", [SCAN, SEGMENTS], ids=["scan", "scatter"])
def test_the_loop_that_order_or_data_binds_cannot_be_parallel(desc: KernelDesc) -> None:
    scop, _ = grouped(desc)
    last = scop.statements[-1]
    only = replace(scop, statements=(last,))
    whole = relations(only)
    bound = "i1" if desc is SCAN else "i0"
    times = [f"{{ {last.name}[i0, i1] -> [{name}] }}" for name in (bound, "i0" if bound == "i1" else "i1")]
    time = isl.MultiUnionPwAff.read_from_str(whole.context, f"[{', '.join(times)}]")
    tree = isl.Schedule.from_domain(whole.domain).insert_partial_schedule(time)
    band = tree.get_root().child(0).band_split(1)
    assert prove(only, whole, band.get_schedule())
    with pytest.raises(ProofError, match="parallel"):
        prove(only, whole, band.insert_mark(isl.Id("parallel", context=whole.context)).get_schedule())


def test_a_scan_cannot_be_a_vector_loop() -> None:
    scop, whole = grouped(one("CumSum", [(F, (9,))], [(F, (9,))], axis=0))
    name = scop.statements[0].name
    time = isl.MultiUnionPwAff.read_from_str(whole.context, f"[{{ {name}[i0] -> [i0] }}]")
    node = isl.Schedule.from_domain(whole.domain).insert_partial_schedule(time).get_root().child(0)
    with pytest.raises(ProofError, match="vector"):
        prove(scop, whole, node.insert_mark(isl.Id("vector", context=whole.context)).get_schedule())


def test_a_scan_that_runs_backward_is_rejected() -> None:
    scop, whole = grouped(SCAN)
    (statement,) = scop.statements
    assert statement.ordered
    tree = isl.Schedule.from_domain(whole.domain).insert_partial_schedule(
        isl.MultiUnionPwAff.read_from_str(whole.context, f"[{{ {statement.name}[i0, i1] -> [(-i1)] }}]")
    )
    with pytest.raises(ProofError, match="legality"):
        prove(scop, whole, tree)


def test_a_scan_keeps_its_running_value_in_a_register_and_its_rows_parallel() -> None:
    nest = compile(SCAN, "python").nest
    assert not [b for b in nest.buffers if b.space is Space.WORKSPACE]
    outer = [s for s in nest.body.statements if isinstance(s, For)]
    assert [loop.kind for loop in outer] == [LoopKind.PARALLEL]


def test_blocks_of_a_product_cover_every_result_once() -> None:
    scop, whole = grouped(MATMUL)
    found = schedule(scop, whole)
    mapped = apply(found, choose(found, scop, whole, Plan(CpuPlan(block=(4, 16)))))
    assert prove(scop, whole, mapped)
    assert mapped.get_domain().is_equal(whole.domain)
    held = [
        s for s in statements(compile(MATMUL, "python").nest.body) if isinstance(s, Store) and "held" in s.buffer.name
    ]
    assert held


@pytest.mark.parametrize("target", ["python", "cpu"])
@pytest.mark.parametrize(
    "desc",
    [
        one("MatMul", [(F, (N, M)), (F, (M, 40))], [(F, (N, 40))]),
        one("MatMul", [(F, (N, 9)), (F, (M, 9))], [(F, (N, M))], transpose_b=True),
        one("Concat", [(F, (N, M)), (F, (N, 3))], [(F, (N, M + 3))], axis=1),
        one("Concat", [(F, (N, M)), (F, (N, M))], [(F, (N + N, M))], axis=0),
        one("PadAkg", [(F, (N, M))], [(F, (N + 3, M))], head=[1, 0], tail=[2, 0], pad_val=0.0),
        one("Gather", [(F, (N, M)), (I32, (4,))], [(F, (4, M))], axis=0),
        one("UnsortedSegmentSum", [(F, (N, M)), (I32, (N,))], [(F, (5, M))], num_segments=5),
        one("CumSum", [(F, (N, M))], [(F, (N, M))], axis=1, reverse=True),
        one("CumSum", [(F, (N, M))], [(F, (N, M))], axis=0, exclusive=True),
        one("Argmax", [(F, (N, M))], [(I32, (N,))], axis=1),
        one("OneHot", [(I32, (N,)), (F, ()), (F, ())], [(F, (N, 6))], depth=6, axis=-1),
        one("StridedSlice", [(F, (N, M))], [(F, (N, M))], begin=[0, -1], end=[0, 0], strides=[1, -1],
                 begin_mask=1, end_mask=3),
    ],
    ids=lambda d: d.name,
)  # fmt: skip
def test_symbolic_sizes(desc: KernelDesc, target: str) -> None:
    kernel = compile(desc, target)
    for sizes in ({"N": 6, "M": 11}, {"N": 1, "M": 1}, {"N": 33, "M": 70}):
        inputs = draw(specialize(desc, {s: sizes[s] for s in desc.symbols}))
        for got, want in zip(kernel(*inputs), kernelgen.reference(desc)(*inputs), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_rows_of_a_sparse_matrix_are_counted_once() -> None:
    given: list[str | Given] = ["indptr", "indices", (F, (9,)), (F, (6, 1))]
    first = csr("CSRMV", given, [(F, (5, 1))], dense_shape=[5, 6])
    once = unlinked(first)
    again = replace(once.ops[0], outs=(replace(once.outputs[0], name="again"),))
    twice = linked(replace(once, outputs=(*once.outputs, again.out), ops=(*once.ops, again)))
    marks = [[s.name for s in to_scop(desc).statements if "marks" in s.name] for desc in (first, twice)]
    assert marks[0] == marks[1] != []
