"""The numpy meaning of a graph: the oracle that every pass and every kernel is held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelgen.errors import InputError, RuntimeFailure, VerifyError, nearest, said_by
from kernelgen.tensor.bind import bind, concrete_attrs, concrete_shape
from kernelgen.tensor.boxes import as_array, as_values
from kernelgen.tensor.definitions import defined_extents, definitions, in_order
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.order import results_of

Array = np.ndarray[Any, np.dtype[Any]]
LIBRARYS = "Onnx"
"""The operator whose meaning the host library tells."""


def evaluate(graph: Graph, arrays: Sequence[object] | Mapping[str, object]) -> tuple[Array, ...]:
    """The outputs for the given inputs, in order or by name. Symbols are bound from the shapes.

    What is no tensor, such as a list of them, is given and comes back as it is.
    Nothing is written: an aliased output comes back as an array of its own.
    Raises ``InputError`` when the arrays do not fit the inputs, ``RuntimeFailure`` when an operator of the host library fails
    on them, and ``VerifyError`` when an operator's meaning gives
    another type than its type rule promised.
    """
    given = _in_order(graph, arrays)
    types = [value.type for value in graph.inputs]
    inputs = tuple(map(as_array, given, types)) if len(given) == len(types) else tuple(map(np.asarray, given))
    symbols = bind(graph, inputs)
    ends = results_of(graph)
    return as_values(_run(graph, inputs, symbols)[: len(ends)], [value.type for value in ends])


def _in_order(graph: Graph, arrays: Sequence[object] | Mapping[str, object]) -> Sequence[object]:
    if not isinstance(arrays, Mapping):
        return arrays
    names = [value.node.name for value in graph.inputs]
    for name in arrays:
        if name not in names:
            raise InputError(f"the graph has no input {name!r}{nearest(str(name), names)}")
    missing = [name for name in names if name not in arrays]
    if missing:
        raise InputError(f"no array is given for input {', '.join(missing)}")
    return [arrays[name] for name in names]


def _run(graph: Graph, inputs: Sequence[Array], symbols: Mapping[str, int]) -> tuple[Array, ...]:
    known: dict[Value, Array] = dict(zip(graph.inputs, inputs, strict=True))
    extents = dict(symbols)
    for node in in_order(graph, definitions(graph)):
        if node.outs[:1] and node.outs[0] not in known:
            results = _node_results(node, [known[arg] for arg in node.args], extents)
            known.update(zip(node.outs, results, strict=True))
    return tuple(known[value] for value in graph.outputs)


def meaning_of(
    node: Node, operands: Sequence[Array], symbols: Mapping[str, int]
) -> Any:  # an array, or a tuple of them
    """What the operator of ``node`` makes of the arrays ``operands``; ``symbols`` are the sizes of its symbols.

    Raises ``RuntimeFailure`` where the host library, which tells the meaning, fails.
    """
    try:
        return node.op.meaning(*operands, attrs=concrete_attrs(node.attrs, symbols))
    except Exception as error:
        if node.op.name != LIBRARYS:
            raise
        raise RuntimeFailure(f"{node.attrs.str('op_type')} {node.name} fails: {said_by(error)}") from error


def _node_results(node: Node, operands: Sequence[Array], symbols: dict[str, int]) -> tuple[Array, ...]:
    """The results of one node; ``symbols`` takes those that it defines."""
    if node.data is not None:
        if node.data.array is None:
            raise InputError(f"the content of constant {node.name} is unknown; give it to parse as weights")
        return (node.data.array,)
    if node.body is not None:
        return _run(node.body, operands, symbols)
    found = meaning_of(node, operands, symbols)
    results = tuple(map(np.asarray, found)) if isinstance(found, tuple) else (np.asarray(found),)
    symbols.update(defined_extents(node, results))
    promised = [(concrete_shape(type_.shape, symbols), type_.dtype.numpy) for type_ in node.types]
    if [(result.shape, result.dtype) for result in results] != promised:
        given = ", ".join(f"{result.dtype}{list(result.shape)}" for result in results)
        raise VerifyError(
            "meaning", f"{node.op.name} {node.name} gave {given}, its type is {', '.join(map(str, node.types))}"
        )
    return results
