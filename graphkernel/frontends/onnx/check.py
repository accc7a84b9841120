"""What an ONNX model must be before it is read: what ONNX's checker says, and what that lets through.

The checker sees a model without its weights, and with a name and output types where there are none: onnxruntime runs
models without these. Weights are looked at when they become arrays.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from graphkernel.errors import FrontendError
from graphkernel.frontends.onnx.nodes import Placed, domain_of, nodes_of, opsets_of
from graphkernel.ops.library.host_bodies import MOST_DEEP, depth_of
from kernelgen.system.bounded_io import UNFIT
from kernelgen.system.limits import LIMITS

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

SMALL_TENSOR = 1 << 10
"""Bytes up to which the checker sees the elements of a tensor."""

OWN_INITIALIZERS = 4
"""The version of ONNX's files from which weights need not be inputs; onnxruntime takes older ones so as well."""

DEPRECATED = "deprecated"
ADDED = frozenset({"SimplifiedLayerNormalization"})
"""What onnxruntime has among ONNX's own operators and ONNX has not."""


def checked_nodes(model: ModelProto) -> list[Placed]:
    """The nodes of a model in order.

    Raises ``FrontendError`` for a model that ONNX does not allow, or that is more than ``LIMITS`` says.
    """
    from onnx.checker import check_model as check

    if not model.HasField("graph"):
        raise FrontendError("the file is empty, or a model without a graph")
    if model.graph.sparse_initializer:
        raise FrontendError("the model has sparse constants; write them as dense ones")
    with named("the model"):
        _check_opsets(model)
        _check_nodes(model.graph)
        _check_names("input", (info.name for info in model.graph.input))
        nodes = nodes_of(model)
        _check_outputs(nodes, model.graph)
    try:
        check(_without_weights(model, nodes))
    except Exception as error:  # the checker's class, protobuf's, and Unicode errors of names
        raise FrontendError(f"{_culprit(model, nodes)}: not valid ONNX: {_first_lines(error)}") from error
    return nodes


def array_of(tensor: TensorProto, where: str) -> np.ndarray:
    """The array of a tensor.

    Raises ``FrontendError``, which says ``where``, if its content does not fit its shape or data type.
    """
    from onnx import numpy_helper

    try:
        return numpy_helper.to_array(tensor)
    except Exception as error:  # onnx raises what numpy, struct and its tables raise
        raise FrontendError(f"{where}: a tensor that cannot be read: {type(error).__name__}: {error}") from error


@contextmanager
def named(where: str) -> Generator[None]:
    """Whatever a part of a model makes our code stumble over is a ``FrontendError`` that names the part.

    Raises FrontendError.
    """
    try:
        yield
    except UNFIT as error:
        raise FrontendError(f"{where}: {str(error) or type(error).__name__}") from error


def _check_opsets(model: ModelProto) -> None:
    from onnx.defs import onnx_opset_version

    found: dict[str, int] = {}
    for entry in model.opset_import:
        if found.setdefault(domain_of(entry.domain), entry.version) != entry.version:  # skl2onnx says the same twice
            raise FrontendError(f"the opset of domain {domain_of(entry.domain)!r} is there twice")
        newest = onnx_opset_version() if entry.domain in ("", "ai.onnx") else 2**31 - 1
        if not 1 <= entry.version <= newest:
            raise FrontendError(f"opset {entry.version} of domain {entry.domain!r}: there are 1 to {newest} here")


def _check_nodes(graph: GraphProto) -> None:
    count = sum(1 for _ in all_nodes(graph))
    if count > LIMITS.nodes:
        raise FrontendError(f"the model has {count} nodes; at most {LIMITS.nodes} are read")
    if depth_of(graph) > MOST_DEEP:
        raise FrontendError(f"bodies are nested deeper than {MOST_DEEP} levels")


def all_nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """The nodes of a graph and of the bodies in it."""
    waiting = [graph]
    while waiting:
        for node in waiting.pop().node:
            yield node
            for attribute in node.attribute:
                waiting += [attribute.g, *attribute.graphs] if attribute.HasField("g") else attribute.graphs


def _check_outputs(nodes: Sequence[Placed], graph: GraphProto) -> None:
    known = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    known.update(name for placed in nodes for name in placed.node.output)
    if not graph.output:
        raise FrontendError("the model has no outputs")
    for info in graph.output:
        if info.name not in known:
            raise FrontendError(f"output {info.name}: no node makes it")


def _culprit(model: ModelProto, nodes: Sequence[Placed]) -> str:
    """The first node that the checker does not take, or the model."""
    from onnx import checker

    context = checker.C.CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = opsets_of(model)
    for placed in nodes:
        try:
            checker.check_node(placed.node, context)
        except Exception:
            with named(f"node {placed.position}"):
                return placed.place
    return "the model"


def _check_names(what: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise FrontendError(f"{what} {name!r} is there twice")
        seen.add(name)


def _without_weights(model: ModelProto, nodes: Sequence[Placed]) -> ModelProto:
    from onnx import GraphProto, ModelProto, TensorProto, TypeProto, helper

    def light(tensor: TensorProto) -> TensorProto:
        if tensor.ByteSize() <= SMALL_TENSOR and tensor.data_location != TensorProto.EXTERNAL:
            return tensor
        return TensorProto(name=tensor.name, data_type=TensorProto.FLOAT, dims=[0])

    graph = GraphProto(name=model.graph.name or "graph", input=model.graph.input)
    for info in graph.input:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.shape.SetInParent()  # a rank that nobody knows is allowed
    opsets = opsets_of(model)
    graph.node.extend(_undeprecated(placed.node, opsets) for placed in nodes)
    graph.initializer.extend(map(light, model.graph.initializer))
    anything = TypeProto(tensor_type=TypeProto.Tensor(elem_type=TensorProto.FLOAT, shape={}))
    for output in model.graph.output:
        graph.output.add(name=output.name, type=anything)
    imports = [helper.make_opsetid(domain, version) for domain, version in {**opsets, DEPRECATED: 1}.items()]
    newest = max(model.ir_version, OWN_INITIALIZERS)
    return ModelProto(ir_version=newest, opset_import=imports, graph=graph)


def _undeprecated(node: NodeProto, opsets: Mapping[str, int]) -> NodeProto:
    """The node; one that ONNX has deprecated or never had, which onnxruntime runs all the same, as one of another domain."""
    from onnx import NodeProto, defs

    domain = domain_of(node.domain)
    version = opsets.get(domain, 0)
    is_known = defs.has(node.op_type, version, domain)
    is_added = not domain and node.op_type in ADDED
    if not is_added and not (is_known and defs.get_schema(node.op_type, version, domain).deprecated):
        return node
    other = NodeProto()
    other.CopyFrom(node)
    other.domain = DEPRECATED
    return other


def _first_lines(error: Exception) -> str:
    """What the checker says, in one line and without the node as it is printed behind."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3])[:300] or type(error).__name__
