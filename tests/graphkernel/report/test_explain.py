from __future__ import annotations

import json
from typing import Any

import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.decisions import REASONS
from graphkernel.errors import GraphKernelError
from graphkernel.report.answer import ADVICE
from kernelgen.tensor.origin import origin_of


def net(x: Any, w: Any) -> Any:
    return ops.exp(ops.matmul(ops.add(ops.mul(x, 2.0), 1.0), w))


EXPLANATION = gk.explain(gk.trace(net, gk.spec((3, 4)), gk.spec((4, 4))))


def test_summary_counts() -> None:
    first, *rest = EXPLANATION.summary.splitlines()
    assert first == "net: 4 operators became 2 kernels and 1 other"
    assert rest
    assert all(any(code in line for code in REASONS) for line in rest)


def test_everything_is_listed() -> None:
    assert len(str(EXPLANATION).splitlines()) == len(EXPLANATION.summary.splitlines()) + len(EXPLANATION.decisions)
    assert len(json.loads(EXPLANATION.to_json())["decisions"]) == len(EXPLANATION.decisions) > 0


def test_why_together_and_why_not() -> None:
    assert EXPLANATION.why("Mul", "Add").startswith("Mul and Add are both in kernel Fused_Mul_Add")
    assert EXPLANATION.why("Mul", "Exp").startswith("no kernel holds both Mul and Exp")


CHAIN = """graph g(x: f32[4, 4], w: f32[4, 4]) {
  a: f32[4, 4] = Exp(x)
  m: f32[4, 4] = MatMul(a, w, transpose_a=False, transpose_b=False)
  b: f32[4, 4] = Neg(m)
  c: f32[4, 4] = Exp(b)
  d: f32[4, 4] = Exp(c)
  n: f32[4, 4] = MatMul(d, w, transpose_a=False, transpose_b=False)
  return n
}"""


def test_the_first_line_answers_with_how_often_and_the_reason() -> None:
    explained = gk.explain(gk.parse(CHAIN))
    assert explained.why("Exp", "MatMul").splitlines() == [
        "no kernel holds both Exp and MatMul, at none of the 2 places where one feeds the other: "
        "kernels do not compute MatMul on cpu (not-fused-opaque)",
        "for example a -> m",
        "what to do: nothing; the host library runs it",
        "--all lists 9 decisions about them",
    ]
    assert explained.why("Exp", "Neg").splitlines()[0] == "Exp and Neg are both in kernel Fused_Neg_Exp_Exp_fusion"
    assert explained.why("MatMul", "Neg").startswith("no kernel holds both MatMul and Neg, not at the one place ")


def test_reasons_with_a_remedy_name_it() -> None:
    kept_out = gk.explain(gk.parse(CHAIN), flags="--disable_cluster_ops=Neg")
    first, _, remedy, _ = kept_out.why("Neg", "Exp").splitlines()
    assert first.endswith("(not-fused-disabled)")
    assert remedy == "what to do: take it off disable_cluster_ops, or add it to enable_cluster_ops_only"
    assert set(ADVICE) <= set(REASONS)


def test_all_decisions_stand_behind_the_answer() -> None:
    explained = gk.explain(gk.parse(CHAIN))
    short, full = explained.why("Exp", "MatMul"), explained.why("Exp", "MatMul", full=True)
    assert full.splitlines()[:3] == short.splitlines()[:3]
    assert len(full.splitlines()) == 3 + 9


def test_unknown_names_get_the_nearest() -> None:
    with pytest.raises(GraphKernelError, match=r"nothing is called 'MatNul' \(did you mean 'MatMul'\?\)"):
        EXPLANATION.why("MatNul", "Exp")


def test_an_expanded_operator_is_followed() -> None:
    explained = gk.explain(gk.trace(lambda x: ops.softmax(x + 1.0) * 2.0, gk.spec((3, 4))))
    told = explained.why("Softmax", "Add", full=True)
    assert told.startswith("Softmax and Add are both in kernel Fused_Add_ReduceMax_Sub_Exp_ReduceSum_Reciprocal_Mul")
    assert "t0 -> t1.0: fused-pattern: reduce_fwd_depth" in told


def test_a_label_that_looks_like_one_made_from_another_is_its_own() -> None:
    text = """graph g(x: f32[3, 4], w: f32[4, 4]) {
  t1: f32[3, 4] = MatMul(x, w, transpose_a=False, transpose_b=False)
  t1_1: f32[3, 4] = Softmax(t1, axis=(-1,))
  t1_2: f32[3, 4] = Exp(t1_1)
  return t1_2
}"""
    explained = gk.explain(gk.parse(text))
    assert explained.why("MatMul", "Exp").startswith("no kernel holds both MatMul and Exp")
    assert explained.why("Softmax", "Exp").startswith("Softmax and Exp are both in kernel")


def test_operators_of_a_kernel_that_is_called_twice_keep_their_labels() -> None:
    text = """graph g(x: f32[4, 4], w: f32[4, 4]) {
  a: f32[4, 4] = Exp(x)
  b: f32[4, 4] = Neg(a)
  m: f32[4, 4] = MatMul(b, w, transpose_a=False, transpose_b=False)
  c: f32[4, 4] = Exp(m)
  d: f32[4, 4] = Neg(c)
  return d
}"""
    explained = gk.explain(gk.parse(text))
    assert [node.name for node in explained.after.operators] == ["b", "m", "d"]
    assert len({node.body.name for node in explained.after.operators if node.body is not None}) == 1
    assert explained.why("c", "d").startswith("c and d are both in kernel Fused_Exp_Neg_fusion")
    assert explained.why("a", "d").startswith("no kernel holds both a and d")
    assert gk.parse(str(explained.after)) == explained.after


@pytest.mark.parametrize(
    ("label", "origin"),
    [("t2", "t2"), ("t2_1", "t2"), ("t2.0", "t2"), ("t2.0_3", "t2"), ("t2.c1", "t2"), ("a.b.7", "a.b"), ("t3", None)],
)
def test_origins(label: str, origin: str | None) -> None:
    assert origin_of(label, {"t2", "a.b"}) == origin


def biased(x: Any, w: Any, b: Any) -> Any:
    return ops.matmul(ops.add(ops.matmul(x, w), b), w)


def summed(x: Any, w: Any) -> Any:
    return ops.add(ops.matmul(x, w), ops.matmul(w, x))


def test_a_product_with_a_bias_is_the_product_and_the_sum() -> None:
    found = gk.explain(gk.trace(biased, gk.spec((64, 64)), gk.spec((64, 64)), gk.spec((64,))))
    assert found.why("MatMul", "Add").splitlines()[0].startswith("MatMul and Add are both in kernel")


def test_a_sum_of_two_products_is_one_of_them_with_the_other_as_bias() -> None:
    found = gk.explain(gk.trace(summed, gk.spec((64, 64)), gk.spec((64, 64)))).why("MatMul", "Add")
    assert "1 of 2 places where one feeds the other" in found
