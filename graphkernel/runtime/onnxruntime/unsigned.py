"""Values that are quantized to int8 and read as numbers again are uint8 in between, with a zero point 128 higher.

DequantizeLinear(QuantizeLinear(x, s, z int8), s, z)   ->   the same with z + 128 as uint8: the same numbers

On x86 onnxruntime's products of integers take uint8. It changes such pairs itself, but no value with several readers;
a convolution between a changed and an unchanged one then stays one of floating-point numbers.
"""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from graphkernel.ops.library.host_bodies import read_by
from graphkernel.runtime.onnxruntime.clips import Nodes

TAKE_UNSIGNED = frozenset({"x86_64", "AMD64"})
HALF = 128
ZERO_POINT = 2


def suits_machine() -> bool:
    """Whether onnxruntime wants uint8 here."""
    return platform.machine() in TAKE_UNSIGNED


def unsigned(nodes: Nodes, constants: dict[str, np.ndarray], kept: Collection[str]) -> list[Any]:
    """The nodes with such pairs changed; ``kept`` are results that others read. Adds zero points to ``constants``."""
    readers: dict[str, list[Any]] = defaultdict(list)
    for node in nodes:
        for name in read_by(node):
            readers[name].append(node)
    changed: set[str] = set()
    for node in nodes:
        name = node.output[0]
        if _is_signed(node, constants) and name not in kept and all(_undoes(r, node, constants) for r in readers[name]):
            changed.add(name)
    return [
        _changed(node, constants) if not changed.isdisjoint((*node.input[:1], *node.output)) else node for node in nodes
    ]


def _is_signed(node: Any, constants: Mapping[str, np.ndarray]) -> bool:
    if node.op_type != "QuantizeLinear" or len(node.input) <= ZERO_POINT:
        return False
    zero = constants.get(node.input[ZERO_POINT])
    return (
        zero is not None and zero.dtype == np.int8 and not any(each.name == "output_dtype" for each in node.attribute)
    )


def _undoes(reader: Any, node: Any, constants: Mapping[str, np.ndarray]) -> bool:
    if reader.op_type != "DequantizeLinear" or len(reader.input) <= ZERO_POINT or reader.input[0] != node.output[0]:
        return False
    zero = constants.get(reader.input[ZERO_POINT])
    return zero is not None and np.array_equal(zero, constants[node.input[ZERO_POINT]])


def _changed(node: Any, constants: dict[str, np.ndarray]) -> Any:
    own = node.input[ZERO_POINT]
    constants[f"{own}.unsigned"] = (constants[own].astype(np.int16) + HALF).astype(np.uint8)
    made = type(node)()
    made.CopyFrom(node)
    made.input[ZERO_POINT] = f"{own}.unsigned"
    return made
