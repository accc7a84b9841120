"""Pool2D against its definition, window by window; an average counts the padding."""

import math

import numpy as np
import pytest
from operator_cases import TARGETS, Case, numbers


def pooled(x, kind, size, stride, pad, ceil):
    """``x`` is NCHW; pad is top, left, bottom, right."""
    top, left, bottom, right = pad
    rounded = math.ceil if ceil else math.floor
    rows, columns = (
        rounded((extent + pads - k) / s) + 1
        for extent, pads, k, s in zip(x.shape[2:], (top + bottom, left + right), size, stride, strict=True)
    )
    result = np.empty((*x.shape[:2], rows, columns), np.float64)
    for n, c, i, j in np.ndindex(result.shape):
        window = [
            float(x[n, c, y, z])
            for y in range(i * stride[0] - top, i * stride[0] - top + size[0])
            for z in range(j * stride[1] - left, j * stride[1] - left + size[1])
            if 0 <= y < x.shape[2] and 0 <= z < x.shape[3]
        ]
        result[n, c, i, j] = max(window) if kind == "max" else math.fsum(window) / (size[0] * size[1])
    return result.astype(x.dtype)


# shape, kernel, strides, pad, round up, data type
SIZES = [
    ((1, 1, 4, 4), (2, 2), (2, 2), (0, 0, 0, 0), False, "float32"),
    ((2, 3, 5, 7), (3, 3), (1, 1), (1, 1, 1, 1), False, "float32"),
    ((1, 2, 7, 7), (3, 3), (2, 2), (0, 0, 0, 0), True, "float32"),
    ((1, 2, 6, 6), (3, 3), (2, 2), (0, 0, 0, 0), True, "float32"),
    ((1, 1, 1, 1), (1, 1), (1, 1), (0, 0, 0, 0), False, "float32"),
    ((1, 1, 9, 5), (1, 3), (2, 1), (0, 1, 0, 1), False, "float32"),
    ((2, 1, 8, 8), (2, 3), (3, 2), (0, 0, 0, 1), True, "float32"),
    ((1, 17, 4, 4), (2, 2), (2, 2), (0, 0, 0, 0), False, "float32"),
    ((1, 2, 5, 5), (3, 3), (2, 2), (1, 1, 1, 1), False, "float16"),
    ((1, 2, 5, 5), (3, 3), (2, 2), (1, 1, 1, 1), False, "bfloat16"),
    ((1, 2, 5, 5), (2, 2), (2, 2), (0, 0, 0, 0), False, "float64"),
    ((1, 2, 3, 31), (3, 5), (1, 3), (1, 2, 1, 2), False, "float32"),
]  # fmt: skip


def cases():
    for number, (shape, size, stride, pad, ceil, kind) in enumerate(SIZES):
        x = numbers(number, shape, kind)
        for pool in ("max", "avg"):
            attrs = {
                "pool_type": pool, "global": False, "kernel_size": size, "strides": stride, "pad": pad,
                "round_mode": "ceil" if ceil else "floor", "data_layout": "NCHW",
            }  # fmt: skip
            yield Case("Pool2D", (x,), (pooled(x, pool, size, stride, pad, ceil),), attrs)


def other_layouts():
    x = numbers(3, (2, 3, 6, 5))
    for pool in ("max", "avg"):
        expected = pooled(x, pool, (3, 2), (1, 2), (1, 0, 1, 0), ceil=False)
        attrs = {"pool_type": pool, "global": False, "kernel_size": (3, 2), "strides": (1, 2), "pad": (1, 0, 1, 0)}
        last = np.ascontiguousarray(np.moveaxis(x, 1, -1)), np.ascontiguousarray(np.moveaxis(expected, 1, -1))
        yield Case("Pool2D", last[:1], last[1:], attrs | {"data_layout": "NHWC"})
        whole = pooled(x, pool, (6, 5), (1, 1), (0, 0, 0, 0), ceil=False)
        yield Case(
            "Pool2D", (x,), (whole,), {"pool_type": pool, "global": True, "kernel_size": (1, 1), "strides": (1, 1)}
        )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", [*cases(), *other_layouts()], ids=str)
def test_pool2d(case, target):
    case.agrees(target)
