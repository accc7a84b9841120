"""Operators with bodies as they are imported: closed, with what the bodies take from outside as operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphkernel.ops.library.host_bodies import bodies_of, captured_names, forget_notes, rename, taken_out

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto


def closed(node: NodeProto) -> tuple[NodeProto, dict[str, TensorProto]]:
    """The node with closed bodies, which takes what they capture behind its own operands; and their large constants."""
    made = type(node)()
    made.CopyFrom(node)
    weights: dict[str, TensorProto] = {}
    for attribute in made.attribute:
        graphs = [attribute.g] if attribute.HasField("g") else list(attribute.graphs)
        for number, body in enumerate(graphs):
            rename(body, {}, f"{attribute.name}.{number}/" if number else f"{attribute.name}/")
            weights.update(taken_out(body))
            forget_notes(body)
    made.input.extend(captured_names(made))
    return made, weights


def branch(node: NodeProto, condition: bool) -> GraphProto:
    """The body of an If that runs."""
    name = "then_branch" if condition else "else_branch"
    return next(attribute.g for attribute in node.attribute if attribute.name == name)


def has_bodies(node: NodeProto) -> bool:
    """Whether the operator has any."""
    return next(bodies_of(node), None) is not None
