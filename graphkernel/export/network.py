"""The graph as plain data: nodes in order with their operands and types, for programs that call the kernels."""

from __future__ import annotations

from typing import Any

from graphkernel.expanders.lists import NATIVE_ON_ASCEND
from graphkernel.ops.library.host import operator_name
from kernelgen.tensor.graph import Graph, Node, Value


def describe(graph: Graph) -> dict[str, Any]:
    """Inputs, nodes and outputs by name. A fused node names its kernel; constants stand with their types only.

    A kernel that holds one operator of the device's own says so under ``stands_for``: that operator with its attributes,
    operands and results, in its own order; ``None`` for results that nobody needs.
    """
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
    ends = {"inputs": [_operand(arg) for arg in node.args], "outputs": [_value(out) for out in node.outs]}
    return known | kernel | ends | _named(node)


def _named(node: Node) -> dict[str, Any]:
    """The operator that a kernel stands for, when it is the device's own: it may be called in the kernel's place."""
    inside = node.body.operators if node.body is not None else ()
    named = next((inner for inner in inside if inner.op.name in NATIVE_ON_ASCEND), None)
    if node.body is None or named is None:
        return {}
    given = dict(zip(node.body.inputs, node.args, strict=True))
    kept = dict(zip(node.body.outputs, node.outs, strict=True))
    operator = {
        "operator": named.op.name,
        "attributes": {key: str(value) for key, value in named.attrs.items()},
        "inputs": [_operand(given.get(arg, arg)) for arg in named.args],
        "outputs": [_name(kept[out]) if out in kept else None for out in named.outs],
    }
    return {"stands_for": operator}


def _operand(value: Value) -> str | dict[str, str]:
    return _value(value) if value.is_known else _name(value)


def _value(value: Value) -> dict[str, str]:
    return {"name": _name(value), "type": str(value.type)}


def _name(value: Value) -> str:
    """A node's name; of a node with several results also which."""
    return value.node.name if len(value.node.outs) == 1 else f"{value.node.name}:{value.index}"
