"""Stencils in one kernel: which operators join, that numbers stay, and what is no stencil."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.ops import Tensor

ROWS, COLUMNS = 61, 47


def corners(x: Tensor) -> Tensor:
    """Harris' corners: three products of two gradients, each summed over a box, which three results read."""
    dx = x[:-2, 2:] - x[:-2, :-2] + 2.0 * (x[1:-1, 2:] - x[1:-1, :-2]) + x[2:, 2:] - x[2:, :-2]
    dy = x[2:, :-2] - x[:-2, :-2] + 2.0 * (x[2:, 1:-1] - x[:-2, 1:-1]) + x[2:, 2:] - x[:-2, 2:]
    xx, yy, xy = (_box(each) for each in (dx * dx, dy * dy, dx * dy))
    return xx * yy - xy * xy - 0.04 * (xx + yy) * (xx + yy)


def _box(x: Tensor) -> Tensor:
    rows = x[:, :-2] + x[:, 1:-1] + x[:, 2:]
    return rows[:-2] + rows[1:-1] + rows[2:]


def in_time(x: Tensor) -> Tensor:
    """Three steps of a wave, each of which reads the two before."""
    now, before = x, x * 0.5
    for _ in range(3):
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
        now, before = now[1:-1, 1:-1] * 1.5 - before[1:-1, 1:-1] + 0.125 * around, now[1:-1, 1:-1]
    return now


def halved(x: Tensor) -> tuple[Tensor, Tensor]:
    """Two levels of a pyramid; both are results."""
    levels: list[Tensor] = []
    for _ in range(2):
        wide = ops.tanh(x[:, :-2] + x[:, 1:-1] + x[:, 2:])
        x = wide[:-2:2, ::2] + wide[1:-1:2, ::2]
        levels.append(x)
    return levels[0], levels[1]


@pytest.mark.parametrize("program", [corners, in_time, halved], ids=lambda program: program.__name__)
def test_a_chain_of_stencils_is_one_kernel(program: Callable[[Tensor], Tensor]) -> None:
    compiled = gk.compile(gk.trace(program, gk.spec((ROWS, COLUMNS), "float32")))
    assert compiled.report.kernel_calls == 1
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    unfused = gk.compile(gk.trace(program, gk.spec((ROWS, COLUMNS), "float32")), 0)
    for result, expected in zip(compiled(x), unfused(x), strict=True):
        np.testing.assert_allclose(result, expected, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("target", ["gpu", "ascend"])
@pytest.mark.parametrize("program", [corners, in_time, halved], ids=lambda program: program.__name__)
def test_a_chain_of_stencils_is_one_kernel_on_a_device(program: Callable[[Tensor], Tensor], target: str) -> None:
    graph = gk.optimize(gk.trace(program, gk.spec((ROWS, COLUMNS), "float32")), target=target)
    assert [node.body is not None for node in graph.operators] == [True]


def test_pieces_are_no_stencil() -> None:
    """A third of an axis: a kernel of the whole would wait for all of it."""

    def thirds(x: Tensor) -> tuple[Tensor, ...]:
        whole = ops.exp(x)
        return tuple(ops.exp(whole[:, k * 15 : k * 15 + 15]) for k in range(3))

    merges = {program: _merges(program) for program in (thirds, corners)}
    assert "stencil" not in merges[thirds]
    assert "stencil" in merges[corners]


def _merges(program: Callable[[Tensor], Tensor | tuple[Tensor, ...]]) -> str:
    """What is said about areas that were merged."""
    report = gk.explain(gk.trace(program, gk.spec((ROWS, COLUMNS), "float32")))
    return " ".join(str(each) for each in report.decisions if each.code == "fused-pattern")
