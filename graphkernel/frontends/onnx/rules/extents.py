"""What is known of shape tensors: their content as dims, symbols included, carried through the usual arithmetic.

``Shape -> Gather -> Mul -> Concat -> Reshape`` is how models say "flatten the last two axes". Content is an object
array of ints and symbols; numpy does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import prod

import numpy as np

from graphkernel.frontends.onnx.rules import float_extents
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, shape_of, sliced_range
from graphkernel.frontends.onnx.types.derived_extents import DependsOnDataError, DerivedExtents
from kernelgen.system.bounded_io import UNFIT
from kernelgen.tensor.operators.indexing import GATHER
from kernelgen.tensor.operators.shape import TRANSPOSE
from kernelgen.tensor.types import Dim, Sym, divide_exactly, product

Extents = np.ndarray
MOST_ELEMENTS = 64  # shape tensors are small


def known_extents(call: OnnxCall) -> Extents | None:
    """The content of the node's result; None when it does not follow from what is known, or is more than a shape holds."""
    try:
        found = _content(call)
    except (
        DependsOnDataError,
        *UNFIT,
    ):  # what is wrong with the node itself its rule tells; a symbol's power may be too high
        return None
    return found if found is None or _is_shape(found) else None


def _is_shape(content: Extents) -> bool:
    return content.size <= MOST_ELEMENTS and all(
        isinstance(dim, Sym | float_extents.Fraction) or -(2**63) <= dim < 2**63 for dim in content.flat
    )


def _content(call: OnnxCall) -> Extents | None:
    if call.op_type in FROM_SHAPE:
        return FROM_SHAPE[call.op_type](call)
    if call.op_type in ("Mul", "Div") and any(map(float_extents.has_fractions, call.extents)):
        arrays = [call.array(position) for position in range(len(call.operands))]
        return float_extents.scaled(call.extents, arrays, divides=call.op_type == "Div")
    rule = FROM_CONTENT.get(call.op_type)
    if rule is None or any(content is None for content in call.extents):
        return None
    return rule(call, *(content for content in call.extents if content is not None))


def extents_of_array(array: np.ndarray) -> Extents | None:
    """The content of a small constant of integers or booleans."""
    if array.dtype.kind not in "iub" or array.size > MOST_ELEMENTS:
        return None
    return as_extents(array.tolist(), array.shape)


def as_extents(dims: object, shape: tuple[int, ...]) -> Extents:
    """An object array; numpy is kept from looking into symbols."""
    content = np.empty(shape, object)
    flat = np.ravel(np.asarray(dims, object)) if not isinstance(dims, tuple) else dims
    for position, dim in enumerate(flat):
        content.flat[position] = dim
    return content


def _shape(call: OnnxCall) -> Extents:
    dims = shape_of(call.operands[0])[call.attribute("start", 0) : call.attribute("end")]
    return as_extents(tuple(dims), (len(dims),))


def _size(call: OnnxCall) -> Extents:
    return as_extents((product(shape_of(call.operands[0])),), ())


def _gather(call: OnnxCall, content: Extents, indices: Extents) -> Extents:
    return np.asarray(np.take(content, indices.astype(np.int64), call.attribute("axis", 0)), object)


def _scattered(call: OnnxCall, content: Extents, indices: Extents, updates: Extents) -> Extents | None:
    """Some elements replaced: so exporters write the shape of indices that are repeated along all axes but one."""
    if content.ndim != 1 or call.attribute("reduction", "none") != "none":
        return None
    found = content.copy()
    found[indices.astype(np.int64)] = updates
    return found


def _slice(call: OnnxCall, content: Extents, *unused: Extents) -> Extents | None:
    starts = call.attribute("starts") or call.ints(1)
    ends = call.attribute("ends") or call.ints(2)
    axes, steps = call.attribute("axes") or call.ints(3), call.ints(4)
    if starts is None or ends is None:
        return None
    for axis, start, end, step in zip(
        axes or range(len(starts)), starts, ends, steps or (1,) * len(starts), strict=True
    ):
        begin, stop = sliced_range(content.shape[axis], start, end, step)
        content = np.take(content, np.arange(begin, stop, step), axis)
    return content


def _transpose(call: OnnxCall, content: Extents) -> Extents:
    return content.transpose(call.attribute("perm"))


def _filled(call: OnnxCall, content: Extents) -> Extents | None:
    """Of whole numbers, and no more than a shape has."""
    shape, value = call.ints(0), np.asarray(call.attribute("value", np.zeros(1, np.float32)))
    if shape is None or value.dtype.kind not in "iub" or prod(shape) > MOST_ELEMENTS:
        return None
    return as_extents((value.item(),) * prod(shape), shape)


def _expand_dims(call: OnnxCall, content: Extents, *unused: Extents) -> Extents | None:
    axes = call.axes(1, since=13)
    return np.expand_dims(content, axes) if isinstance(axes, tuple) else None


def _squeeze(call: OnnxCall, content: Extents, *unused: Extents) -> Extents | None:
    axes = call.axes(1, since=13)
    return np.squeeze(content, axes) if axes is None or isinstance(axes, tuple) else None


