"""``Onnx``: any ONNX operator that has no operator of ours. It always runs on the host library.

Its attributes carry everything: ``op_type``, ``domain``, ``opset``, ``attributes`` (JSON of the ONNX attributes),
``result_types`` (texts such as ``"f32[1, 8]"``), ``present`` (which optional operands are there; default all) and
``wanted`` (which results are there, in the same way; ``result_types`` holds the types of these).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.ir.opdef import Kind
from graphkernel.ir.types import Attrs, TensorType, parse_type
from graphkernel.ops.families import Array, declare

if TYPE_CHECKING:
    from onnx import AttributeProto, NodeProto

Types = tuple[TensorType, ...]


def onnx_node(attrs: Attrs, operands: Iterable[str], results: Iterable[str]) -> NodeProto:
    """The ONNX node of an ``Onnx`` operator; optional operands and results that are not there become ``""``."""
    from onnx import NodeProto  # the extra "onnx" is needed only when such a node is met

    given, made = _at_places(attrs, "present", operands), _at_places(attrs, "wanted", results)
    node = NodeProto(op_type=attrs.str("op_type"), domain=attrs.str("domain", ""), input=given, output=made)
    node.attribute.extend(attributes_from_json(attrs.str("attributes", "[]")))
    return node


def _at_places(attrs: Attrs, places: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names where the attribute ``places`` has a 1, ``""`` where it has a 0."""
    given = tuple(names)
    rest = iter(given)
    return given if places not in attrs else tuple(next(rest) if there else "" for there in attrs.ints(places))


def attributes_to_json(attributes: Iterable[AttributeProto]) -> str:
    """ONNX attributes as JSON text, sorted by name so that equal attributes give equal text."""
    from google.protobuf.json_format import MessageToDict

    ordered = sorted(attributes, key=lambda attribute: attribute.name)
    return json.dumps([MessageToDict(attribute) for attribute in ordered], sort_keys=True)


def attributes_from_json(text: str) -> list[AttributeProto]:
    """The inverse of :func:`attributes_to_json`."""
    from google.protobuf.json_format import ParseDict
    from onnx import AttributeProto

    return [ParseDict(entry, AttributeProto()) for entry in json.loads(text)]


def _stated_types(types: Types, attrs: Attrs) -> Types:
    texts = attrs.get("result_types")
    if not isinstance(texts, tuple) or not texts:
        raise TypeRuleError("result_types must be a tuple of types such as ('f32[1, 8]',)")
    return tuple(parse_type(str(text)) for text in texts)


def _run(*arrays: Array, attrs: Attrs) -> Any:  # one array, or a tuple of several
    """The meaning by onnx's own reference evaluator."""
    from onnx import defs, helper
    from onnx.reference import ReferenceEvaluator

    operands = [f"x{i}" for i in range(len(arrays))]
    results = [f"y{i}" for i in range(len(_stated_types((), attrs)))]
    node = onnx_node(attrs, operands, results)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(operands, arrays, strict=True)
    ]
    graph = helper.make_graph([node], "host", inputs, [helper.make_empty_tensor_value_info(name) for name in results])
    opsets = {"": defs.onnx_opset_version(), attrs.str("domain", ""): attrs.int("opset")}
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=imports))
    found: list[Any] = list(evaluator.run(None, dict(zip(operands, arrays, strict=True))))
    values = [np.asarray(value) for value in found]
    return tuple(values) if len(values) > 1 else values[0]


ONNX = declare(
    "Onnx",
    Kind.OPAQUE,
    None,
    _stated_types,
    _run,
    attributes=("op_type", "domain", "opset", "attributes", "result_types", "present", "wanted"),
    composite=True,
)
