"""The terms that a document of AKG's gives to its outputs, one numpy array of numbers (see ``terms``) for each.

Operators without a meaning in terms are reported, not guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from kernelgen.checker import terms
from kernelgen.checker.algebra import Array, TermAlgebra, Terms, array
from kernelgen.checker.constants import constants_of
from kernelgen.checker.data import Data
from kernelgen.checker.operators import ORDERED, real_value
from kernelgen.checker.pairs import Pair, Value, complex_value, has_terms, is_complex, real_kind
from kernelgen.composite.description import Tensor
from kernelgen.composite.document import IN_PLACE, Document, Operation
from kernelgen.tensor.dtypes import DType


def without_terms(desc: Document) -> str:
    """The first operator that has no meaning in terms; empty when there is none."""
    return next((op.name for op in desc.ops if op.op not in IN_PLACE and not has_terms(op)), "")


def is_ordered(desc: Document) -> bool:
    """Whether an operator asks which number is the greater one, so that numbers have an order."""
    return any(op.name in ORDERED for op in desc.ops)


def described_terms(desc: Document, data: Data) -> tuple[Array, ...]:
    """The terms of every output, then of every updated input, flat. Raises Unknown where ids are computed from data.

    The document has no symbols; ``data`` holds the known inputs.
    """
    algebra, constants = TermAlgebra(is_ordered(desc)), constants_of(desc)
    values: dict[str, Value] = {}
    for position, tensor in enumerate(desc.inputs):
        values[tensor.name] = _given(position, tensor, data.get(position), algebra.ordered)
    for op in desc.ops:
        constant = constants.get(op.out.name) if len(op.outs) == 1 else None
        if constant is None:
            _run(op, values, algebra)
        else:
            values[op.out.name] = _operand(replace(constant, shape=op.out.shape), values)
    results = (*desc.outputs, *(desc.inputs[k] for k in desc.updated_inputs))
    return tuple(_flat(_operand(tensor, values)) for tensor in results)


def _given(position: int, tensor: Tensor, known: tuple[int, ...] | None, ordered: bool) -> Value:
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


def _run(op: Operation, values: dict[str, Value], algebra: TermAlgebra) -> None:
    operands = [_operand(tensor, values) for tensor in op.args]
    if op.op in IN_PLACE:
        values[op.args[0].name] = _described(operands[1], op.args[0], algebra)
        values[op.out.name] = _described(operands[-1], op.out, algebra)
        return
    if any(map(is_complex, (*op.args, *op.outs))):
        found = complex_value(op, operands, algebra)
    else:
        found = real_value(op, [operand for operand in operands if isinstance(operand, Terms)], algebra)
    for tensor, value in zip(op.outs, found, strict=True):
        values[tensor.name] = _described(value, tensor, algebra)


def _operand(tensor: Tensor, values: Mapping[str, Value]) -> Value:
    if tensor.value is None:
        return values[tensor.name]
    kind = real_kind(tensor.dtype)
    whole = Terms(np.full(_sizes(tensor), terms.literal(tensor.value, kind), object), kind)
    return Pair(whole, Terms(np.full(_sizes(tensor), 0, object), kind)) if is_complex(tensor) else whole


def _described(value: Value, tensor: Tensor, algebra: TermAlgebra) -> Value:
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


def _sizes(tensor: Tensor) -> tuple[int, ...]:
    return tuple(int(dim) for dim in tensor.shape)  # pyright: ignore[reportArgumentType]  # specialised
