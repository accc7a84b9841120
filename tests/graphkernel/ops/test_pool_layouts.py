"""Poolings of images with channels last: those with channels first, transposed; gradients too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphkernel
from graphkernel import ops
from graphkernel.ops import Tensor

IMAGE = np.random.default_rng(0).permutation(2 * 7 * 6 * 3).reshape(2, 7, 6, 3).astype(np.float32)
WINDOW: dict[str, Any] = {"kernel_size": (3, 2), "stride": (2, 1), "pad": (1, 0, 1, 1)}
AKG: dict[str, Any] = {"kernel_size": (3, 2), "strides": (2, 1), "pad": (1, 0, 1, 1)}
POOLS: dict[str, Callable[[Any, str], Any]] = {
    "maximum": lambda x, layout: ops.max_pool(x, ceil_mode=True, format=layout, **WINDOW),
    "mean": lambda x, layout: ops.avg_pool(x, format=layout, **WINDOW),
    "maximum of AKG": lambda x, layout: ops.pool2d(x, "max", round_mode="ceil", data_layout=layout, **AKG),
    "mean of AKG": lambda x, layout: ops.pool2d(x, "avg", data_layout=layout, **AKG),
    "mean of all": lambda x, layout: ops.pool2d(x, "avg", True, data_layout=layout),
    "maximum of all": lambda x, layout: ops.pool2d(x, "max", True, data_layout=layout),
}


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_channels_last(pool: Callable[[Any, str], Any]) -> None:
    def loss(x: Tensor, layout: str) -> Tensor:
        pooled = pool(ops.transpose(x, (0, 3, 1, 2)), "NCHW") if layout == "NCHW" else pool(x, layout)
        last = ops.transpose(pooled, (0, 2, 3, 1)) if layout == "NCHW" else pooled
        weights = np.arange(int(str(last.type.size)), dtype=np.float32).reshape([int(str(dim)) for dim in last.shape])
        return ops.reduce_sum(last * weights)

    found, expected = (
        graphkernel.value_and_grad(graphkernel.trace(lambda x, layout=layout: loss(x, layout), IMAGE))
        for layout in ("NHWC", "NCHW")
    )
    for one, other in zip(
        *(graphkernel.compile(graph, 0, host="numpy")(IMAGE) for graph in (found, expected)), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5)
