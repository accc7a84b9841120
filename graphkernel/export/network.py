"""The graph as plain data: nodes in order with their operands and types, for programs that call the kernels."""

from __future__ import annotations

from typing import Any

from graphkernel.ir.graph import Graph, Node, Value
from graphkernel.ops.host import operator_name


def describe(graph: Graph) -> dict[str, Any]:
    """Inputs, nodes and outputs by name. A fused node names its kernel; constants stand with their types only."""
    return {
        "graph": graph.name,
        "inputs": [_value(value) for value in graph.inputs],
        "nodes": [_node(node) for node in graph.operators],
        "outputs": [_name(value) for value in graph.outputs],
        "updated": {_name(graph.outputs[a.output]): _name(graph.inputs[a.input]) for a in graph.aliases},
    }


def _node(node: Node) -> dict[str, Any]:
    known = {"name": node.name, "operator": operator_name(node)}
    kernel = (
        {"kernel": node.body.name}
        if node.body is not None
        else {"attributes": {k: str(v) for k, v in node.attrs.items()}}
    )
    return (
        known | kernel | {"inputs": [_operand(arg) for arg in node.args], "outputs": [_value(out) for out in node.outs]}
    )


def _operand(value: Value) -> str | dict[str, str]:
    return _value(value) if value.constant is not None else _name(value)


def _value(value: Value) -> dict[str, str]:
    return {"name": _name(value), "type": str(value.type)}


def _name(value: Value) -> str:
    """A node's name; of a node with several results also which."""
    return value.node.name if len(value.node.outs) == 1 else f"{value.node.name}:{value.index}"
