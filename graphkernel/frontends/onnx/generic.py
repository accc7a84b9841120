"""The generic operator ``Onnx`` of a node: what it carries, and its result types by ONNX's own inference.

Of operators that ONNX does not know, such as those of ``com.microsoft`` in models that were quantized or optimized for
onnxruntime, onnxruntime tells the types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from graphkernel.errors import FrontendError
from graphkernel.frontends.onnx.symbols import Extents
from graphkernel.frontends.onnx.types.types import PartialShape, complete, is_complete, tensor_type
from graphkernel.ops.library.host import CAPTURED, DOMAINS, OPERANDS, attributes_to_json
from graphkernel.ops.library.host_bodies import bodies_of, captured_names, domains_in
from graphkernel.ops.library.host_values import proto_of_text, type_proto
from graphkernel.ops.tensor.tensor import Tensor
from kernelgen.tensor.elements import TENSOR
from kernelgen.tensor.graph import DEFINES
from kernelgen.tensor.types import Attrs, TensorType, dtype

if TYPE_CHECKING:
    from onnx import NodeProto, OperatorSetIdProto, TensorProto, TypeProto

Types = Sequence[TensorType | None]

MOST_SHAPES = 1 << 10
"""Operands of more elements say nothing of shapes: they are weights."""


def generic_attributes(
    node: NodeProto,
    types: Types,
    operands: Sequence[Tensor | None],
    opsets: Mapping[str, int],
    defined: Sequence[str] = (),
) -> Attrs:
    """The attributes of the operator, which defines some symbols; ``types`` has a None for each result that is skipped."""
    wanted: dict[str, object] = {} if None not in types else {"wanted": tuple(int(t is not None) for t in types)}
    if defined:
        wanted[DEFINES] = tuple(defined)
    opaque = [x.dtype.name if x.dtype.is_opaque else "" for x in operands if x is not None]
    if any(opaque):
        wanted[OPERANDS] = tuple(opaque)
    wanted |= _bodies_attributes(node, opsets)
    return Attrs.of(
        op_type=node.op_type, domain=_domain(node), opset=_version(node, opsets),
        attributes=attributes_to_json(node.attribute),
        result_types=tuple(str(type_) for type_ in types if type_ is not None),
        present=tuple(int(tensor is not None) for tensor in operands), **wanted,
    )  # fmt: skip


def _bodies_attributes(node: NodeProto, opsets: Mapping[str, int]) -> dict[str, object]:
    """What is said of closed bodies: the names of what they take from outside, and the domains of their operators."""
    captured = captured_names(node)
    domains = {domain for body in bodies_of(node) for domain in domains_in(body)} - {"", "ai.onnx"}
    found: dict[str, object] = {CAPTURED: captured} if captured else {}
    return found | ({DOMAINS: tuple(f"{name} {opsets.get(name, 1)}" for name in sorted(domains))} if domains else {})


def constant_attributes(array: np.ndarray, opsets: Mapping[str, int]) -> Attrs:
    """The attributes of the operator that makes a constant of what no kernel holds."""
    from onnx import helper, numpy_helper

    node = helper.make_node("Constant", [], ["y"], value=numpy_helper.from_array(array))
    return generic_attributes(node, [TensorType(tuple(array.shape), dtype(array.dtype))], (), opsets)


def inferred_types(
    node: NodeProto,
    operands: Sequence[Tensor | None],
    data: Sequence[np.ndarray | None],
    opsets: Mapping[str, int],
    where: str,
    shapes: Sequence[PartialShape],
    further: Callable[[], Sequence[PartialShape]],
    extents: Extents,
) -> list[TensorType | None]:
    """The result types by ONNX's own inference, over operands of our types and what is known of their content.

    Where we know the ``shapes`` better, we tell them; what it does not know ``further`` may.

    A result that nobody wants has a type as well, since onnxruntime dies of operators that skip one; it is None where
    ONNX knows of none, which means that the operator leaves it out. ``extents`` names extents that nobody knows.
    """
    names = [name or f"skipped:{position}" for position, name in enumerate(node.output)]
    found = _inferred(node, names, operands, data, opsets, where)
    wanted = {name for name in node.output if name}
    for name, shape in zip(names, shapes, strict=False):
        if name in found:
            found[name].tensor_type.ClearField("shape")
            complete(found[name], shape)
    if not all(name in found and is_complete(found[name]) for name in names):
        for name, shape in zip(names, further(), strict=False):
            if name in found:
                complete(found[name], shape)
    return [
        tensor_type(found[n], f"{where}; result {n}", partial(extents.named, n))
        if n in wanted
        else _skipped_type(found.get(n))
        for n in names
    ]


def _skipped_type(found: TypeProto | None) -> TensorType | None:
    try:
        return None if found is None else tensor_type(found, "a skipped result")
    except (FrontendError, ValueError):
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
    small = {n: x for n, x in zip(node.input, data, strict=True) if x is not None and x.size <= MOST_SHAPES}
    known = {n: numpy_helper.from_array(x) for n, x in small.items()}
    imports = [helper.make_opsetid(key, value) for key, value in opsets.items()]
    captured = len(captured_names(node))
    named.input[:] = node.input[: len(node.input) - captured]
    try:
        if next(bodies_of(node), None) is None and defs.has(node.op_type, _domain(node)):
            schema = defs.get_schema(node.op_type, _version(node, opsets), _domain(node))
            found = (
                {}
                if schema.deprecated
                else shape_inference.infer_node_outputs(schema, named, types, known, opset_imports=imports)
            )
            if all(name in found and found[name].WhichOneof("value") for name in node.output if name):
                return found
        return _by_onnxruntime(named, types, known, imports)
    except Exception as error:  # onnx and onnxruntime raise several classes of their own
        raise FrontendError(f"{where}, and ONNX cannot tell its result types: {error}") from error


def _by_onnxruntime(
    node: NodeProto,
    types: Mapping[str, TypeProto],
    known: Mapping[str, TensorProto],
    imports: Sequence[OperatorSetIdProto],
) -> dict[str, TypeProto]:
    """The result types as a session of the node alone tells them."""
    told = _outputs_alone(node, types, known, imports, ())
    tensors = [name for name in node.output if told[name].type.startswith(TENSOR)]
    ranks = _outputs_alone(node, types, known, imports, tensors)
    return {
        name: _told(told[name], ranks[f"{name}:shape"].shape) if name in tensors else proto_of_text(told[name].type)
        for name in node.output
    }


def _outputs_alone(
    node: NodeProto,
    types: Mapping[str, TypeProto],
    known: Mapping[str, TensorProto],
    imports: Sequence[OperatorSetIdProto],
    tensors: Sequence[str],
) -> dict[str, Any]:  # NodeArgs of onnxruntime
    """What onnxruntime says of the results, and of the shapes of some that are tensors, which tell the ranks."""
    import onnxruntime
    from onnx import helper

    inputs = [helper.make_value_info(name, of) for name, of in types.items() if name not in known]
    ranks = [helper.make_node("Shape", [name], [f"{name}:shape"]) for name in tensors]
    results = [helper.make_empty_tensor_value_info(name) for each in (node, *ranks) for name in each.output]
    constants = [_called(tensor, name) for name, tensor in known.items()]
    graph = helper.make_graph([node, *ranks], "alone", inputs, results, constants)
    oldest = helper.find_min_ir_version_for(imports, ignore_unknown=True)
    model = helper.make_model(graph, opset_imports=imports, ir_version=max(4, min(10, oldest)))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4  # nothing: what it refuses is raised
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return {argument.name: argument for argument in session.get_outputs()}


def _told(argument: Any, rank: Sequence[object]) -> TypeProto:  # a NodeArg of onnxruntime
    """The type of a result; without a shape where not even the rank is known."""
    from onnx import TensorProto, helper

    number = TensorProto.DataType.Value(argument.type[len(TENSOR) : -1].upper())
    return helper.make_tensor_type_proto(number, argument.shape if isinstance(rank[0], int) else None)


def _called(tensor: TensorProto, name: str) -> TensorProto:
    tensor.name = name
    return tensor


def _domain(node: NodeProto) -> str:
    return "" if node.domain == "ai.onnx" else node.domain


def _version(node: NodeProto, opsets: Mapping[str, int]) -> int:
    return opsets.get(_domain(node), opsets.get("", 1))
