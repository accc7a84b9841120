"""Sums into tables of which few rows get anything are stored as those rows, and updates are the same to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Graph

ROWS, WIDTH = 2048, 160


def update(ids: Tensor, dy: Tensor, table: Tensor, moment: Tensor) -> tuple[Tensor, Tensor]:
    moved = 0.9 * moment + 0.1 * ops.unsorted_segment_sum(dy, ids, ROWS)
    return ops.assign(moment, moved), ops.assign(table, table - 0.5 * moved)


def step(count: int) -> Graph:
    table = gk.spec((ROWS, WIDTH))
    return gk.trace(update, gk.spec((count,), "int32"), gk.spec((count, WIDTH)), table, table)


def sums(graph: Graph) -> list[int]:
    """The elements of each sum by segments that is stored."""
    inner = (each for node in graph.operators for each in (node.body.operators if node.body else (node,)))
    return [int(str(each.types[0].size)) for each in inner if each.op.name == "UnsortedSegmentSum"]


@pytest.mark.parametrize("ids", [range(64), [7] * 64, [2047, -1, 2048, 0] * 16, [-(2**31), 2**31 - 1] * 32])
def test_rows_that_occur_are_summed_apart(ids: list[int]) -> None:
    graph = step(64)
    assert sorted(sums(gk.optimize(graph))) == [ROWS, 65 * WIDTH]
    assert sums(gk.optimize(graph, flags="--disable_pass=cluster.few_segments")) == [ROWS * WIDTH]
    random = np.random.default_rng(3)
    dy, table, moment = (random.standard_normal((n, WIDTH)).astype(np.float32) for n in (64, ROWS, ROWS))
    found: list[np.ndarray[Any, Any]] = []
    for flags in ("", "--disable_pass=cluster.few_segments"):
        arrays = table.copy(), moment.copy()
        gk.compile(graph, flags=flags)(np.asarray(ids, np.int32), dy, *arrays)
        found.append(np.stack(arrays))
    np.testing.assert_array_equal(found[0], found[1])


def test_tables_that_are_full_small_or_results_stay() -> None:
    assert sums(gk.optimize(step(ROWS // 2))) == [ROWS * WIDTH]
    specs = gk.spec((8,), "int32"), gk.spec((8, WIDTH))
    small = gk.trace(lambda ids, dy: ops.exp(ops.unsorted_segment_sum(dy, ids, 64)), *specs)
    result = gk.trace(lambda ids, dy: ops.unsorted_segment_sum(dy, ids, ROWS), *specs)
    assert sums(gk.optimize(small)) == [64 * WIDTH]
    assert sums(gk.optimize(result)) == [ROWS * WIDTH]
