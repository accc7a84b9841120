"""The gradients of the convolution are its adjoints: <conv(x, w), dy> = <x, dx> = <w, dw>."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.errors import TypeRuleError

WINDOWS = [
    {},
    {"stride": (2, 1), "pad": (1, 0, 2, 1), "dilation": (1, 2)},
    {"stride": (3, 2), "pad": (0, 2, 1, 1), "group": 2},  # windows that leave a rim unread
]


@pytest.mark.parametrize("window", WINDOWS)
def test_adjoint_identities(window: dict[str, Any]) -> None:
    generator = np.random.default_rng(0)
    group = int(str(window.get("group", 1)))
    x, weight = generator.standard_normal((2, 4, 9, 8)), generator.standard_normal((6, 4 // group, 3, 2))
    y = ops.apply(ops.OPS["Conv2D"], x, weight, **window)
    dy = generator.standard_normal(y.shape)
    dx = ops.conv2d_backprop_input(dy, weight, input_size=x.shape, **window)
    dweight = ops.conv2d_backprop_filter(dy, x, filter_size=weight.shape, **window)
    np.testing.assert_allclose(np.vdot(x, dx), np.vdot(y, dy))
    np.testing.assert_allclose(np.vdot(weight, dweight), np.vdot(y, dy))


@pytest.mark.parametrize("window", WINDOWS)
def test_channels_last_are_the_same_numbers(window: dict[str, Any]) -> None:
    generator = np.random.default_rng(0)
    group = int(str(window.get("group", 1)))
    x, shape = generator.standard_normal((2, 4, 9, 8)), (6, 4 // group, 3, 2)
    dy = generator.standard_normal(ops.conv2d(x, np.ones(shape), **window).shape)
    expected = ops.conv2d_backprop_filter(dy, x, filter_size=shape, **window)
    last = tuple(np.ascontiguousarray(np.moveaxis(image, 1, -1)) for image in (dy, x))
    size = (3, 2, 4 // group, 6)
    found = ops.conv2d_backprop_filter(*last, filter_size=size, **window, format="NHWC")
    np.testing.assert_array_equal(np.transpose(found, (3, 2, 0, 1)), expected)


def test_a_size_that_does_not_fit_is_refused() -> None:
    dy, weight = np.ones((1, 2, 3, 3)), np.ones((2, 1, 3, 3))
    with pytest.raises(TypeRuleError, match="the convolution gives"):
        ops.conv2d_backprop_input(dy, weight, input_size=(1, 1, 6, 6))
