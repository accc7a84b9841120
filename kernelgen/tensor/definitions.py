"""Symbols that operators define: extents that depend on data, such as the number of elements that are not zero.

Such a symbol is in no input's shape. Its operator lists it in the attribute ``defines``, and in the shape of a result it
stands alone, so that its value is read off the array. It may be 0, unlike what shape arithmetic takes symbols of inputs for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from numpy import ndarray

from kernelgen.tensor.attrs import symbols_in
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.types import TensorType, sym


class Place(NamedTuple):
    """Where the value of a symbol is read: axis ``axis`` of a value."""

    value: Value
    axis: int


def told_symbols(graph: Graph) -> frozenset[str]:
    """The symbols that follow from the shapes of the inputs of a ``graph``."""
    return frozenset(graph.input_symbols).union(entry.name for entry in graph.derived)


def place_in(types: Sequence[TensorType], name: str) -> tuple[int, int] | None:
    """The first result, and its axis, that is this symbol alone."""
    alone = sym(name)
    places = ((index, axis) for index, of in enumerate(types) for axis, dim in enumerate(of.shape) if dim == alone)
    return next(places, None)


def definitions(graph: Graph) -> dict[str, Place]:
    """The symbols that the operators of a graph define."""
    found: dict[str, Place] = {}
    for node in graph.operators:
        for name in node.defines:
            index, axis = place_in(node.types, name) or (0, 0)
            found[name] = Place(Value(node, index), axis)
    return found


def defined_extents(node: Node, results: Sequence[ndarray]) -> dict[str, int]:
    """What the results of a node say of the symbols that it defines."""
    places = ((name, place_in(node.types, name)) for name in node.defines)
    return {name: results[place[0]].shape[place[1]] for name, place in places if place is not None}


def mentioned_by(node: Node) -> frozenset[str]:
    """The symbols that a node is told of: in the types of its results, in attributes, and in its body."""
    own = {name for type_ in node.types for name in type_.symbols} | set(symbols_in(node.attrs.values()))
    return frozenset(own.union(*map(mentioned_by, node.body.nodes))) if node.body is not None else frozenset(own)


def needed(node: Node, places: Mapping[str, Place]) -> tuple[Value, ...]:
    """The operands of a node, and the values of which it is told an extent: those of ``places``."""
    if not places:
        return node.args
    told = (places[name].value for name in sorted(mentioned_by(node)) if name in places)
    return (*node.args, *(value for value in told if value.node is not node))


def in_order(graph: Graph, places: Mapping[str, Place]) -> Sequence[Node]:
    """The nodes, such that each comes behind those that define what it is told."""
    if not places:
        return graph.nodes
    position = {node: number for number, node in enumerate(graph.nodes)}
    order: dict[Node, None] = {}
    waiting = list(reversed(graph.nodes))
    while waiting:
        missing = {value.node for value in needed(waiting[-1], places)}.difference(order)
        waiting += sorted(missing, key=position.__getitem__, reverse=True)
        if not missing:
            order[waiting.pop()] = None
    return tuple(order)
