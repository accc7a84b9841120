"""Operators that act on other processes: they happen once, and on every rank in one order.

An ordered operator (:attr:`Traits.ordered`) gives a token behind its other results, an array of no elements, and takes the
token of the ordered operator before it as its last operand, unless it is the first. The token of the last one is the last
output of the graph. So what comes after what is a dependence like any other, and every pass keeps it: two equal ones have
different operands and are not merged, one whose numbers nobody reads is needed for its token, and none overtakes another.
Tokens are no results for callers: executables do not give them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.types import TensorType, dtype

TOKEN = TensorType((0,), dtype("bool"))
"""The type of tokens."""

TOLD = ("group", "rank_size", "op", "root_rank", "dest_rank", "src_rank", "sr_tag")
"""The attributes that the other processes have to agree with."""


def is_ordered(node: Node) -> bool:
    """Whether a node acts on other processes, itself or by what its kernel holds."""
    return bool(node.op.traits.ordered) or (node.body is not None and bool(node.body.ordered))


def is_token(value: Value) -> bool:
    """Whether a value is the token of an ordered operator."""
    if value.node.body is not None:
        return is_token(value.node.body.outputs[value.index])
    return bool(value.op.traits.ordered) and value.index == len(value.node.types) - 1


def results_of(graph: Graph) -> tuple[Value, ...]:
    """The outputs that a caller gets: all but the token."""
    last = graph.outputs[-1:]
    return graph.outputs[:-1] if last and is_token(last[0]) else graph.outputs


def sequence(graph: Graph) -> tuple[str, ...]:
    """What the ordered operators do, in their order, also those in kernels: no pass may change it."""
    found: list[str] = []
    for node in graph.ordered:
        if node.op.traits.ordered:
            told = ", ".join(f"{name}={node.attrs[name]!r}" for name in TOLD if name in node.attrs)
            found.append(f"{node.op.traits.ordered}({told})")
        elif node.body is not None:
            found.extend(sequence(node.body))
    return tuple(found)


def broken_order(graph: Graph, *, is_body: bool) -> Iterator[str]:
    """What is wrong with the order of a graph: its ordered operators are one chain, whose end is the last output.

    A kernel's chain may begin with a token that the kernel is given; its end is any output.
    """
    ordered = graph.ordered
    if not ordered:
        return
    for before, node in zip([None, *ordered], ordered, strict=False):
        yield from _broken_turn(node, None if before is None else _token_of(before), is_body=is_body)
    uses = _uses_of_tokens(graph)
    for node in ordered:
        users = uses.get(_token_of(node), 0)
        if users != 1:
            yield f"the token of {node.name} is used {users} times"
    if not is_body and graph.outputs[-1] != _token_of(ordered[-1]):
        yield f"the last output is not the token of {ordered[-1].name}"


def _broken_turn(node: Node, token: Value | None, *, is_body: bool) -> Iterator[str]:
    """What is wrong with the token that a node is given, which should be that of the one before."""
    taken = [arg for arg in node.args if is_token(arg) or (is_body and arg.type == TOKEN and arg.is_parameter)]
    wanted = [] if token is None else [token]
    if taken != wanted and not (is_body and token is None and len(taken) == 1 and taken[0].is_parameter):
        names = ", ".join(value.node.name for value in taken) or "nothing"
        yield f"{node.name} comes after {names}, expected {token.node.name if token is not None else 'nothing'}"


def _uses_of_tokens(graph: Graph) -> dict[Value, int]:
    found: dict[Value, int] = {}
    every: Sequence[Value] = [*(arg for node in graph.operators for arg in node.args), *graph.outputs]
    for value in every:
        if value.type == TOKEN and is_token(value):
            found[value] = found.get(value, 0) + 1
    return found


def _token_of(node: Node) -> Value:
    return next(value for value in reversed(node.outs) if is_token(value))
