"""The proofs reject what is wrong: planted faults in schedules, accesses and marks."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import pytest
from kernel_examples import column_sum, layer_norm, softmax, transpose_add

from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.errors import ProofError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Let, Load, Num, Store, Var
from kernelgen.plan import Plan
from kernelgen.poly.build_scop import to_scop
from kernelgen.poly.grouping.fold_axes import fold
from kernelgen.poly.grouping.merge_groups import group
from kernelgen.poly.mapping.cpu import choose
from kernelgen.poly.model.relations import Relations, relations
from kernelgen.poly.model.scop import Scop
from kernelgen.poly.proof.schedule_proof import prove
from kernelgen.poly.schedule.apply_plan import apply
from kernelgen.poly.schedule.compute_schedule import schedule


def grouped(desc: KernelDesc) -> tuple[Scop, Relations]:
    scop = group(fold(to_scop(desc)))
    return scop, relations(scop)


def flat(whole: Relations, text: str) -> isl.Schedule:
    """The domain scheduled by an explicit map, one band."""
    band = isl.MultiUnionPwAff.read_from_str(whole.context, text)
    return isl.Schedule.from_domain(whole.domain).insert_partial_schedule(band)


def every(iterator: str) -> str:
    """All three statements of the softmax follow one iterator."""
    return "{ " + "; ".join(f"G{k}[i, j] -> [({iterator})]" for k in range(3)) + " }"


def marked(schedule_: isl.Schedule, mark: str) -> isl.Schedule:
    node = schedule_.get_root().child(0)
    return node.insert_mark(isl.Id(mark, context=node.get_ctx())).get_schedule()


def test_every_kernel_carries_its_certificate() -> None:
    proof = compile(layer_norm(), "python").proof
    assert {fact.check for fact in proof.facts} == {"bounds", "legality", "parallel", "vector"}
    assert "every dependence runs forward" in str(proof)


def test_the_untouched_schedule_passes() -> None:
    scop, whole = grouped(softmax())
    found = schedule(scop, whole)
    assert prove(scop, whole, apply(found, choose(found, scop, whole, Plan()))).facts


def test_phases_in_the_wrong_order_are_rejected() -> None:
    scop, whole = grouped(softmax())
    backward = flat(
        whole,
        f"[{{ G0[i, j] -> [(2)]; G1[i, j] -> [(1)]; G2[i, j] -> [(0)] }}, {every('i')}]",
    )
    with pytest.raises(ProofError, match="legality"):
        prove(scop, whole, backward)


def test_phases_fused_point_by_point_are_rejected() -> None:
    """The sum is not finished when the division of the same point runs."""
    scop, whole = grouped(softmax())
    fused = flat(
        whole,
        f"[{every('i')}, {every('j')}]",
    )
    with pytest.raises(ProofError, match="legality"):
        prove(scop, whole, fused)


def test_a_lost_instance_is_rejected() -> None:
    scop, whole = grouped(column_sum(4, 5))
    short = schedule(scop, whole).intersect_domain(isl.UnionSet.read_from_str(whole.context, "{ G0[i, j] : j < 4 }"))
    with pytest.raises(ProofError, match="without a time"):
        prove(scop, whole, short)


def test_a_parallel_reduction_loop_is_rejected() -> None:
    scop, whole = grouped(column_sum(4, 5))
    over_rows = flat(whole, "[{ G0[i, j] -> [(i)] }]")
    with pytest.raises(ProofError, match="parallel"):
        prove(scop, whole, marked(over_rows, "parallel"))


def test_an_interleaved_reduction_loop_is_rejected() -> None:
    scop, whole = grouped(column_sum(4, 5))
    over_rows = flat(whole, "[{ G0[i, j] -> [(i)] }]")
    with pytest.raises(ProofError, match="interleave"):
        prove(scop, whole, marked(over_rows, "interleave"))


def test_an_interleaved_loop_across_a_true_dependence_is_rejected() -> None:
    scop, whole = grouped(softmax())
    phases = flat(whole, "[{ G0[i, j] -> [(0)]; G1[i, j] -> [(1)]; G2[i, j] -> [(2)] }]")
    with pytest.raises(ProofError, match="interleave"):
        prove(scop, whole, marked(phases, "interleave"))


def test_the_interleaved_loop_of_a_transpose_is_proved() -> None:
    proof = compile(transpose_add(), "python").proof
    assert len(proof.about("interleave")) == 1


def test_a_vector_loop_across_a_true_dependence_is_rejected() -> None:
    scop, whole = grouped(softmax())
    phases = flat(whole, "[{ G0[i, j] -> [(0)]; G1[i, j] -> [(1)]; G2[i, j] -> [(2)] }]")
    with pytest.raises(ProofError, match="vector"):
        prove(scop, whole, marked(phases, "vector"))


def test_an_unknown_mark_is_rejected() -> None:
    scop, whole = grouped(column_sum(4, 5))
    with pytest.raises(ProofError, match="unknown mark"):
        prove(scop, whole, marked(flat(whole, "[{ G0[i, j] -> [(j)] }]"), "warp"))


@pytest.mark.parametrize("part", ["read", "write"])
def test_an_access_shifted_past_the_end_is_rejected(part: str) -> None:
    scop, _ = grouped(softmax())
    broken = replace(
        scop, statements=(_shift(scop.statements[0], part), *scop.statements[1:-1], _shift(scop.statements[-1], part))
    )
    whole = relations(broken)
    with pytest.raises(ProofError, match="bounds"):
        prove(broken, whole, schedule(broken, whole))


def _shift(statement, part):  # a mutation of the body: x[i, j] -> x[i, j + 1]
    def one(body):
        if part == "read" and isinstance(body, Let) and isinstance(body.value, Load) and len(body.value.index) == 2:
            first, last = body.value.index
            return replace(body, value=replace(body.value, index=(first, ix.add(last, Num(1)))))
        if part == "write" and isinstance(body, Store) and len(body.index) == 2:
            return replace(body, index=(body.index[0], ix.add(Var("i1"), Num(1))))
        return body

    return replace(statement, body=tuple(one(body) for body in statement.body))
