"""What operators of a library take and give beside arrays of numbers: texts, lists of tensors, tensors of any rank.

Onnxruntime takes numbers that numpy itself does not know (int4, float8, bfloat16) as float32, which holds them all; its
models cast them at their border.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kernelgen.tensor.elements import TENSOR, element_number
from kernelgen.tensor.types import Dim, DType, TensorType, dtype, is_whole

if TYPE_CHECKING:
    from onnx import NodeProto, TypeProto


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
