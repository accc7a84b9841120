"""Runs a description operator by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelgen.composite.bind_sizes import bind
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.specialize import specialize
from kernelgen.errors import ArgumentError, DescError, UnsupportedError
from kernelgen.semantics.algebra import Array, ArrayAlgebra
from kernelgen.semantics.table import meaning_of
from kernelgen.tensor.graph import Node, Value


@dataclass(frozen=True)
class Reference:
    """``reference(*inputs) -> tuple of outputs``, called like a Kernel.

    Inputs are arrays of the described data types; sizes of symbols come from their shapes. Inputs that the description
    assigns to (``desc.updated_inputs``) are changed in place after everything has been computed. Raises ArgumentError for
    arrays that do not fit, UnsupportedError for an operator without meaning here.
    """

    desc: KernelDesc

    def __call__(self, *inputs: Any, out: Sequence[Array] | None = None) -> tuple[Array, ...]:
        """Computes the outputs; ``out`` gives arrays to write them to."""
        if len(inputs) != len(self.desc.inputs):
            raise ArgumentError(f"{self.desc.name} takes {len(self.desc.inputs)} arrays, {len(inputs)} were given")
        arrays = [np.asarray(array) for array in inputs]
        desc = specialize(self.desc, bind(self.desc, [array.shape for array in arrays]))
        values = _computed(desc, arrays)
        outputs = tuple(_operand(value, values).copy() for value in desc.results)
        updates = {k: values[value].copy() for k, value in desc.updates.items()}  # values may be views of inputs
        for position, value in updates.items():
            _overwrite(inputs[position], value)
        if out is None:
            return outputs
        if isinstance(out, np.ndarray) or len(out) != len(outputs):
            raise ArgumentError(f"out= takes a tuple of {len(outputs)} arrays, one for each output")
        for target, found in zip(out, outputs, strict=True):
            _overwrite(target, found)
        return tuple(out)


def reference(desc: KernelDesc) -> Reference:
    """The numpy meaning of a description as a callable. Raises UnsupportedError for an operator that has none."""
    for node in desc.operators:
        if meaning_of(node) is None:
            raise UnsupportedError("unsupported-op", f"operator {node.op.name!r} has no meaning in numpy yet")
    return Reference(desc)


def _computed(desc: KernelDesc, inputs: Sequence[Array]) -> dict[Value, Array]:
    """Every output and every input that is updated; other values are dropped after their last use."""
    values: dict[Value, Array] = {}
    for value, array in zip(desc.graph.inputs, inputs, strict=True):
        if array.dtype != value.dtype.numpy:
            raise ArgumentError(f"{value.name} has dtype {array.dtype}, expected {value.dtype.name}")
        values[value] = array.reshape(_sizes(value))
    last_use = {v: position for position, node in enumerate(desc.operators) for v in (*node.args, *node.outs)}
    kept = set(desc.graph.outputs)
    with np.errstate(all="ignore"):
        for position, node in enumerate(desc.operators):
            _run(node, values)
            for value in {*node.args, *node.outs} - kept:
                if last_use[value] == position:
                    values.pop(value, None)
    return values


def _run(node: Node, values: dict[Value, Array]) -> None:
    meaning = meaning_of(node)
    assert meaning is not None, f"{node.op.name} has a meaning: reference() asked"
    found = meaning([_operand(value, values) for value in node.args], node)
    results = found if isinstance(found, tuple) else (found,)
    for value, result in zip(node.outs, results, strict=True):
        array = np.asarray(result)  # numpy makes a number of an array of rank 0, and its float64 is one of Python's
        values[value] = shaped(ArrayAlgebra().cast(array, value.dtype), value)


def _operand(value: Value, values: Mapping[Value, Array]) -> Array:
    if value.constant is None:
        return values[value]
    return value.constant.reshape(_sizes(value))


def shaped(value: Array, tensor: Value) -> Array:
    """The value in the described shape: reshaped when only extents of 1 differ, else broadcast less surplus leading dims.

    Raises DescError for a value that fits neither way.
    """
    shape = _sizes(tensor)
    if value.shape == shape:
        return value
    if [d for d in value.shape if d != 1] == [d for d in shape if d != 1]:
        return value.reshape(shape)
    try:
        return np.broadcast_to(value.reshape(value.shape[max(value.ndim - len(shape), 0) :]), shape)
    except ValueError:
        raise DescError(f"{tensor.name!r} has shape {list(value.shape)}, described as {list(shape)}") from None


def _sizes(tensor: Value) -> tuple[int, ...]:
    if any(not isinstance(dim, int) for dim in tensor.shape):
        raise ArgumentError(f"the shape {list(tensor.shape)} of {tensor.name!r} holds a symbol that no input binds")
    return tuple(dim for dim in tensor.shape if isinstance(dim, int))


def _overwrite(target: Any, value: Array) -> None:  # the caller's array
    if not isinstance(target, np.ndarray) or not target.flags.writeable:
        raise ArgumentError("arrays that are written must be writeable numpy arrays")
    target[...] = value.reshape(target.shape)
