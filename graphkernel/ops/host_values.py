"""What operators of a library take and give beside arrays of numbers: texts, lists of tensors, tensors of any rank.

Onnxruntime takes numbers that numpy itself does not know (int4, float8, bfloat16) as float32, which holds them all; its
models cast them at their border.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphkernel.ir.boxes import Array, boxed, unboxed
from graphkernel.ir.types import Dim, DType, TensorType, dtype, is_whole

if TYPE_CHECKING:
    from onnx import NodeProto, TypeProto

CARRIER = np.dtype(np.float32)
ELEMENTS: Mapping[str, tuple[int, str]] = {
    "float32": (1, "float"), "uint8": (2, ""), "int8": (3, ""), "uint16": (4, ""), "int16": (5, ""), "int32": (6, ""),
    "int64": (7, ""), "string": (8, ""), "bool": (9, ""), "float16": (10, ""), "float64": (11, "double"), "uint32": (12, ""),
    "uint64": (13, ""), "complex64": (14, ""), "complex128": (15, ""), "bfloat16": (16, ""),
    "float8_e4m3fn": (17, "float8e4m3fn"), "float8_e4m3fnuz": (18, "float8e4m3fnuz"), "float8_e5m2": (19, "float8e5m2"),
    "float8_e5m2fnuz": (20, "float8e5m2fnuz"), "uint4": (21, ""), "int4": (22, ""), "float4_e2m1fn": (23, "float4e2m1"),
    "float8_e8m0fnu": (24, "float8e8m0"), "uint2": (25, ""), "int2": (26, ""),
}  # fmt: skip
"""ONNX's number of each data type, and its name where it is not ours: executables of packages do without onnx."""
OURS = {theirs or own: own for own, (_, theirs) in ELEMENTS.items()}
CARRIED = frozenset(name for name, (number, _) in ELEMENTS.items() if number >= ELEMENTS["bfloat16"][0])
TENSOR = "tensor("


def is_carried(of: DType) -> bool:
    """Whether onnxruntime's arrays have no such elements, so that others carry them."""
    return _element(of) in CARRIED


def for_session(array: Array, of: DType) -> Any:  # what onnxruntime's run takes
    """What a session is given for an operand."""
    value = unboxed(array, of)
    return np.asarray(value).astype(CARRIER) if is_carried(of) else value


def from_session(value: Any, of: DType) -> Array:  # what onnxruntime's run gives
    """The array in a slot for a result of a session, or of onnx's evaluator."""
    if is_carried(of):
        value = np.asarray(value).astype(dtype(_element(of)).numpy)
    return boxed(value) if is_whole(of) else np.asarray(value, of.numpy if of.is_opaque else None)


def _element(of: DType) -> str:
    """What the elements of tensors are called here; empty where values are no tensors."""
    if not is_whole(of):
        return of.name
    return OURS.get(of.name[len(TENSOR) : -1], "") if of.name.startswith(TENSOR) else ""


def element_number(of: DType) -> int | None:
    """ONNX's number of the elements of tensors of this data type; None where values are no tensors."""
    return ELEMENTS[_element(of)][0] if _element(of) else None


def type_proto(of: TensorType, shape: Sequence[Dim | None] | None = None) -> TypeProto:
    """ONNX's message for a type; ``shape`` says other extents than its own."""
    from onnx import helper

    if is_whole(of.dtype):
        return proto_of_text(of.dtype.name)
    dims = [dim if isinstance(dim, int) or dim is None else str(dim) for dim in (of.shape if shape is None else shape)]
    return helper.make_tensor_type_proto(element_number(of.dtype) or 0, dims)


def whole_type(of: TypeProto) -> TensorType:
    """The type of a value with no shape that is known; ``ValueError`` where the message says no type."""
    return TensorType((), dtype(_text(of)))


def _text(of: TypeProto) -> str:
    from onnx import TensorProto

    kind = of.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        return f"{kind.removesuffix('_type')}({TensorProto.DataType.Name(getattr(of, kind).elem_type).lower()})"
    if kind == "sequence_type":
        return f"seq({_text(of.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({_text(of.optional_type.elem_type)})"
    if kind == "map_type":
        key = TensorProto.DataType.Name(of.map_type.key_type).lower()
        return f"map({key},{_text(of.map_type.value_type)})"
    raise ValueError("a value whose type is not said")


def proto_of_text(text: str) -> TypeProto:
    """ONNX's message for a type with no shape: ``seq(tensor(float))``."""
    from onnx import TensorProto, TypeProto, helper

    kind, _, rest = text.partition("(")
    inner = rest[:-1]
    if kind in ("tensor", "sparse_tensor"):
        number = TensorProto.DataType.Value(inner.upper())
        make = helper.make_tensor_type_proto if kind == "tensor" else helper.make_sparse_tensor_type_proto
        return make(number, None)
    if kind == "seq":
        return helper.make_sequence_type_proto(proto_of_text(inner))
    if kind == "optional":
        return helper.make_optional_type_proto(proto_of_text(inner))
    key, _, value = inner.partition(",")
    made = TypeProto()
    made.map_type.key_type = TensorProto.DataType.Value(key.upper())
    made.map_type.value_type.CopyFrom(proto_of_text(value))
    return made


def cast_at_border(source: str, result: str, of: DType, *, inwards: bool) -> NodeProto:
    """The node that makes a carried value of what a session is given, or the other way round."""
    from onnx import TensorProto, helper

    target = element_number(of) or 0 if inwards else int(TensorProto.FLOAT)
    node = helper.make_node("Cast", [source], [result], to=target)
    if inwards and of.name.lower().removeprefix(TENSOR).startswith("float8"):
        node.attribute.append(helper.make_attribute("saturate", 0))  # infinities stay what they are
    return node
