"""What ranks do to each other survives all passes; a pass that changes it is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import PassError
from graphkernel.passes.base import Pass, Step
from graphkernel.step_hooks import Verify
from kernelgen.tensor.graph import Graph, Node, Value, keep
from kernelgen.tensor.order import is_ordered, sequence
from tests.random_collectives import check, order_of, random_graph

GROUP: dict[str, Any] = {"rank_size": 2}


@pytest.mark.parametrize("first", range(0, 40, 8))
def test_random_graphs_keep_their_collectives(first: int) -> None:
    assert [(seed, why) for seed in range(first + 1, first + 9) if (why := check(seed)) is not None] == []


def test_two_ranks_start_the_same_and_have_the_numbers_of_the_graph_as_it_came() -> None:
    assert check(0) is None


def test_both_readings_of_the_order_agree() -> None:
    for seed in range(40):
        graph = random_graph(seed)
        assert len(order_of(graph)) == len(sequence(graph))


def program(x):
    first = ops.all_reduce(x, **GROUP)
    ops.receive(x, 1, **GROUP)
    same = ops.all_reduce(x, **GROUP)
    return first + same * ops.all_gather(x, **GROUP)[:4]


GRAPH = gk.trace(program, gk.spec((4, 4)))
FIRST, RECEIVE, SAME, GATHER = (node for node in GRAPH.operators if is_ordered(node))


def rewritten(rewrite: Callable[[Node, tuple[Value, ...]], tuple[Value, ...]]) -> Graph:
    return GRAPH.rebuild(rewrite)


def merged() -> Graph:
    """Equal collectives become one: what follows the second follows the receive."""
    kept: dict[Node, Node] = {}

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        kept[node] = keep(node, args)
        return (kept[FIRST].outs[0], args[-1]) if node is SAME else kept[node].outs

    return rewritten(rewrite)


def merged_as_cse_would() -> Graph:
    """The second becomes the first, token and all."""
    return rewritten(lambda node, args: FIRST.outs if node is SAME else keep(node, args).outs)


def dropped() -> Graph:
    """A receive that nobody reads is gone, and its token is the one before."""
    return rewritten(lambda node, args: (args[0], args[0]) if node is RECEIVE else keep(node, args).outs)


def swapped() -> Graph:
    """The gather comes before the second sum; the chain is whole."""

    def rewrite(node: Node, args: tuple[Value, ...]) -> tuple[Value, ...]:
        if node is SAME:
            early = replace(GATHER, args=(GATHER.args[0], args[-1]))
            late = replace(SAME, args=(args[0], early.outs[-1]))
            swap[GATHER] = (early.outs[0], late.outs[-1])
            return (late.outs[0], late.outs[-1])
        return swap[GATHER] if node is GATHER else keep(node, args).outs

    swap: dict[Node, tuple[Value, ...]] = {}
    return rewritten(rewrite)


def doubled() -> Graph:
    """What reads the first sum reads another one, made for it."""
    again = replace(FIRST, name="again")
    return rewritten(
        lambda node, args: keep(node, tuple(again.outs[0] if arg == FIRST.outs[0] else arg for arg in args)).outs
    )


MUTANTS = {
    "merges": merged,
    "merges with its token": merged_as_cse_would,
    "drops": dropped,
    "swaps": swapped,
    "duplicates": doubled,
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_pass_that_changes_what_ranks_do_is_caught(name: str) -> None:
    after = MUTANTS[name]()
    step = Step(Pass(name, lambda graph, context: after), "planted", 1, 1, "")
    with pytest.raises(PassError, match=f"pass planted_1_{name} left an invalid graph"):
        Verify()(step, GRAPH, after)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_other_reading_catches_it_too(name: str) -> None:
    try:
        found = order_of(MUTANTS[name]())
    except ValueError:
        return
    assert found != order_of(GRAPH)
