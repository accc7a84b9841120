"""ONNX's types as ours, and ours as ONNX's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphkernel.errors import FrontendError
from graphkernel.ops.library.host_values import whole_type
from kernelgen.system.limits import LIMITS
from kernelgen.tensor.types import Dim, DType, TensorType, dtype, is_whole, parse_dim

if TYPE_CHECKING:
    from onnx import TypeProto

Called = Callable[[Any, int], Dim]
"""From an extent (an onnx message) and its axis to a dim."""

PartialShape = tuple[Dim | None, ...]
"""Extents; None for one that is not known."""

UNKNOWN = -1
"""How some exporters write an extent without a name."""


def data_type(number: int, where: str) -> DType:
    """The data type that ONNX counts as ``number``.

    Raises ``FrontendError``, which says ``where``, if there is none.
    """
    from onnx import TensorProto, helper

    try:
        return dtype(helper.tensor_dtype_to_np_dtype(number))
    except (ValueError, KeyError):
        known = TensorProto.DataType.Name(number) if number in TensorProto.DataType.values() else str(number)
        raise FrontendError(f"{where}: data type {known.lower()} is not supported") from None


def tensor_type(of: TypeProto, where: str, called: Called | None = None) -> TensorType:
    """The type of a value; one that is no tensor, or whose rank is not known, is opaque.

    ``called`` gives an extent that is no number, with its axis, a symbol.

    Raises FrontendError for more dims than tensors have here.
    """
    tensor = of.tensor_type
    if not of.HasField("tensor_type") or not tensor.HasField("shape"):
        return whole_type(of)
    own = data_type(tensor.elem_type, where)
    if len(tensor.shape.dim) > LIMITS.rank:
        raise FrontendError(f"{where}: a tensor of {len(tensor.shape.dim)} dims; at most {LIMITS.rank} are read")
    return TensorType(tuple(_dim(dim, axis, where, called) for axis, dim in enumerate(tensor.shape.dim)), own)


def _dim(dim: Any, axis: int, where: str, called: Called | None) -> Dim:  # an onnx message
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return dim.dim_value
    if called is not None and (dim.dim_value == UNKNOWN or not dim.HasField("dim_value")):
        return called(dim, axis)
    if dim.dim_value < 0:
        raise FrontendError(f"{where}, axis {axis}: the extent {dim.dim_value} is negative")
    if not dim.dim_param:
        raise FrontendError(f"{where}, axis {axis}: the extent depends on data")
    return parse_dim(dim.dim_param)


def is_complete(of: TypeProto) -> bool:
    """Whether each extent is a number or has a name."""
    dims = of.tensor_type.shape.dim
    return of.tensor_type.HasField("shape") and all(dim.HasField("dim_value") or dim.dim_param for dim in dims)


def complete(of: TypeProto, shape: PartialShape) -> None:
    """Writes extents where the type has none; None stands for one that is not known."""
    if not of.tensor_type.HasField("shape"):
        of.tensor_type.shape.SetInParent()
        for _ in shape:
            of.tensor_type.shape.dim.add()
    for dim, known in zip(of.tensor_type.shape.dim, shape, strict=True):
        if known is not None and not dim.HasField("dim_value") and not dim.dim_param:
            _write(dim, known)


def _write(dim: Any, known: Dim) -> None:  # an onnx message
    if isinstance(known, int):
        dim.dim_value = known
    else:
        dim.dim_param = str(known)


@dataclass(frozen=True)
class Disagreement:
    """How a value differs from what is declared. Another data type is wrong; another shape onnxruntime takes no notice of."""

    text: str
    is_wrong: bool


def disagreement(declared: TypeProto, found: Any) -> Disagreement | None:  # a Tensor or array
    """How a value differs from the type that the model declares for it; None when both can be true."""
    if not declared.HasField("tensor_type") or not declared.tensor_type.elem_type:
        return None
    tensor, own = declared.tensor_type, TensorType(tuple(found.shape), dtype(found.dtype))
    stated = data_type(tensor.elem_type, "")
    if is_whole(own.dtype):
        return None
    if own.dtype != stated:
        return Disagreement(f"{own}, declared as {stated}", is_wrong=True)
    if not tensor.HasField("shape"):
        return None
    dims = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in tensor.shape.dim]
    fixed = [(mine, dim) for mine, dim in zip(own.shape, dims, strict=False) if {type(mine), type(dim)} == {int}]
    if len(dims) == own.rank and all(mine == dim for mine, dim in fixed):
        return None
    return Disagreement(f"{own}, declared as {stated}[{', '.join(map(str, dims))}]", is_wrong=False)
