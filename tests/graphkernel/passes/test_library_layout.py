"""A library hands over the images that it cannot compute within its convolutions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.cluster.convolution_cost import region_cost
from graphkernel.ops import Tensor
from graphkernel.passes.format.image_regions import ImageRegion, image_regions

WEIGHTS = np.random.default_rng(0).standard_normal((8, 8, 3, 3), np.float32)
BIAS = np.random.default_rng(1).standard_normal((1, 8, 1, 1), np.float32)


def _clipped(x: Tensor) -> Tensor:
    return ops.minimum(ops.maximum(x, 0.0), 6.0)


def _hard_swish(x: Tensor) -> Tensor:
    return x * _clipped(x + 3.0) * 0.1


def _normalized(x: Tensor) -> Tensor:
    return x - ops.reduce_mean(x, (2, 3), keep_dims=True)


def _region(between: Callable[[Tensor], Tensor]) -> ImageRegion:
    """Two convolutions, with a bias and ``between`` in between."""

    def network(x: Tensor) -> Tensor:
        first = ops.conv2d(x, WEIGHTS, pad=(1, 1, 1, 1)) + BIAS
        return ops.conv2d(between(first), WEIGHTS, pad=(1, 1, 1, 1))

    (region,) = image_regions(gk.trace(network, gk.spec((1, 8, 16, 16))))
    return region


@pytest.mark.parametrize(
    ("between", "handed"),
    [
        (lambda x: x, []),
        (_clipped, []),
        (lambda x: ops.maximum(x + x, 0.0), []),
        (lambda x: ops.max_pool(ops.tanh(x), (2, 2)), []),
        (lambda x: ops.neg(ops.exp(x)), ["Add", "Neg"]),
        (_hard_swish, ["Add", "Mul"]),
        (_normalized, ["Add", "Sub"]),
    ],
    ids=["bias", "clip", "residual", "pool", "pointwise", "hard swish", "mean"],
)
def test_a_library_hands_over_what_it_cannot_compute_within_its_convolutions(
    between: Callable[[Tensor], Tensor], handed: list[str]
) -> None:
    region = _region(between)
    assert [value.op.name for value in region.handed] == handed


def test_it_pays_for_each_with_a_call_and_a_change_of_layout() -> None:
    region = _region(_hard_swish)
    joined, apart = (region_cost(region.convolutions, region.borders, handed) for handed in ((), region.handed))
    assert apart.own == joined.own
    assert apart.library > joined.library + 2 * 8 * 16 * 16
