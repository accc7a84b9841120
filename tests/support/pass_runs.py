"""Running one pass with everything that must hold of every pass, and nets as kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphkernel.decisions import DecisionLog
from graphkernel.ops import OPS
from graphkernel.options import Options
from graphkernel.passes.base import Context, Pass
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Builder, Graph
from kernelgen.tensor.text import parse
from kernelgen.tensor.verify import verify

Array = np.ndarray[Any, np.dtype[Any]]
HARD = (0.0, -0.0, 1.0, -1.5, 1e-8, -3e-8, 6e-5, 0.1, 2049.0, -65519.0, 65520.0, 7e4, -1e30, np.inf, -np.inf, np.nan)


def checked(entry: Pass, graph: Graph, **options: Any) -> Graph:
    """The graph after the pass, which is valid, readable, of the same types, the same twice and final."""
    context = Context(Options(**options), log=DecisionLog())
    after = entry(graph, context)
    verify(after)
    assert parse(str(after), OPS) == after
    assert [value.type for value in after.outputs] == [value.type for value in graph.outputs]
    assert entry(after, context) is after, "a second run changes more"
    assert str(entry(graph, context)) == str(after), "the same input gives another output"
    return after


def as_kernel(graph: Graph) -> Graph:
    """A graph that calls the given one as a kernel."""
    builder = Builder()
    inputs = tuple(builder.parameter(value.node.name, value.type) for value in graph.inputs)
    return Graph("main", inputs, builder.fused(graph, inputs).outs)


def same_bits(before: Graph, after: Graph, arrays: Sequence[Array]) -> None:
    """Asserts equal results, NaN being equal to NaN."""
    for expected, got in zip(evaluate(before, arrays), evaluate(after, arrays), strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got.astype(np.float64), expected.astype(np.float64))


def hard_values(shape: Sequence[int], dtype: Any, seed: int = 0) -> Array:
    """Zeros, limits of narrow types, ties, infinities and NaN, between ordinary numbers."""
    generator = np.random.default_rng(seed)
    count = int(np.prod(shape))
    ordinary = generator.standard_normal(count) * 10.0 ** generator.integers(-6, 6, count)
    hard = generator.choice(np.asarray(HARD), count)
    with np.errstate(all="ignore"):
        return np.where(generator.random(count) < 0.5, hard, ordinary).reshape(shape).astype(dtype)
