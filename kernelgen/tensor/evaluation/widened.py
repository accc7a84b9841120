"""A graph in float64, whatever its own types are: what its results would be without the rounding of narrower floats.

Operators compute on the wide operands where their numpy meaning takes them. One that does not, and one that ONNX alone
knows, computes in its own types: its rounding stays, that of all others goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kernelgen.errors import InputError
from kernelgen.tensor.bind import bind, concrete_shape
from kernelgen.tensor.boxes import as_array, as_values
from kernelgen.tensor.definitions import defined_extents, definitions, in_order
from kernelgen.tensor.evaluation.evaluate import meaning_of
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.order import results_of

Array = np.ndarray[Any, np.dtype[Any]]


def evaluate_wide(graph: Graph, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """The outputs; floats of every width as float64, complex numbers as complex128, others in their own type.

    Raises ``InputError`` when the arrays do not fit the inputs.
    """
    types = [value.type for value in graph.inputs]
    inputs = tuple(map(as_array, arrays, types))
    ends = results_of(graph)
    results = _run(graph, tuple(map(_wide, inputs)), bind(graph, inputs))
    return as_values(results[: len(ends)], [value.type for value in ends])


def _run(graph: Graph, inputs: Sequence[Array], symbols: Mapping[str, int]) -> tuple[Array, ...]:
    known: dict[Value, Array] = dict(zip(graph.inputs, inputs, strict=True))
    extents = dict(symbols)
    for node in in_order(graph, definitions(graph)):
        if node.outs[:1] and node.outs[0] not in known:
            results = _results(node, [known[arg] for arg in node.args], extents)
            extents.update(defined_extents(node, results))
            known.update(zip(node.outs, results, strict=True))
    return tuple(known[value] for value in graph.outputs)


def _results(node: Node, operands: Sequence[Array], symbols: Mapping[str, int]) -> tuple[Array, ...]:
    if node.data is not None:
        if node.data.array is None:
            raise InputError(f"the content of constant {node.name} is unknown; give it to parse as weights")
        return (_wide(node.data.array),)
    if node.body is not None:
        return _run(node.body, operands, symbols)
    if node.op.name == "Cast" and _is_wide(node.types[0].dtype.numpy):
        return (operands[0].astype(_wider(node.types[0].dtype.numpy)),)
    return _computed(node, operands, symbols)


def _computed(node: Node, operands: Sequence[Array], symbols: Mapping[str, int]) -> tuple[Array, ...]:
    """The operator's meaning, on wide operands if it gives what its type promises."""
    if node.op.name != "Onnx":
        promised = [(concrete_shape(of.shape, symbols), _wider(of.dtype.numpy)) for of in node.types]
        try:
            results = _meaning(node, operands, symbols)
        except Exception:  # a meaning may take no other types than its own; it is asked again in these
            results = ()
        if [(result.shape, result.dtype) for result in results] == promised:
            return results
    own = [operand.astype(arg.type.dtype.numpy) for operand, arg in zip(operands, node.args, strict=True)]
    return tuple(map(_wide, _meaning(node, own, symbols)))


def _meaning(node: Node, operands: Sequence[Array], symbols: Mapping[str, int]) -> tuple[Array, ...]:
    with np.errstate(all="ignore"):
        found = meaning_of(node, operands, symbols)
    return tuple(map(np.asarray, found)) if isinstance(found, tuple) else (np.asarray(found),)


def _wide(array: Array) -> Array:
    return np.asarray(array).astype(_wider(np.asarray(array).dtype), copy=False)


def _wider(of: np.dtype[Any]) -> np.dtype[Any]:
    """The widest type of the same kind; bfloat16 is none of numpy's kinds."""
    if of.kind == "c":
        return np.dtype(np.complex128)
    return np.dtype(np.float64) if _is_wide(of) else of


def _is_wide(of: np.dtype[Any]) -> bool:
    return of.kind == "f" or of.name in ("bfloat16",)
