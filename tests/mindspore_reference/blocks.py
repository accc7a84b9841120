"""Which operators of a net share a kernel: the blocks that MindSpore ends with, and where the same operators are here.

An operator may be in several places: an expansion may be cut, and a cheap operator may be computed twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelgen.tensor.graph import Graph
from kernelgen.tensor.origin import origin_of
from tests.mindspore_reference.rebuild import MONADS, Record

OUTSIDE = "outside of kernels"
Label = str


@dataclass(frozen=True)
class Block:
    """A kernel there. ``whole`` operators are all in it; of ``parts`` it holds a piece of an expansion.

    ``expanded`` counts expansions by operator where the record does not say which of several nodes was expanded.
    """

    name: str
    whole: frozenset[Label]
    parts: frozenset[Label]
    expanded: Mapping[str, int]


def blocks(record: Record) -> tuple[Block, ...] | None:
    """The kernels of a record over the labels of its graph; None when the record stops before the end or is cut short."""
    final = _final(record)
    if final is None:
        return None
    graphs = {graph["name"]: graph for graph in final["subgraphs"]}
    called = [node["op"].removeprefix("call @") for node in final["main"]["nodes"] if node["op"].startswith("call @")]
    bodies = [(name, graphs[name]["nodes"]) for name in called if name in graphs]
    if any("trimmed" in graphs[name] for name in called if name in graphs):
        return None
    pieces = _pieces(record["graph"]["nodes"], bodies)
    homes: dict[Label, set[str]] = {}
    for name, labels, _ in pieces:
        for label in labels:
            homes.setdefault(label, set()).add(name)
    return tuple(
        Block(
            name,
            frozenset(label for label in labels if homes[label] == {name}),
            frozenset(label for label in labels if homes[label] != {name}),
            expanded,
        )
        for name, labels, expanded in pieces
    )


def _pieces(nodes: list[Any], bodies: list[tuple[str, list[Any]]]) -> list[tuple[str, set[Label], dict[str, int]]]:
    """For each kernel the nodes that it holds (something of), and the expansions that cannot be told apart."""
    labels = {node["fullname"]: f"n{node['id'].lstrip('%')}" for node in nodes if "id" in node}
    by_op: dict[str, list[Label]] = {}
    for node in nodes:
        if "id" in node:
            by_op.setdefault(node["op"], []).append(f"n{node['id'].lstrip('%')}")
    found: list[tuple[str, set[Label], dict[str, int]]] = []
    for name, body in bodies:
        held: set[Label] = set()
        unclear: dict[str, int] = {}
        for node in body:
            source = str((node.get("attrs") or {}).get("expand_from", "")).strip('"')
            if source and len(by_op.get(source, [])) == 1:
                held.add(by_op[source][0])
            elif source in by_op:
                unclear[source] = 1
            elif not source and node["op"] not in MONADS and node.get("fullname") in labels:
                held.add(labels[node["fullname"]])
        found.append((name, held, unclear))
    return found


def _final(record: Record) -> Any:
    """The graph at the end, or after the split when kernels could not be built."""
    stage = "graph_final" if record.get("graph_final") else "graph_after_split"
    while isinstance(record.get(stage), str):
        stage = record[stage].removeprefix("same as ")
    return record.get(stage) if record.get("final_kernels") is not None else None


@dataclass(frozen=True)
class Places:
    """Where each operator of the net is in an optimized graph: kernel names, or OUTSIDE; nowhere when it was simplified away.

    ``pieces`` tells apart the operators that one expansion made: label of the original -> label here -> places.
    """

    pieces: Mapping[Label, Mapping[Label, frozenset[str]]]
    operators: Mapping[str, frozenset[Label]]

    def of(self, label: Label) -> frozenset[str]:
        """All places of an operator."""
        return frozenset().union(*self.pieces.get(label, {}).values())

    def has(self, label: Label, place: str) -> bool:
        """True when something of the operator is there, or nothing is left of it."""
        return label not in self.pieces or place in self.of(label)

    def holds(self, label: Label, place: str) -> bool:
        """True when all of the operator is there, though parts may be elsewhere too, or nothing is left of it."""
        return all(place in found for found in self.pieces.get(label, {}).values())


def places(before: Graph, after: Graph) -> Places:
    """Follows the labels of ``before`` into ``after``."""
    known = {node.name for node in before.operators}
    found: dict[Label, dict[Label, set[str]]] = {}

    def put(label: Label, place: str) -> None:
        origin = origin_of(label, known)
        if origin is not None:
            found.setdefault(origin, {}).setdefault(label, set()).add(place)

    for node in after.operators:
        if node.body is None:
            put(node.name, OUTSIDE)
        for inner in node.body.operators if node.body is not None else ():
            put(inner.name, node.name)
    operators: dict[str, set[Label]] = {}
    for node in before.operators:
        operators.setdefault(node.op.name, set()).add(node.name)
    return Places(
        {label: {inner: frozenset(at) for inner, at in made.items()} for label, made in found.items()},
        {name: frozenset(labels) for name, labels in operators.items()},
    )


def home(block: Block, where: Places) -> str | None:
    """The place here that holds all of a kernel there; None when it is torn apart.

    A kernel of one operator may be anywhere: the operator is a block by itself.
    """
    if len(block.whole) + len(block.parts) + len(block.expanded) <= 1:
        return OUTSIDE
    everywhere = {place for label in (*block.whole, *block.parts) for place in where.of(label)}
    everywhere |= {place for op in block.expanded for label in where.operators[op] for place in where.of(label)}
    for place in sorted(everywhere - {OUTSIDE}) or ([] if everywhere else [OUTSIDE]):
        held = all(where.holds(label, place) for label in block.whole)
        touched = all(where.has(label, place) for label in block.parts)
        some = all(any(where.holds(label, place) for label in where.operators[op]) for op in block.expanded)
        if held and touched and some:
            return place
    return None
