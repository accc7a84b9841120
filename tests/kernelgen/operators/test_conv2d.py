"""Conv2D against its definition, element by element, in NCHW, NHWC and blocked NCHWc."""

import numpy as np
import pytest
from operator_cases import TARGETS, Case, numbers

from kernelgen.errors import DescError


def convolved(x, weights, stride, dilation, groups):
    """``x`` is NCHW, weights are ``[O, C/groups, kh, kw]``."""
    kernel = weights.shape[2:]
    counts = [
        (extent - (k - 1) * d - 1) // s + 1
        for extent, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    ]
    wide, factors = x.astype(np.float64), weights.astype(np.float64)
    result = np.zeros((x.shape[0], weights.shape[0], *counts))
    per_group = weights.shape[0] // groups
    for n, o, i, j in np.ndindex(result.shape):
        for c, y, z in np.ndindex(weights.shape[1:]):
            channel = o // per_group * weights.shape[1] + c
            row, column = i * stride[0] + y * dilation[0], j * stride[1] + z * dilation[1]
            result[n, o, i, j] += wide[n, channel, row, column] * factors[o, c, y, z]
    return result.astype(x.dtype)


# image, weights, strides, dilations, groups, data type
SIZES = [
    ((1, 1, 4, 4), (1, 1, 1, 1), (1, 1), (1, 1), 1, "float32"), ((1, 3, 5, 5), (2, 3, 3, 3), (1, 1), (1, 1), 1, "float32"),
    ((2, 4, 7, 6), (6, 2, 3, 2), (2, 1), (1, 1), 2, "float32"), ((1, 2, 9, 8), (3, 2, 3, 3), (1, 2), (2, 3), 1, "float32"),
    ((1, 5, 6, 6), (5, 1, 3, 3), (1, 1), (1, 1), 5, "float32"), ((1, 1, 1, 17), (4, 1, 1, 5), (1, 3), (1, 1), 1, "float32"),
    ((1, 7, 3, 3), (8, 7, 3, 3), (1, 1), (1, 1), 1, "float32"), ((3, 2, 4, 5), (1, 2, 2, 2), (2, 2), (1, 1), 1, "float32"),
    ((1, 3, 5, 5), (2, 3, 3, 3), (1, 1), (1, 1), 1, "float16"), ((1, 3, 5, 5), (2, 3, 3, 3), (1, 1), (1, 1), 1, "float64"),
    ((1, 16, 4, 4), (17, 16, 1, 1), (1, 1), (1, 1), 1, "float32"), ((1, 3, 5, 5), (2, 3, 2, 2), (1, 1), (1, 1), 1, "int32"),
]  # fmt: skip


def cases():
    for number, (shape, kernel, stride, dilation, groups, kind) in enumerate(SIZES):
        x, weights = numbers(number, shape, kind), numbers(number + 40, kernel, kind)
        y = convolved(x, weights, stride, dilation, groups)
        attrs = {"stride": (1, 1, *stride), "dilation": (1, 1, *dilation), "group": groups}
        yield Case("Conv2D", (x, weights), (y,), attrs)
        last = [np.ascontiguousarray(np.moveaxis(a, 1, -1)) for a in (x, weights, y)]
        yield Case("Conv2D", tuple(last[:2]), (last[2],), attrs | {"format": "NCHW"}, formats=("NHWC", "NHWC"))


def split(x, dim, block):
    """Dim ``dim`` in blocks, the elements of a block last."""
    shape = (*x.shape[:dim], x.shape[dim] // block, block, *x.shape[dim + 1 :])
    return np.ascontiguousarray(np.moveaxis(x.reshape(shape), dim + 1, -1))


def blocked_cases():
    for number, (channels, outer, block, lanes) in enumerate(
        [
            (4, 4, 4, 4), (8, 12, 4, 6), (16, 16, 16, 8), (2, 3, 1, 3), (8, 8, 8, 1), (32, 16, 16, 16), (3, 5, 3, 5),
            (1, 16, 1, 16),
        ]
    ):  # fmt: skip
        x, weights = numbers(number, (2, channels, 5, 4)), numbers(number + 9, (outer, channels, 3, 2))
        bias = numbers(number + 20, (1, outer, 1, 1))
        stride, dilation = ((2, 1), (1, 1)) if number % 2 else ((1, 1), (2, 3))
        y = convolved(x, weights, stride, dilation, 1)
        inputs = split(x, 1, block), split(split(weights, 1, block), 0, lanes)
        attrs, formats = {"stride": stride, "dilation": dilation}, (f"NCHW{block}c",)
        yield Case("Conv2D", inputs, (split(y, 1, lanes),), attrs, formats)
        yield Case("Conv2D", (*inputs, split(bias, 1, lanes)), (split(y + bias, 1, lanes),), attrs, formats)


def depth_wise_cases():
    for number, (channels, block) in enumerate([(4, 4), (8, 4), (16, 16), (5, 5), (6, 1), (24, 8)]):
        x, weights = numbers(number, (1, channels, 5, 6)), numbers(number + 9, (channels, 1, 3, 3))
        y = convolved(x, weights, (1, 1), (1, 1), channels)
        turned = np.moveaxis(weights.reshape(channels // block, block, 1, 3, 3), 1, -1)[..., None, :]
        attrs = {"stride": (1, 1), "is_depth_wise": True}
        inputs = split(x, 1, block), np.ascontiguousarray(turned)
        yield Case("Conv2D", inputs, (split(y, 1, block),), attrs, formats=(f"NCHW{block}c",))


def channels_last_cases():
    """Those of a graph in NHWC: weights are ``[kh, kw, C/groups, O]``, and padding is an attribute."""
    pads = ((0, 0, 0, 0), (1, 1, 1, 1), (2, 0, 0, 3))
    for number, (shape, kernel, stride, dilation, groups, kind) in enumerate(SIZES):
        x, weights, pad = numbers(number, shape, kind), numbers(number + 40, kernel, kind), pads[number % 3]
        y = convolved(np.pad(x, ((0, 0), (0, 0), pad[:2], pad[2:])), weights, stride, dilation, groups)
        inputs = np.ascontiguousarray(np.moveaxis(x, 1, -1)), np.ascontiguousarray(np.transpose(weights, (2, 3, 1, 0)))
        attrs = {"stride": stride, "dilation": dilation, "group": groups, "pad": pad, "format": "NHWC"}
        if kind != "int32":
            yield Case("Conv2D", inputs, (np.ascontiguousarray(np.moveaxis(y, 1, -1)),), attrs)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "case",
    [*cases(), *blocked_cases(), *depth_wise_cases(), *channels_last_cases()],
    ids=lambda c: f"{c}{c.formats[:1]}",
)
def test_conv2d(case, target):
    case.agrees(target)


@pytest.mark.parametrize(("weights", "attrs"), [
    ((1, 2, 3, 2, 8, 4), {}), ((1, 1, 3, 2, 4, 4), {}), ((1, 1, 3, 2, 1, 4), {"is_depth_wise": True}),
])  # fmt: skip
def test_blocked_weights_that_do_not_fit_are_refused(weights, attrs):
    x, y = numbers(0, (1, 2, 5, 4, 4)), numbers(1, (1, weights[0], 3, 3, weights[5]))
    with pytest.raises(DescError, match="do not fit the channels"):
        _ = Case("Conv2D", (x, numbers(2, weights)), (y,), {"stride": (1, 1), **attrs}, formats=("NCHW4c",)).desc
