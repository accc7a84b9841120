"""A number for each channel that is added to a convolution is its bias, as exporters write it.

Add(Conv(x, w), b)   ->   Conv(x, w, b)     b of shape [channels, 1, 1]

onnxruntime joins them itself where it knows the weights, but not where they are quantized: there a convolution between
integers that lacks its bias stays one of floating-point numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np

from graphkernel.ops.library.host_bodies import read_by
from graphkernel.runtime.onnxruntime.clips import Nodes

SPATIAL_AXES = 2


def with_biases(nodes: Nodes, constants: dict[str, np.ndarray], kept: Collection[str]) -> list[Any]:
    """The nodes with such sums within the convolutions; ``kept`` are results that others read. Adds biases to ``constants``."""
    readers = Counter(name for node in nodes for name in read_by(node))
    convolutions = {node.output[0]: node for node in nodes if _lacks_bias(node)}
    gone: set[str] = set()
    made: list[Any] = []
    for node in nodes:
        inner, bias = _sides(node, convolutions, constants)
        if bias and readers[inner] == 1 and inner not in kept:
            gone.add(inner)
            constants[f"{bias}.bias"] = constants[bias].reshape(-1)
            made.append(_with_bias(convolutions[inner], node, f"{bias}.bias"))
        else:
            made.append(node)
    return [node for node in made if node.output[0] not in gone]


def _lacks_bias(node: Any) -> bool:
    strides = next((list(each.ints) for each in node.attribute if each.name == "strides"), [])
    return node.op_type == "Conv" and len(node.input) == 2 and len(strides) == SPATIAL_AXES


def _sides(node: Any, convolutions: Collection[str], constants: dict[str, np.ndarray]) -> tuple[str, str]:
    """The convolution and the bias of a sum; empty names when it is no such sum."""
    if node.op_type != "Add":
        return "", ""
    biases = [name for name in node.input if name in constants and _is_bias(constants[name])]
    others = [name for name in node.input if name in convolutions]
    return (others[0], biases[0]) if len(biases) == len(others) == 1 else ("", "")


def _is_bias(array: np.ndarray) -> bool:
    """One number for each channel, and as many channels as the convolution has: a single one may be for all."""
    return array.shape[-3:] == (array.size, 1, 1) and array.size > 1


def _with_bias(convolution: Any, total: Any, bias: str) -> Any:
    made = type(convolution)()
    made.CopyFrom(convolution)
    made.input.append(bias)
    made.output[:] = total.output
    made.name = total.name
    return made
