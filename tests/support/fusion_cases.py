"""The cases of the golden file of the named fusion passes, with arrays for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from graphkernel.decisions import DecisionLog
from graphkernel.options import Options
from graphkernel.passes.base import Context
from graphkernel.passes.named_fusion import FUSION_GROUP
from kernelgen.tensor.bind import concrete_shape
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import TensorType
from tests.support.golden import Block, blocks

Array = np.ndarray[Any, np.dtype[Any]]

FILE = Path(__file__).parents[1] / "golden" / "passes" / "fusion_group.gk"
CASES = {block.case: block for block in blocks(FILE.read_text())}
PASSES = {entry.name: entry for entry in FUSION_GROUP}
SYMBOLS = {"B": 2, "H": 2, "N": 3, "T": 5, "K": 2, "W": 8}


def fused(graph: Graph, block: Block, **options: object) -> tuple[Graph, DecisionLog]:
    """The graph after the passes of a case, and what they decided."""
    context = Context(Options.parse(options))
    for name in block.passes:
        graph = PASSES[name](graph, context)
    return graph, context.log


def arrays_for(graph: Graph) -> list[Array]:
    """Arrays of moderate size; a mask of zeros and ones, positive scales."""
    rng = np.random.default_rng(11)
    return [_array(value.node.name, value.type, rng) for value in graph.inputs]


def _array(name: str, type_: TensorType, rng: np.random.Generator) -> Array:
    shape = concrete_shape(type_.shape, SYMBOLS)
    if name == "mask":
        found = rng.integers(0, 2, shape)
        found[..., 0] = 1
    elif type_.dtype.is_integer:
        found = rng.integers(-9, 10, shape)
    else:
        found = rng.uniform(0.5, 9.0, shape) if name in ("scale", "s") else rng.standard_normal(shape)
    return np.asarray(found).astype(type_.dtype.numpy)


def assert_near(found: Array, expected: Array) -> None:
    """Up to the rounding of float16, in which fused operators round less often; integers up to one step."""
    tolerance = 1.0 if expected.dtype.kind == "i" else 4e-3 if expected.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), rtol=0 if tolerance == 1.0 else tolerance, atol=tolerance
    )
