"""Twice the operators take about twice the work, whatever the shape of the graph."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fusion_nets import fused

from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from tests.support.growth import calls_of

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


def layers(count: int) -> Net:
    """Equal layers in one cluster: each reduces rows, spreads them again, and adds what it read."""

    def net(x: Tensor) -> Tensor:
        for _ in range(count // 5):
            rows = ops.reduce_sum(ops.exp(x), axis=1, keep_dims=True)
            x = ops.add(x, ops.div(ops.tanh(x), rows))
        return x

    return net


def work(net: Net) -> int:
    graph = trace(net, spec((16, 8)))
    return calls_of(lambda: fused(graph))


@pytest.mark.parametrize("shape", [chain, fan, ladder, branches, layers])
def test_growth_is_near_linear(shape: Callable[[int], Net]) -> None:
    work(shape(10))  # what is made once
    assert work(shape(1000)) < 4 * work(shape(250)) * 1.25
