"""A description on intervals, operator by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kernelgen.composite.bind_sizes import bind, specialize
from kernelgen.composite.description import IN_PLACE_OPS, KernelDesc, OpDesc, TensorDesc
from kernelgen.enclosure.arithmetic import square
from kernelgen.enclosure.conversions import converted
from kernelgen.enclosure.declared import by_scalar_rule
from kernelgen.enclosure.interval import Array, Interval
from kernelgen.enclosure.moves import moved
from kernelgen.enclosure.table import RULES
from kernelgen.errors import UnsupportedError
from kernelgen.semantics.reference import shaped
from kernelgen.tensor.dtypes import Category, DType
from kernelgen.tensor.operators.elemwise import MUL


def enclose(desc: KernelDesc, inputs: Sequence[Array]) -> list[Interval]:
    """Ranges of the outputs, then of the inputs that are updated in place, for these inputs.

    Raises UnsupportedError for an operator without a rule.
    """
    desc = specialize(desc, bind(desc, [array.shape for array in inputs]))
    values = enclosed_values(desc, inputs, keep_all=False)
    return [values[t.name] for t in desc.outputs] + [values[desc.inputs[i].name] for i in desc.updated_inputs]


def enclosed_values(desc: KernelDesc, inputs: Sequence[Array], keep_all: bool = True) -> dict[str, Interval]:
    """The range of every tensor of ``desc`` by its name, for these ``inputs``; a description without symbols.

    Without ``keep_all`` a value that nobody reads any more is dropped.
    """
    values = {t.name: exactly(array, t) for t, array in zip(desc.inputs, inputs, strict=True)}
    last_use = {t.name: place for place, op in enumerate(desc.ops) for t in (*op.inputs, *op.outputs)}
    kept = {t.name for t in desc.outputs} | {desc.inputs[i].name for i in desc.updated_inputs}
    with np.errstate(all="ignore"):
        for place, op in enumerate(desc.ops):
            run(op, values)
            for name in {t.name for t in (*op.inputs, *op.outputs)} - kept:
                if not keep_all and last_use[name] == place:
                    values.pop(name, None)
    return values


def exactly(array: Array, tensor: TensorDesc) -> Interval:
    """The numbers of an array, in the described shape."""
    return Interval.exact(_wide(np.asarray(array), tensor.dtype).reshape(sizes(tensor)))


def sizes(tensor: TensorDesc) -> tuple[int, ...]:
    """The extents of a tensor without symbols."""
    return tuple(int(dim) for dim in tensor.shape)  # pyright: ignore[reportArgumentType]  # specialised


def _wide(array: Array, kind: DType) -> Array:
    if kind.is_float:
        return array.astype(np.float64)
    return array.astype(np.complex128) if kind.category is Category.COMPLEX else array


def run(op: OpDesc, values: dict[str, Interval]) -> None:
    """Adds the ranges of an operator's results; in-place operators change those of their destination."""
    operands = [_operand(tensor, values) for tensor in op.inputs]
    if op.name in IN_PLACE_OPS:
        destination = op.inputs[0]
        values[destination.name] = _fitted(operands[1], op.inputs[1:2], destination)
        values[op.output.name] = _fitted(operands[-1], op.inputs[-1:], op.output)
        return
    for tensor, found in zip(op.outputs, _results(op, operands), strict=True):
        values[tensor.name] = _fitted(found, op.inputs, tensor)


def _results(op: OpDesc, operands: Sequence[Interval]) -> tuple[Interval, ...]:
    if op.name == MUL.name and op.inputs[0].name == op.inputs[1].name and op.inputs[0].dtype.is_float:
        return (square(operands[0], op.inputs[0].dtype),)
    if op.declared is not None and op.declared.scalar is not None:
        return (by_scalar_rule(op, operands),)
    rule = moved if op.declared is not None and op.declared.traits.moves else RULES.get(op.name)
    if rule is None:
        raise UnsupportedError("unsupported-op", f"operator {op.name!r} has no error bound")
    found = rule(operands, op)
    return found if isinstance(found, tuple) else (found,)


def _operand(tensor: TensorDesc, values: Mapping[str, Interval]) -> Interval:
    if tensor.value is None:
        return values[tensor.name]
    number = _wide(np.asarray(tensor.value, tensor.dtype.numpy), tensor.dtype)
    return Interval.exact(np.broadcast_to(number, sizes(tensor)))


def _fitted(value: Interval, operands: Sequence[TensorDesc], tensor: TensorDesc) -> Interval:
    """The value in the data type and shape of a tensor; operators of its own data type have rounded to it already."""
    found = converted(value, tensor.dtype, any(operand.dtype != tensor.dtype for operand in operands))
    return found.map(lambda bound: shaped(np.asarray(bound), tensor))
