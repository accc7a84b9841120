"""Twice the operators take about twice the time, whatever the shape of the graph."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from fusion_nets import fused

from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor

Net = Callable[[Tensor], Tensor | tuple[Tensor, ...]]


def chain(count: int) -> Net:
    """One operator behind the other."""

    def net(x: Tensor) -> Tensor:
        for number in range(count):
            x = ops.maximum(x, number + 0.5)
        return x

    return net


def fan(count: int) -> Net:
    """One value with many users, all of them results."""
    return lambda x: tuple(ops.mul(hub, number + 0.5) for hub in (ops.exp(x),) for number in range(count))


def ladder(count: int) -> Net:
    """Every value has two users."""

    def net(x: Tensor) -> tuple[Tensor, ...]:
        left, right = ops.exp(x), ops.neg(x)
        for _ in range(count // 2):
            left, right = ops.maximum(left, right), ops.minimum(left, right)
        return left, right

    return net


def branches(count: int) -> Net:
    """Many short chains from one input."""
    return lambda x: tuple(ops.reduce_sum(ops.mul(x, number + 0.5), axis=1) for number in range(count // 2))


def seconds(net: Net) -> float:
    graph = trace(net, spec((16, 8)))
    start = time.process_time()
    fused(graph)
    return time.process_time() - start


@pytest.mark.parametrize("shape", [chain, fan, ladder, branches])
def test_growth_is_near_linear(shape: Callable[[int], Net]) -> None:
    small = min(seconds(shape(500)) for _ in range(2))
    assert seconds(shape(2000)) < 4 * small * 3
