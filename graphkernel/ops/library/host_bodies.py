"""Bodies of ONNX operators such as If and Loop: what they take from the graph around them, and how their values are called.

A body that is *closed* has names of its own for its values, ``body/x``, so that no name stands for two values, whatever
model it is written into. What it takes from outside, its captured values, are operands behind those of the operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto

MOST_DEEP = 16
"""Bodies inside of each other: each is several levels of the text form, which Python reads by recursion."""
LARGE_BYTES = 1 << 10
"""Constants of more bytes become operands of the operator: they lie in memory once, not in its attributes."""


def bodies_of(node: NodeProto) -> Iterator[GraphProto]:
    """The bodies of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def free_names(body: GraphProto) -> set[str]:
    """The values that a body takes from the graph around it."""
    used = {name for node in body.node for name in node.input} | {info.name for info in body.output}
    used.update(name for node in body.node for inner in bodies_of(node) for name in free_names(inner))
    return used - _own_names(body) - {""}


def captured_names(node: NodeProto) -> tuple[str, ...]:
    """The values that the bodies of a node take from outside, sorted."""
    return tuple(sorted({name for body in bodies_of(node) for name in free_names(body)}))


def read_by(node: NodeProto) -> list[str]:
    """The operands of a node, and what its bodies take from outside."""
    return [*node.input, *captured_names(node)]


def domains_in(body: GraphProto) -> set[str]:
    """The domains of the operators in a body."""
    found = {node.domain for node in body.node}
    return found.union(*(domains_in(inner) for node in body.node for inner in bodies_of(node)))


def depth_of(body: GraphProto) -> int:
    """How many bodies lie inside of each other, this one included; at most a few more than ``MOST_DEEP`` are counted."""
    depth, level = 0, [body]
    while level and depth <= MOST_DEEP:
        depth += 1
        level = [inner for each in level for node in each.node for inner in bodies_of(node)]
    return depth


def rename(body: GraphProto, names: Mapping[str, str], prefix: str = "") -> None:
    """Gives values other names, in place: those from outside by ``names``, its own, if there is one, by a prefix."""
    own = _own_names(body) - {""}
    scope = {**names, **{name: f"{prefix}{name}" for name in own}}
    for info in (*body.input, *body.output, *body.value_info):
        info.name = scope.get(info.name, info.name)
        if prefix:
            _rename_extents(info.type, prefix)
    for tensor in body.initializer:
        tensor.name = scope[tensor.name]
    for sparse in body.sparse_initializer:
        sparse.values.name = scope[sparse.values.name]
    for position, node in enumerate(body.node):
        node.input[:] = [scope.get(name, name) for name in node.input]
        node.output[:] = [scope.get(name, name) for name in node.output]
        for number, inner in enumerate(bodies_of(node)):
            rename(inner, scope, prefix and f"{prefix}{position}.{number}/")


NOTES = ("doc_string", "metadata_props")


def forget_notes(body: GraphProto) -> None:
    """Takes out of a body, in place, what its author and exporter noted: stack traces are far longer than what they are of."""
    parts = [body, *body.node, *body.initializer, *body.input, *body.output, *body.value_info]
    parts += [attribute for node in body.node for attribute in node.attribute]
    for part in parts:
        for field in NOTES:
            if field in part.DESCRIPTOR.fields_by_name:
                part.ClearField(field)
    for inner in (inner for node in body.node for inner in bodies_of(node)):
        forget_notes(inner)


def taken_out(body: GraphProto) -> dict[str, TensorProto]:
    """Takes the large constants out of a closed body, in place; results of the body stay."""
    results = {info.name for info in body.output}
    found: dict[str, TensorProto] = {}
    for tensor in list(body.initializer):
        if tensor.ByteSize() > LARGE_BYTES and tensor.name not in results:
            found[tensor.name] = _copied(tensor)
            body.initializer.remove(tensor)
    for node in list(body.node):
        value = next((attribute.t for attribute in node.attribute if attribute.name == "value"), None)
        large = node.op_type == "Constant" and value is not None and value.ByteSize() > LARGE_BYTES
        if large and value is not None and node.output[0] not in results:
            found[node.output[0]] = _copied(value)
            body.node.remove(node)
        for inner in bodies_of(node):
            found.update(taken_out(inner))
    return found


def _copied(tensor: TensorProto) -> TensorProto:
    copy = type(tensor)()
    copy.CopyFrom(tensor)
    return copy


def _own_names(body: GraphProto) -> set[str]:
    own = {info.name for info in body.input} | {tensor.name for tensor in body.initializer}
    own.update(tensor.values.name for tensor in body.sparse_initializer)
    return own.union(name for node in body.node for name in node.output)


def _rename_extents(of: Any, prefix: str) -> None:  # an onnx type
    """An extent that a body names is none of the graph around it."""
    kind = of.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        _rename_extents(getattr(of, kind).elem_type, prefix)
    elif kind == "tensor_type":
        for dim in of.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = f"{prefix}{dim.dim_param}"
