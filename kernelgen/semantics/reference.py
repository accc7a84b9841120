"""Runs a description operator by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelgen.composite.bind_sizes import bind, specialize
from kernelgen.composite.description import IN_PLACE_OPS, KernelDesc, OpDesc, TensorDesc
from kernelgen.errors import ArgumentError, DescError, UnsupportedError
from kernelgen.semantics.algebra import Array, ArrayAlgebra
from kernelgen.semantics.table import meaning_of


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
        outputs = tuple(shaped(values[t.name], t).copy() for t in desc.outputs)
        updates = {k: values[desc.inputs[k].name].copy() for k in desc.updated_inputs}  # values may be views of inputs
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
    for op in desc.ops:
        if op.name not in IN_PLACE_OPS and meaning_of(op) is None:
            raise UnsupportedError("unsupported-op", f"operator {op.name!r} has no meaning in numpy yet")
    return Reference(desc)


def _computed(desc: KernelDesc, inputs: Sequence[Array]) -> dict[str, Array]:
    """The value of every output and updated input; other values are dropped after their last use."""
    values: dict[str, Array] = {}
    for tensor, array in zip(desc.inputs, inputs, strict=True):
        if array.dtype != tensor.dtype.numpy:
            raise ArgumentError(f"{tensor.name} has dtype {array.dtype}, expected {tensor.dtype.name}")
        values[tensor.name] = array.reshape(_sizes(tensor))
    last_use = {t.name: position for position, op in enumerate(desc.ops) for t in (*op.inputs, *op.outputs)}
    kept = {t.name for t in desc.outputs} | {desc.inputs[i].name for i in desc.updated_inputs}
    with np.errstate(all="ignore"):
        for position, op in enumerate(desc.ops):
            _run(op, values)
            for name in {t.name for t in (*op.inputs, *op.outputs)} - kept:
                if last_use[name] == position:
                    values.pop(name, None)
    return values


def _run(op: OpDesc, values: dict[str, Array]) -> None:
    operands = [_operand(tensor, values) for tensor in op.inputs]
    if op.name in IN_PLACE_OPS:
        _assign(op, operands, values)
        return
    meaning = meaning_of(op)
    assert meaning is not None, f"{op.name} has a meaning: reference() asked"
    found = meaning(operands, op)
    results = found if isinstance(found, tuple) else (found,)
    for tensor, result in zip(op.outputs, results, strict=True):
        array = np.asarray(result)  # numpy makes a number of an array of rank 0, and its float64 is one of Python's
        values[tensor.name] = shaped(ArrayAlgebra().cast(array, tensor.dtype), tensor)


def _assign(op: OpDesc, operands: Sequence[Array], values: dict[str, Array]) -> None:
    """Later readers of the destination see the new value; the result is operand 1 (Assign) or 2 (InplaceAssign)."""
    destination = op.inputs[0]
    fresh = ArrayAlgebra().cast(operands[1], destination.dtype)
    values[destination.name] = shaped(fresh, destination)
    values[op.output.name] = shaped(ArrayAlgebra().cast(operands[-1], op.output.dtype), op.output)


def _operand(tensor: TensorDesc, values: Mapping[str, Array]) -> Array:
    if tensor.value is None:
        return values[tensor.name]
    return np.full(_sizes(tensor), tensor.value, tensor.dtype.numpy)


def shaped(value: Array, tensor: TensorDesc) -> Array:
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


def _sizes(tensor: TensorDesc) -> tuple[int, ...]:
    if any(not isinstance(dim, int) for dim in tensor.shape):
        raise ArgumentError(f"the shape {list(tensor.shape)} of {tensor.name!r} holds a symbol that no input binds")
    return tuple(dim for dim in tensor.shape if isinstance(dim, int))


def _overwrite(target: Any, value: Array) -> None:  # the caller's array
    if not isinstance(target, np.ndarray) or not target.flags.writeable:
        raise ArgumentError("arrays that are written must be writeable numpy arrays")
    target[...] = value.reshape(target.shape)
