"""Rules to a fixpoint."""

from __future__ import annotations

import random

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.declarations import builtin_catalogue
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from graphkernel.patterns import drive
from graphkernel.patterns.arith_add import add_negated, add_zero, double_negation
from graphkernel.patterns.drive import simplify
from graphkernel.patterns.language import Rewrite, Safety, Term, rewrite, rule
from kernelgen.tensor.graph import Builder, Graph, Value
from kernelgen.tensor.operators.elemwise import ABS, ADD, EXP, LOG, MAXIMUM, MUL, NEG, REAL_DIV, SQRT, SUB
from kernelgen.tensor.types import TensorType, dtype
from tests.support.growth import calls_of


def test_nothing_to_do_gives_the_same_graph() -> None:
    graph = trace(lambda x: x * 2.0, spec((4,)))
    trail = simplify(graph, builtin_catalogue().rules, Safety.DOMAIN)
    assert trail.graph is graph
    assert trail.firings == ()


def test_the_trail_names_rules_and_nodes() -> None:
    def net(x: Tensor) -> Tensor:
        return ops.neg(ops.neg(x)) + 0.0

    trail = simplify(trace(net, spec((4,))), (add_zero, double_negation), Safety.ROUNDING)
    assert [firing.rule for firing in trail.firings] == ["double_negation", "add_zero"]
    assert trail.graph.operators == ()


def test_a_rule_that_promises_too_little_does_not_fire() -> None:
    graph = trace(lambda x: x + 0.0, spec((4,)))
    assert simplify(graph, (add_zero,), Safety.EXACT).graph is graph


def test_rules_that_undo_each_other_end_at_the_budget() -> None:
    @rule(safety=Safety.EXACT)
    def and_back(x: Term, y: Term) -> Rewrite:
        return rewrite(x - y, x + -y)

    graph = trace(lambda x, y: x - y, spec((4,)), spec((4,)))
    trail = simplify(graph, (add_negated, and_back), Safety.EXACT, budget=7)
    assert trail.exhausted
    assert len(trail.firings) == 7


def test_an_inner_node_that_others_need_is_not_computed_twice() -> None:
    graph = trace(lambda x, y: (x + -y, -y), spec((4,)), spec((4,)))
    two_uses = graph.with_outputs((graph.outputs[0], graph.outputs[0].node.args[1]))
    assert simplify(two_uses, (add_negated,), Safety.EXACT).graph is two_uses
    assert simplify(graph, (add_negated,), Safety.EXACT).graph is not graph


def cancelling(count: int) -> Graph:
    """A chain in which all operators but the last cancel."""
    b = Builder()
    x = b.parameter("x", TensorType((4,), dtype("float32")))
    value = x
    for _ in range(count // 4):
        value = b.emit(MUL, b.emit(NEG, b.emit(NEG, b.emit(MUL, value, b.constant(1.0)))), b.constant(np.float32(1.0)))
    return Graph("chain", (x,), (b.emit(ADD, value, x),))


def test_the_work_grows_with_the_chain() -> None:
    """Sweeps, not one rebuild for each firing."""
    rules = builtin_catalogue().rules
    small, large = (cancelling(count) for count in (1000, 4000))
    assert len(simplify(large, rules, Safety.EXACT).graph.operators) == 1
    once = calls_of(lambda: simplify(small, rules, Safety.EXACT))
    assert calls_of(lambda: simplify(large, rules, Safety.EXACT)) < 4 * once * 1.25


def test_a_constant_that_broadcasts_the_operand_stays_in_the_sum() -> None:
    graph = trace(lambda x: ops.reduce_sum(x * np.ones((2, 3, 4), np.float32), axis=(0, 2)), spec((4,)))
    assert simplify(graph, builtin_catalogue().rules, Safety.DOMAIN).graph.operators[-1].op.name == "ReduceSum"


def tangled(seed: int) -> Graph:
    """Sums, products and functions of few values, many of which rules know."""
    chance = random.Random(seed)
    builder = Builder()
    inputs = [builder.parameter(name, spec((4,))) for name in "xy"]
    values = [*inputs, builder.constant(np.float32(1)), builder.constant(np.zeros(4, np.float32))]

    def pick() -> Value:
        return values[-1 - int(chance.random() ** 2 * len(values))]

    for _ in range(60):
        if chance.random() < 0.4:
            values.append(builder.emit(chance.choice([NEG, EXP, LOG, SQRT, ABS]), pick()))
        else:
            values.append(builder.emit(chance.choice([ADD, SUB, MUL, REAL_DIV, MAXIMUM]), pick(), pick()))
    return Graph("tangled", tuple(inputs), tuple(dict.fromkeys((*values[-4:], pick()))))


@pytest.mark.parametrize("seed", range(40))
def test_a_sweep_finds_near_what_changed_what_a_sweep_of_all_finds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, rules = tangled(seed), builtin_catalogue().rules
    trail = simplify(graph, rules, Safety.DOMAIN)
    monkeypatch.setattr(drive, "_steps_to_new", lambda before, after, chosen, image: dict.fromkeys(after.nodes, 0))
    everywhere = simplify(graph, rules, Safety.DOMAIN)
    assert (str(trail.graph), trail.firings) == (str(everywhere.graph), everywhere.firings)
