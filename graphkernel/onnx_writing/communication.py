"""What processes give each other: onnxruntime's own operators where they say it, else MindSpore's names with ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphkernel.onnx_writing.writer import Write, Writer
from graphkernel.ops.library.communication import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    RECEIVE,
    REDUCE_SCATTER,
    SEND,
)
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.order import is_token


def _communicated(writer: Writer, node: Node, operands: tuple[str, ...], result: str) -> object:
    """The node without tokens: what comes first stands first. ONNX has no other order."""
    data = [name for name, value in zip(operands, node.args, strict=True) if not is_token(value)]
    found = _as_onnxruntime(node)
    domain = "mindspore" if found is None else "com.microsoft"
    given = {name: value for name, value in node.attrs.items() if name != "fusion"} if found is None else found
    results = [] if len(node.types) == 1 else [result]  # the last one is a token
    writer.append(node.op.name, data, results, **given)
    writer.nodes[-1].domain = domain
    return result


def _as_onnxruntime(node: Node) -> Mapping[str, Any] | None:
    """The attributes that onnxruntime's own operator has; None where it does not say this."""
    attrs = node.attrs
    is_of_all = attrs.str("group", "world") == "world" and node.args[0].type.dtype.name in (
        "float16",
        "float32",
        "float64",
    )
    if not is_of_all or (node.op is ALL_REDUCE and attrs.str("op", "sum") != "sum"):
        return None
    size = {"group_size": attrs.int("rank_size", 1)}
    return {ALL_REDUCE: {}, ALL_GATHER: {"axis": 0, **size}, ALL_TO_ALL: size}.get(node.op)


WRITERS: Mapping[Operator, Write] = {}
WHOLE_MODELS_ONLY: Mapping[Operator, Write] = dict.fromkeys(
    (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, ALL_TO_ALL, SEND, RECEIVE), _communicated
)
