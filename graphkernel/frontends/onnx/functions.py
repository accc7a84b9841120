"""What an operator without a rule is as ONNX writes it out in simpler operators.

A body at a later opset than the model's is the operator's all the same as long as ONNX has not redefined the operator. One
with products stays whole: the host library's kernel for attention keeps to itself what its parts would store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphkernel.ops.library.host_bodies import bodies_of
from graphkernel.ops.library.host_values import type_proto
from kernelgen.tensor.types import DType, TensorType, dtype

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto

PRODUCTS = frozenset({"Conv", "Einsum", "Gemm", "MatMul"})
WIDE = "float32"


class NotWholeError(Exception):
    """An operator in a body that only the host library can run: then it runs the operator whose body it is."""


def operand_name(position: int) -> str:
    """How a body calls an operand."""
    return f"operand{position}"


def result_name(position: int) -> str:
    """How a body calls a result."""
    return f"result{position}"


def is_narrow(of: DType) -> bool:
    """Whether a body in numbers of this type would round between its operators what the operator rounds once."""
    return of.is_float and of.bits < dtype(WIDE).bits


def narrow_results(node: NodeProto, types: Sequence[DType | None], opset: int) -> dict[int, DType]:
    """The results of ``node`` (ONNX's, of this ``opset``) that have the type of a narrow operand, with it; ``types``
    are the operands'.
    """
    schema = _schema(node, opset)
    inputs = [schema.inputs[min(place, len(schema.inputs) - 1)].type_str for place in range(len(types))]
    narrow = {text: of for text, of in zip(inputs, types, strict=True) if of is not None and is_narrow(of)}
    outputs = [schema.outputs[min(place, len(schema.outputs) - 1)].type_str for place in range(len(node.output))]
    return {place: narrow[text] for place, text in enumerate(outputs) if text in narrow}


def written_out(node: NodeProto, types: Sequence[TensorType | None], opset: int) -> tuple[GraphProto, int] | None:
    """The body of the operator ``node`` over operands of these ``types`` (None: absent) and its ``opset``; None where
    ONNX has none.
    """
    from onnx import helper
    from onnx.inliner import inline_selected_functions

    at = _opset_of_body(node, opset)
    if at is None or _rounds_attributes(node, types, at):
        return None
    call = _complete(node, types, at)
    inputs = [helper.make_value_info(operand_name(n), type_proto(of)) for n, of in enumerate(types) if of is not None]
    outputs = [helper.make_empty_tensor_value_info(name) for name in call.output if name]
    graph = helper.make_graph([call], "body", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", at)])
    try:
        body = inline_selected_functions(model, [("", node.op_type)], inline_schema_functions=True).graph
    except RuntimeError:  # onnx writes out no operator whose body hangs on types, of which one operand is left out
        return None
    kinds = {inner.op_type for inner in body.node}
    return None if node.op_type in kinds or kinds & PRODUCTS else (body, at)


def _opset_of_body(node: NodeProto, opset: int) -> int | None:
    from onnx import defs

    if (
        node.domain not in ("", "ai.onnx")
        or not defs.has(node.op_type, opset)
        or next(bodies_of(node), None) is not None
    ):
        return None
    schema = _schema(node, opset)
    written = [*schema.function_opset_versions, *schema.context_dependent_function_opset_versions]
    return max(opset, min(written)) if written else None


def _rounds_attributes(node: NodeProto, types: Sequence[TensorType | None], opset: int) -> bool:
    """Whether the body makes whole numbers of attributes before it computes; libraries do so behind."""
    is_whole = types[:1] and types[0] is not None and types[0].dtype.is_integer
    attributes = _schema(node, opset).attributes.values()
    return bool(is_whole) and any(attribute.type.name == "FLOAT" for attribute in attributes)


def _complete(node: NodeProto, types: Sequence[TensorType | None], opset: int) -> NodeProto:
    """The node with our names of its values, and with attributes that it leaves at their defaults."""
    made = type(node)(op_type=node.op_type)
    made.input[:] = ["" if of is None else operand_name(place) for place, of in enumerate(types)]
    made.output[:] = [result_name(place) if name else "" for place, name in enumerate(node.output)]
    made.attribute.extend(node.attribute)
    given = {attribute.name for attribute in node.attribute}
    for attribute in _schema(node, opset).attributes.values():
        if attribute.name not in given and attribute.default_value.type:
            made.attribute.append(attribute.default_value)
    return made


def _schema(node: NodeProto, opset: int) -> Any:  # an OpSchema, of which onnx declares half
    from onnx import defs

    return defs.get_schema(node.op_type, opset)
