"""What the engine of the named fusions refuses, whatever a finder proposes."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.decisions import DecisionLog
from graphkernel.ops import OPS, Tensor
from graphkernel.passes.base import Context
from graphkernel.passes.named_fusion.apply_fusion import Finder, Fusion, Product, Site, named_fusion
from graphkernel.passes.named_fusion.queries import made_by
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.operators.elemwise import EXP, NEG
from kernelgen.tensor.text import parse

CHAIN = """graph f(x: f32[N, 4]) {
  a: f32[N, 4] = Exp(x)
  b: f32[N, 4] = Neg(a)
  c: f32[N, 4] = Neg(b)
  return c
}"""


def pair(product: Product) -> Finder:
    """Neg of anything that Exp or Neg made becomes the product."""

    def find(site: Site) -> Fusion | None:
        below = made_by(site.root.args[0], EXP, NEG) if site.root.op is NEG else None
        return Fusion((below, site.root), below.args, site.root.outs, product) if below else None

    return find


def run(product: Product, text: str = CHAIN) -> tuple[Graph, Graph, DecisionLog]:
    graph, context = parse(text, OPS), Context()
    return graph, named_fusion("try")(pair(product))(graph, context), context.log


def reasons(log: DecisionLog) -> list[str]:
    return [decision.message for decision in log if decision.code == "not-fused-named"]


def test_fusions_do_not_share_nodes() -> None:
    _, after, log = run(lambda x: (ops.abs(x),))
    assert [node.op.name for node in after.operators] == ["Abs", "Neg"]
    assert [decision.message for decision in log] == ["Exp + Neg became Abs"]


def test_a_product_of_another_type_is_refused() -> None:
    def narrow(x: Tensor) -> tuple[Tensor, ...]:
        return (ops.cast(x, "float16"),)

    graph, after, log = run(narrow)
    assert after is graph
    assert reasons(log) == [
        "the product gives f16[N, 4] for b of type f32[N, 4]",
        "the product gives f16[N, 4] for c of type f32[N, 4]",
    ]


def test_a_product_that_does_not_take_the_operands_is_refused() -> None:
    graph, after, log = run(lambda x: (ops.matmul(x, x),))
    assert after is graph
    assert "inner extents 4 and N must be equal" in reasons(log)[0]


def test_a_second_fusion_of_the_same_round_is_refused() -> None:
    """Of two users of one node the first has it; the other is told why in the round after."""
    text = CHAIN.replace("Neg(b)", "Neg(a)").replace("return c", "return b, c")
    graph, after, log = run(lambda x: (ops.abs(x),), text)
    assert after is graph
    assert reasons(log) == [
        "Neg c needs a result of Exp a, which the product does not give",
        "Neg b needs a result of Exp a, which the product does not give",
    ]


def test_labels_of_a_product_come_from_what_it_replaces() -> None:
    _, after, _ = run(lambda x: (ops.abs(ops.sqrt(ops.abs(x))),))
    assert [node.name for node in after.operators] == ["b.0", "b.1", "b", "c"]
