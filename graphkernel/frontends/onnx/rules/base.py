"""What a rule is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.frontends.onnx.types.derived_extents import DerivedExtents
from graphkernel.ops.catalogue import apply, apply_all, function_called, snake_case
from graphkernel.ops.tensor.tensor import Tensor
from kernelgen.tensor.graph import Builder
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators.creation import EXTENT
from kernelgen.tensor.types import Dim, Shape, Sym, dtype

Operand = Any
"""A Tensor, or a numpy array when the value is known at import; operators take both."""


@dataclass(frozen=True)
class Declined:
    """The rule does not apply, and why; the node becomes a generic operator."""

    reason: str


@dataclass(frozen=True)
class OnHost:
    """The node becomes a generic operator, but the shape of its result is known here (and not to ONNX's inference)."""

    shape: Shape
    reason: str
    dtype: str | None = None


@dataclass(frozen=True, eq=False)
class OnnxCall:
    """One ONNX node with its operands. Absent optional operands are None.

    ``extents`` holds, for each operand that is a shape tensor, its content as dims (an object array), else None.
    ``results`` counts results up to the last that is wanted, ``listed`` also those behind it, which are skipped.
    ``builder`` records operators without operands, ``derive`` does arithmetic with extents.
    """

    op_type: str
    opset: int
    operands: tuple[Operand, ...]
    extents: tuple[np.ndarray | None, ...]
    attributes: dict[str, Any]
    results: int
    listed: int
    builder: Builder
    derive: DerivedExtents

    def tensor(self, position: int) -> Tensor:
        """An operand that is recorded, also where it is known: what is drawn for it is drawn in every run."""
        operand = self.operand(position)
        return operand if isinstance(operand, Tensor) else self.constant(operand)

    def constant(self, value: object) -> Tensor:
        """``value`` as a constant that is recorded: what is computed from it is computed in every run."""
        return Tensor(self.builder.constant(np.asarray(value)), self.builder)

    def extent(self, dim: Dim) -> Operand:
        """``dim`` as a scalar of int64."""
        if isinstance(dim, int):
            return np.asarray(dim, np.int64)
        return Tensor(self.builder.emit(EXTENT, value=dim, dst_type="int64"), self.builder)

    def operand(self, position: int) -> Operand:
        """An operand; None when absent."""
        return self.operands[position] if position < len(self.operands) else None

    def has(self, position: int) -> bool:
        """Whether an optional operand is there."""
        return self.operand(position) is not None

    def attribute(self, name: str, default: Any = None) -> Any:  # ONNX attributes have many types
        """An attribute as int, float, text, tuple or array. A default is rounded to float32, as what a file says is."""
        return self.attributes.get(name, float(np.float32(default)) if isinstance(default, float) else default)

    def array(self, position: int) -> np.ndarray | None:
        """An operand's content, when it is known at import."""
        operand = self.operand(position)
        return operand if isinstance(operand, np.ndarray) else None

    def dims(self, position: int) -> Shape | None:
        """An operand's content as dims, symbols included; None when it is not known."""
        extents = self.extents[position] if position < len(self.extents) else None
        if extents is None or not all(isinstance(dim, int | Sym) for dim in extents.flat):
            return None
        return tuple(extents.reshape(-1))

    def ints(self, position: int) -> tuple[int, ...] | None:
        """An operand's content as ints; None when it is not known or symbolic."""
        dims = self.dims(position)
        return None if dims is None else static(dims)

    def axes(self, position: int, since: int) -> tuple[int, ...] | Declined | None:
        """Axes, which are an attribute before opset ``since`` and an operand from it on; None when absent."""
        if "axes" in self.attributes:
            return tuple(self.attributes["axes"])
        if self.opset < since or not self.has(position):
            return None
        found = self.ints(position)
        return Declined("the axes are computed at run time") if found is None else found


Results = Tensor | np.ndarray | Sequence[Any] | Declined | OnHost
Convert = Callable[[OnnxCall], Results]


@dataclass(frozen=True)
class OnnxRule:
    """How one ONNX operator is said in ours; the name of one of another domain than ONNX's is ``domain::name``."""

    name: str
    convert: Convert


def onnx_op(name: str) -> Callable[[Convert], OnnxRule]:
    """Declares the rule of an ONNX operator."""
    return lambda convert: OnnxRule(name, convert)


def imported_as(name: str, operator: Operator) -> OnnxRule:
    """The rule of the ONNX operator ``name`` of another domain, ``"acme::SoftSquare"``: ``operator`` on the same operands.

    Attributes that the operator has here are passed on by their names.
    """

    def convert(call: OnnxCall) -> Results:
        given = {key: value for key, value in call.attributes.items() if key in operator.attribute_names}
        return (
            apply_all(operator, *call.operands, **given)
            if call.listed > 1
            else apply(operator, *call.operands, **given)
        )

    return OnnxRule(name, convert)


def pair_of(call: OnnxCall) -> tuple[Operand, Operand]:
    """Two operands that broadcast as numpy's do; before opset 7 the second began at the axis ``axis`` of the first."""
    first, second = call.operands
    if call.opset >= 7 or "axis" not in call.attributes:
        return first, second
    behind = len(shape_of(first)) - call.attribute("axis") % len(shape_of(first)) - len(shape_of(second))
    rank = len(shape_of(second))
    return first, ops.expand_dims(second, tuple(range(rank, rank + behind))) if behind else second


def same(operator: Operator) -> OnnxRule:
    """The rule of ``operator.onnx``, which takes the same operands there as here; two of them as :func:`pair_of` says."""
    function = function_called(snake_case(operator.name))
    operands_of = pair_of if operator.arity == 2 else attrgetter("operands")
    return OnnxRule(operator.onnx, lambda call: function(*operands_of(call)))


def static(dims: Iterable[Dim]) -> tuple[int, ...] | None:
    """The extents as ints; None when one is symbolic."""
    given = tuple(dims)
    numbers = tuple(dim for dim in given if isinstance(dim, int))
    return numbers if len(numbers) == len(given) else None


def sliced_range(extent: int, start: int, stop: int, step: int) -> tuple[int, int]:
    """(begin, end) of a slice as ONNX cuts it; end is -1 where it runs backwards through element 0, both 0 when empty.

    Unlike numpy's, a start before the first element is cut to the first, whichever way the slice runs.
    """
    last = extent if step > 0 else extent - 1
    begin = min(max(start + extent if start < 0 else start, 0), last)
    end = min(max(stop + extent if stop < 0 else stop, 0 if step > 0 else -1), last)
    return (begin, end) if (end - begin) * step > 0 else (0, 0)


def shape_of(operand: Operand) -> Shape:
    """The extents of a Tensor or array."""
    return tuple(operand.shape)


def rounded_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Narrow floats go through several operators in float32: a square leaves the range of float16 long before its root."""

    def wide(*operands: Operand, **attributes: Any) -> Any:  # a Tensor or array
        own = dtype(operands[0].dtype)
        if not own.is_float or own.bits >= 32:
            return function(*operands, **attributes)
        return ops.cast(function(*(ops.cast(x, dtype("float32")) for x in operands), **attributes), own)

    return wide
