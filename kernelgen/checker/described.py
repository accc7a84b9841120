"""The terms that a description gives to its outputs, one numpy array of numbers (see ``terms``) for each.

Operators without a meaning in terms are reported, not guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kernelgen.checker import terms
from kernelgen.checker.algebra import Array, TermAlgebra, Terms, array
from kernelgen.checker.constants import constants_of
from kernelgen.checker.data import Data, known_data
from kernelgen.checker.operators import ORDERED, real_value
from kernelgen.checker.pairs import Pair, Value, complex_value, has_terms, is_complex, real_kind
from kernelgen.composite.bind_sizes import specialize
from kernelgen.composite.description import IN_PLACE_OPS, KernelDesc, OpDesc, TensorDesc
from kernelgen.tensor.dtypes import DType


def without_terms(desc: KernelDesc) -> str:
    """The first operator that has no meaning in terms; empty when there is none."""
    return next((op.name for op in desc.ops if op.name not in IN_PLACE_OPS and not has_terms(op)), "")


def is_ordered(desc: KernelDesc) -> bool:
    """Whether an operator asks which number is the greater one, so that numbers have an order."""
    return any(op.name in ORDERED for op in desc.ops)


def described_terms(desc: KernelDesc, sizes: Mapping[str, int], data: Data | None = None) -> tuple[Array, ...]:
    """The terms of every output, then of every updated input, flat. Raises Unknown where ids are computed from data.

    ``data`` holds the known inputs, else it is drawn.
    """
    desc = specialize(desc, sizes)
    algebra, constants = TermAlgebra(is_ordered(desc)), constants_of(desc)
    data = known_data(desc) if data is None else data
    values: dict[str, Value] = {}
    for position, tensor in enumerate(desc.inputs):
        values[tensor.name] = _given(position, tensor, data.get(position), algebra.ordered)
    for op in desc.ops:
        constant = constants.get(op.output.name) if len(op.outputs) == 1 else None
        if constant is None:
            _run(op, values, algebra)
        else:
            values[op.output.name] = _operand(replace(constant, shape=op.output.shape), values)
    results = (*desc.outputs, *(desc.inputs[k] for k in desc.updated_inputs))
    return tuple(_flat(_operand(tensor, values)) for tensor in results)


def _given(position: int, tensor: TensorDesc, known: tuple[int, ...] | None, ordered: bool) -> Value:
    shape, kind = _sizes(tensor), real_kind(tensor.dtype)
    count = int(np.prod(shape)) * (2 if is_complex(tensor) else 1)
    numbers = known or [terms.element(position, offset, ordered) for offset in range(count)]
    if is_complex(tensor):
        return Pair(Terms(array(numbers[::2], shape), kind), Terms(array(numbers[1::2], shape), kind))
    return Terms(array(numbers, shape), kind)


def _flat(value: Value) -> Array:
    if isinstance(value, Terms):
        return value.numbers.reshape(-1)
    return np.stack([value.real.numbers.reshape(-1), value.imaginary.numbers.reshape(-1)], -1).reshape(-1)


def _run(op: OpDesc, values: dict[str, Value], algebra: TermAlgebra) -> None:
    operands = [_operand(tensor, values) for tensor in op.inputs]
    if op.name in IN_PLACE_OPS:
        values[op.inputs[0].name] = _described(operands[1], op.inputs[0], algebra)
        values[op.output.name] = _described(operands[-1], op.output, algebra)
        return
    if any(map(is_complex, (*op.inputs, *op.outputs))):
        found = complex_value(op, operands, algebra)
    else:
        found = real_value(op, [operand for operand in operands if isinstance(operand, Terms)], algebra)
    for tensor, value in zip(op.outputs, found, strict=True):
        values[tensor.name] = _described(value, tensor, algebra)


def _operand(tensor: TensorDesc, values: Mapping[str, Value]) -> Value:
    if tensor.value is None:
        return values[tensor.name]
    kind = real_kind(tensor.dtype)
    whole = Terms(np.full(_sizes(tensor), terms.literal(tensor.value, kind), object), kind)
    return Pair(whole, Terms(np.full(_sizes(tensor), 0, object), kind)) if is_complex(tensor) else whole


def _described(value: Value, tensor: TensorDesc, algebra: TermAlgebra) -> Value:
    """In the described data type and shape: a complex number where that is real is its real part, and the other way."""
    shape, kind = _sizes(tensor), real_kind(tensor.dtype)
    if isinstance(value, Pair) and is_complex(tensor):
        return value.each(lambda part: _shaped(part, shape, kind, algebra))
    if isinstance(value, Pair):
        return _shaped(value.real, shape, kind, algebra)
    found = _shaped(value, shape, kind, algebra)
    return Pair(found, Terms(np.full(shape, 0, object), kind)) if is_complex(tensor) else found


def _shaped(value: Terms, shape: tuple[int, ...], kind: DType, algebra: TermAlgebra) -> Terms:
    """Reshaped when only extents of 1 differ, else broadcast."""
    value = algebra.cast(value, kind)
    numbers = value.numbers
    if [d for d in numbers.shape if d != 1] == [d for d in shape if d != 1]:
        return Terms(numbers.reshape(shape), value.kind)
    kept = numbers.shape[max(numbers.ndim - len(shape), 0) :]
    return Terms(np.broadcast_to(numbers.reshape(kept), shape), value.kind)


def _sizes(tensor: TensorDesc) -> tuple[int, ...]:
    return tuple(int(dim) for dim in tensor.shape)  # pyright: ignore[reportArgumentType]  # specialised
