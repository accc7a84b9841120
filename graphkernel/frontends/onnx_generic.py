"""The generic operator ``Onnx`` of a node: what it carries, and its result types by ONNX's own inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphkernel.errors import FrontendError
from graphkernel.frontends.onnx_types import tensor_type, type_proto
from graphkernel.ir.types import Attrs, TensorType
from graphkernel.ops.host import attributes_to_json
from graphkernel.ops.tensor import Tensor

if TYPE_CHECKING:
    from onnx import NodeProto, TypeProto

Types = Sequence[TensorType | None]


def generic_attributes(
    node: NodeProto, types: Types, operands: Sequence[Tensor | None], opsets: Mapping[str, int]
) -> Attrs:
    """The attributes of the operator; ``types`` has a None for each result that is skipped."""
    wanted = {} if None not in types else {"wanted": tuple(int(type_ is not None) for type_ in types)}
    return Attrs.of(
        op_type=node.op_type, domain=_domain(node), opset=_version(node, opsets),
        attributes=attributes_to_json(node.attribute),
        result_types=tuple(str(type_) for type_ in types if type_ is not None),
        present=tuple(int(tensor is not None) for tensor in operands), **wanted,
    )  # fmt: skip


def inferred_types(
    node: NodeProto,
    operands: Sequence[Tensor | None],
    data: Sequence[np.ndarray | None],
    opsets: Mapping[str, int],
    where: str,
) -> list[TensorType | None]:
    """The result types by ONNX's own inference, over operands of our types and what is known of their content.

    A result that nobody wants has a type as well, since onnxruntime dies of operators that skip one; it is None where
    ONNX knows of none, which means that the operator leaves it out.
    """
    names = [name or f"skipped:{position}" for position, name in enumerate(node.output)]
    found = _inferred(node, names, operands, data, opsets, where)
    wanted = {name for name in node.output if name}
    return [
        tensor_type(found[n], f"{where}; result {n}") if n in wanted else _skipped_type(found.get(n)) for n in names
    ]


def _skipped_type(found: TypeProto | None) -> TensorType | None:
    try:
        return None if found is None else tensor_type(found, "a skipped result")
    except FrontendError:
        return None


def _inferred(
    node: NodeProto,
    names: Sequence[str],
    operands: Sequence[Tensor | None],
    data: Sequence[np.ndarray | None],
    opsets: Mapping[str, int],
    where: str,
) -> dict[str, TypeProto]:
    from onnx import NodeProto, defs, helper, numpy_helper, shape_inference

    named = NodeProto()
    named.CopyFrom(node)
    named.output[:] = names
    types = {n: type_proto(x.type) for n, x in zip(node.input, operands, strict=True) if x is not None}
    known = {n: numpy_helper.from_array(x) for n, x in zip(node.input, data, strict=True) if x is not None}
    imports = [helper.make_opsetid(key, value) for key, value in opsets.items()]
    try:
        schema = defs.get_schema(node.op_type, _version(node, opsets), _domain(node))
        return shape_inference.infer_node_outputs(schema, named, types, known, opset_imports=imports)
    except Exception as error:  # onnx raises several classes of its own
        raise FrontendError(f"{where}, and ONNX cannot tell its result types: {error}") from error


def _domain(node: NodeProto) -> str:
    return "" if node.domain == "ai.onnx" else node.domain


def _version(node: NodeProto, opsets: Mapping[str, int]) -> int:
    return opsets.get(_domain(node), opsets.get("", 1))
