"""The weights of a network as a flat mapping: what each is like, and arrays for a whole graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphkernel.frontends.trace import spec
from graphkernel.ops import Tensor
from kernelgen.tensor.dims import static_extents
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import TensorType

Specs = Mapping[str, TensorType]
Weights = Mapping[str, Tensor]
POSITIVE = ("gamma", "variance", "second")  # weights with these names scale or are squares
SMALL = ("bias", "beta", "mean", "first")


def dense(name: str, inputs: int, outputs: int, bias: bool = True, dtype: str = "float32") -> dict[str, TensorType]:
    """The specs of ``x @ weight + bias``."""
    specs = {f"{name}_weight": spec((inputs, outputs), dtype)}
    return specs | ({f"{name}_bias": spec(outputs, dtype)} if bias else {})


def norm(name: str, size: int, dtype: str = "float32") -> dict[str, TensorType]:
    """The specs of a normalisation's scale and shift."""
    return {f"{name}_gamma": spec(size, dtype), f"{name}_beta": spec(size, dtype)}


def causal_mask(tokens: int, dtype: str) -> np.ndarray[Any, Any]:
    """What is added to the scores [tokens, tokens] of a decoder: the least number where a token comes later, else 0."""
    return np.triu(np.full((tokens, tokens), np.finfo(dtype).min, dtype), 1)


def draw(graph: Graph, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Arrays for the inputs of a graph: values keep their size from layer to layer, integers are 0 or 1.

    Matrices and kernels are normal with the deviation ``1 / sqrt(fan in)``; scales and second moments lie near 1.
    """
    generator = np.random.default_rng(seed)
    return [
        _array(generator, value.node.name, value.type, static_extents(value.type.shape) or ()) for value in graph.inputs
    ]


def _array(generator: np.random.Generator, name: str, of: TensorType, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if not of.dtype.is_float:
        return generator.integers(0, 2, shape).astype(of.dtype.numpy)
    normal = generator.standard_normal(shape, np.float32)
    kind = name.rpartition("_")[2]
    if kind in POSITIVE:
        normal = 1 + np.float32(0.1) * np.abs(normal)
    elif kind in SMALL:
        normal *= np.float32(0.1)
    elif kind in ("weight", "table") and len(shape) > 1:
        fan_in = shape[0] if len(shape) == 2 else int(np.prod(shape[1:]))
        normal *= np.float32(1 / np.sqrt(fan_in))
    return normal.astype(of.dtype.numpy)
