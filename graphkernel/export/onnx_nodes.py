"""One operator of a graph as nodes of ONNX: its form, in a wider type where runtimes do not compute in its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphkernel.cluster.liveness import is_view
from graphkernel.export.onnx_scope import Scope
from graphkernel.onnx_writing.table import write
from graphkernel.onnx_writing.writer import Unwritable, element_type, result_names
from graphkernel.ops.composite.arithmetic import IDENTITY_MATH, STOP_GRADIENT
from graphkernel.ops.library.host import ONNX, onnx_node
from graphkernel.ops.library.host_values import type_proto
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.creation import EXTENT, SHAPE
from kernelgen.tensor.operators.effects import ASSIGN
from kernelgen.tensor.operators.elemwise import TENSOR_MOVE
from kernelgen.tensor.operators.indexing import GATHER
from kernelgen.tensor.operators.matmul import MATMUL_INTEGER
from kernelgen.tensor.operators.nn import BYTE_SUMS, CONV2D
from kernelgen.tensor.operators.padding import UNPAD_AKG
from kernelgen.tensor.operators.pieces import CONCAT, SLICE, SPLIT, STRIDED_SLICE
from kernelgen.tensor.operators.shape import TRANSPOSE
from kernelgen.tensor.order import is_ordered
from kernelgen.tensor.types import Category, DType, TensorType, dtype

WIDER: Mapping[str, str] = {
    "bfloat16": "float32", "int8": "int32", "uint8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64",
}  # fmt: skip
"""What onnxruntime computes in place of types for which it has few kernels; a cast back rounds and wraps as ours do."""

MOVING = frozenset({
    CAST, TRANSPOSE, CONCAT, STRIDED_SLICE, SLICE, SPLIT, GATHER, TENSOR_MOVE, SHAPE, ASSIGN,
    UNPAD_AKG, EXTENT, IDENTITY_MATH, STOP_GRADIENT, MATMUL_INTEGER,
})  # fmt: skip
"""Operators that take elements as they are, whatever their type, or bytes alone."""


def write_node(scope: Scope, node: Node, operands: tuple[str, ...], results: tuple[str, ...]) -> None:
    """Appends the nodes that compute the operator. Raises :class:`Unwritable` where ONNX has no form for it."""
    before = len(scope.nodes)
    if node.op is ONNX:
        scope.nodes.extend(_as_it_came(scope, node, operands, results))
    else:
        _check_types(node)
        is_empty = all(_is_empty(type_) for type_ in node.types) and not is_ordered(node)
        _write_empty(scope, node, results) if is_empty else _write_own(scope, node, operands, results)
    made: list[Any] = scope.nodes[before:]
    for part, each in enumerate(made):
        each.name = node.name if len(made) == 1 else f"{node.name}/{part}"


def _write_own(scope: Scope, node: Node, operands: tuple[str, ...], results: tuple[str, ...]) -> None:
    wide = _widened(node)
    if wide is node:
        _write_form(scope, node, operands, results)
        return
    given = tuple(
        x if new is old else scope.emit("Cast", x, to=element_type(new.type.dtype))
        for x, old, new in zip(operands, node.args, wide.args, strict=True)
    )
    pairs = zip(node.types, wide.types, results, strict=True)
    found = tuple(name if old == new else scope.fresh("n") for old, new, name in pairs)
    _write_form(scope, wide, given, found)
    for name, wide_name, type_ in zip(results, found, node.types, strict=True):
        if name != wide_name:
            scope.emit("Cast", wide_name, result=name, to=element_type(type_.dtype))


def _write_form(scope: Scope, node: Node, operands: tuple[str, ...], results: tuple[str, ...]) -> None:
    """The form under the rules' own names of further results, which then get the ones that are wanted."""
    before, own = len(scope.nodes), result_names(results[0], len(results))
    write(scope, node, operands, results[0])
    wanted = dict(zip(own, results, strict=True))
    for made in scope.nodes[before:]:
        made.input[:] = [wanted.get(name, name) for name in made.input]
        made.output[:] = [wanted.get(name, name) for name in made.output]