def _reshape(call: OnnxCall, content: Extents, *unused: Extents) -> Extents | None:
    target = call.ints(1)
    return None if target is None or 0 in target else content.reshape(target)


def _cast(call: OnnxCall, content: Extents) -> Extents | None:
    """To the integer types that say shapes, which a symbol is taken to fit; to floats and back."""
    from onnx import TensorProto

    wanted, is_float = call.attribute("to"), float_extents.has_fractions(content)
    if wanted in (TensorProto.FLOAT, TensorProto.DOUBLE):
        return content if is_float else float_extents.as_fractions(content)
    if wanted not in (TensorProto.INT64, TensorProto.INT32):
        return None
    return float_extents.as_extents(call.derive, content) if is_float else content


def _each(call: OnnxCall, function: Callable[[Dim, Dim], Dim | None], a: Extents, b: Extents) -> Extents | None:
    """A function of each pair of elements; None where it knows one not."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    pairs = zip(np.broadcast_to(a, shape).flat, np.broadcast_to(b, shape).flat, strict=True)
    found = tuple(function(x, y) for x, y in pairs)
    return None if any(element is None for element in found) else as_extents(found, shape)


def _divide(call: OnnxCall, dividend: Extents, divisor: Extents) -> Extents | None:
    return _each(call, partial(_quotient, call.derive), dividend, divisor)


def _quotient(derive: DerivedExtents, dividend: Dim, divisor: Dim) -> Dim | None:
    """Rounded towards zero; of symbols only where that is downwards."""
    if isinstance(dividend, int) and isinstance(divisor, int):
        return None if divisor == 0 else abs(dividend) // abs(divisor) * (1 if (dividend < 0) == (divisor < 0) else -1)
    exact = divide_exactly(dividend, divisor)
    if exact is not None or not (derive.is_nonnegative(dividend) and derive.is_nonnegative(divisor - 1)):
        return exact
    return derive.floor_div(dividend, divisor)


def _remainder(call: OnnxCall, dividend: Extents, divisor: Extents) -> Extents | None:
    def of(a: Dim, b: Dim) -> Dim | None:
        whole = call.derive.floor_div(a, b) if call.derive.is_nonnegative(b - 1) else None
        return None if whole is None else a - whole * b

    return None if call.attribute("fmod", 0) else _each(call, of, dividend, divisor)


def _extreme(name: str) -> Callable[..., Extents | None]:
    """The least or the greatest of any number of operands."""

    def convert(call: OnnxCall, *operands: Extents) -> Extents | None:
        function = getattr(call.derive, name)
        found: Extents | None = operands[0]
        for other in operands[1:]:
            found = None if found is None else _each(call, function, found, other)
        return found

    return convert


def _equal(call: OnnxCall, a: Extents, b: Extents) -> Extents | None:
    return _each(call, _are_equal, a, b)


def _are_equal(x: Dim, y: Dim) -> bool | None:
    """Whether two dims are equal for all symbols, which are at least 0; None when that depends on them."""
    apart = x - y
    if isinstance(apart, int):
        return apart == 0
    return False if _is_positive(apart) or _is_positive(apart * -1) else None


def _is_positive(dim: Dim) -> bool:
    """Whether it is one and something more."""
    return isinstance(dim, Sym) and all(factor > 0 for _, factor in dim.terms) and dim.terms[-1][0] == ()


def _where(call: OnnxCall, condition: Extents, a: Extents, b: Extents) -> Extents:
    return np.asarray(np.where(condition.astype(bool), a, b), object)


def _product(call: OnnxCall, content: Extents, *unused: Extents) -> Extents | None:
    axes = call.axes(1, since=18)
    if isinstance(axes, Declined) or (not axes and call.attribute("noop_with_empty_axes", 0)):
        return None
    return np.asarray(np.multiply.reduce(content, axes or None, keepdims=bool(call.attribute("keepdims", 1))), object)


def _same(call: OnnxCall, content: Extents) -> Extents:
    return content


FROM_SHAPE: Mapping[str, Callable[[OnnxCall], Extents]] = {"Shape": _shape, "Size": _size}
FROM_CONTENT: Mapping[str, Callable[..., Extents | None]] = {
    "Identity": _same, "Cast": _cast, GATHER.onnx: _gather, "ScatterElements": _scattered, "Slice": _slice,
    "Unsqueeze": _expand_dims, "Squeeze": _squeeze,
    "Reshape": _reshape, TRANSPOSE.onnx: _transpose, "ConstantOfShape": _filled,
    "Div": _divide, "Equal": _equal, "Where": _where, "ReduceProd": _product,
    "Neg": lambda call, a: np.asarray(-a, object), "Mod": _remainder, "Min": _extreme("least"), "Max": _extreme("greatest"),
    "Concat": lambda call, *parts: np.concatenate(parts, call.attribute("axis")),
    "Add": lambda call, a, b: np.asarray(a + b, object),
    "Sub": lambda call, a, b: np.asarray(a - b, object),
    "Mul": lambda call, a, b: np.asarray(a * b, object),
    "Floor": lambda call, a: float_extents.rounded(call.derive, a),
    "Ceil": lambda call, a: float_extents.rounded(call.derive, a, up=True),
}  # fmt: skip
