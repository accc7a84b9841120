"""A minimum of a maximum, both with numbers, and a maximum with nought, as onnxruntime computes them within a convolution.

Min(Max(x, low), high)   ->   Clip(x, low, high)     both keep NaN
Max(x, 0)                ->   Relu(x)                both keep NaN

Onnxruntime's Max is computed by itself, and in NCHW: every convolution beside it changes its layout before and behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from graphkernel.ops.library.host_bodies import read_by

Nodes = Sequence[Any]
"""ONNX nodes in order."""

RECTIFIED = ("float32", "float64")
"""What onnxruntime has a Relu for on a CPU."""


def clipped(nodes: Nodes, constants: Mapping[str, np.ndarray], kept: Collection[str]) -> list[Any]:
    """The ``nodes`` with Clip and Relu in their places; ``constants`` are the numbers that they read, ``kept`` results
    that others read.
    """
    from onnx import helper

    readers = Counter(name for node in nodes for name in read_by(node))
    makers = {node.output[0]: node for node in nodes if node.op_type == "Max"}
    gone: set[str] = set()
    made: list[Any] = []
    for node in nodes:
        inner, high = _sides(node, "Min", constants)
        maker = makers.get(inner)
        value, low = ("", "") if maker is None else _sides(maker, "Max", constants)
        if value and low and high and readers[inner] == 1 and inner not in kept:
            gone.add(inner)
            made.append(helper.make_node("Clip", [value, low, high], node.output, name=node.name))
        else:
            made.append(node)
    return [_rectified(node, constants) for node in made if node.output[0] not in gone]


def _rectified(node: Any, constants: Mapping[str, np.ndarray]) -> Any:
    """A maximum with nought as Relu, any other node as it is."""
    from onnx import helper

    value, low = _sides(node, "Max", constants)
    if not value or constants[low].dtype.name not in RECTIFIED or constants[low] != 0:
        return node
    return helper.make_node("Relu", [value], node.output, name=node.name)


def _sides(node: Any, op_type: str, constants: Mapping[str, np.ndarray]) -> tuple[str, str]:
    """The operand and the number of such a node; empty names when it is no such node."""
    if node.op_type != op_type or len(node.input) != 2:
        return "", ""
    numbers = [name for name in node.input if name in constants and constants[name].ndim == 0]
    others = [name for name in node.input if name not in numbers]
    return (others[0], numbers[0]) if len(others) == 1 else ("", "")