def _as_it_came(scope: Scope, node: Node, operands: tuple[str, ...], results: tuple[str, ...]) -> Sequence[Any]:
    """The node of the model that was read, written in the opset of this one."""
    from onnx import defs

    made = onnx_node(node.attrs, operands, results)
    domain, opset = node.attrs.str("domain", ""), node.attrs.int("opset")
    if domain or opset == scope.opset:
        return (made,)
    versions = {defs.get_schema(made.op_type, version, domain).since_version for version in (opset, scope.opset)}
    return (made,) if len(versions) == 1 else _converted(scope, made, node, opset)


def _converted(scope: Scope, made: Any, node: Node, opset: int) -> Sequence[Any]:
    """The same in another opset, by ONNX's own converter."""
    from onnx import helper, numpy_helper, version_converter

    names = [name for name in made.input if name]
    types = dict(zip(names, (value.type for value in node.args), strict=True))
    known = {name: value.constant for name, value in zip(names, node.args, strict=True) if value.constant is not None}
    graph = helper.make_graph(
        [made], "one", [value_info(name, type_) for name, type_ in types.items() if name not in known],
        [value_info(name, type_) for name, type_ in zip(filter(None, made.output), node.types, strict=True)],
        [numpy_helper.from_array(array, name) for name, array in known.items()],
    )  # fmt: skip
    imports = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=max(4, helper.find_min_ir_version_for(imports)))
    try:
        found = version_converter.convert_version(model, scope.opset).graph
    except Exception as error:  # a RuntimeError of its own, and others
        raise Unwritable(f"ONNX does not convert it from opset {opset} to {scope.opset}: {error}") from error
    names_of = {array.name: scope.constant(numpy_helper.to_array(array)) for array in found.initializer
                if array.name not in known}  # fmt: skip
    own = {*types, *made.output}
    for each in found.node:
        for name in each.output:
            names_of.setdefault(name, name if name in own else scope.fresh("n"))
        each.input[:] = [names_of.get(name, name) for name in each.input]
        each.output[:] = [names_of[name] for name in each.output]
    return tuple(found.node)


def value_info(name: str, type_: TensorType) -> Any:  # an onnx message
    """The type of a value; symbols and what is computed of them are ``dim_param``."""
    from onnx import helper

    return helper.make_value_info(name, type_proto(type_))


def _check_types(node: Node) -> None:
    types = (*(value.type for value in node.args), *node.types)
    if any(type_.dtype.category is Category.COMPLEX for type_ in types):
        raise Unwritable("ONNX's runtimes compute no complex numbers")


def _widened(node: Node) -> Node:
    """The node over wider types; itself where runtimes have its own."""
    of_bytes = node.op is CONV2D and node.out.type.dtype == BYTE_SUMS
    if is_view(node) or node.op in MOVING or of_bytes:
        return node
    args = tuple(_wide_value(value) for value in node.args)
    types = tuple(type_.of_dtype(_wide(type_.dtype)) for type_ in node.types)
    if args == node.args and types == node.types:
        return node
    return Node(node.op, args, node.attrs, types, node.name, node.body, node.data)


def _wide_value(value: Value) -> Value:
    wide = _wide(value.type.dtype)
    if wide == value.type.dtype:
        return value
    node = value.node
    types = (value.type.of_dtype(wide),)
    return Node(node.op, (), node.attrs, types, node.name, data=node.data).out


def _wide(of: DType) -> DType:
    return dtype(WIDER.get(of.name, of.name))


def _is_empty(type_: TensorType) -> bool:
    return type_.is_static and 0 in type_.shape


def _write_empty(scope: Scope, node: Node, results: tuple[str, ...]) -> None:
    """Nothing has to be computed for tensors without elements."""
    for name, type_ in zip(results, node.types, strict=True):
        shape = tuple(dim for dim in type_.shape if isinstance(dim, int))
        scope.emit("Identity", scope.constant(np.empty(shape, type_.dtype.numpy)), result=name)
