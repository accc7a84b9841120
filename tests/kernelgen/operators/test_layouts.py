"""LayoutTransform and TransData against loops over elements; blocks are padded with zeros."""

import numpy as np
import pytest
from operator_cases import TARGETS, Case, numbers


def blocked(x, block):
    """NCHW -> NCHW<block>c."""
    batch, channels, height, width = x.shape
    result = np.zeros((batch, -(-channels // block), height, width, block), x.dtype)
    for n, c, h, w in np.ndindex(x.shape):
        result[n, c // block, h, w, c % block] = x[n, c, h, w]
    return result


def fractal(x):
    """``[.., M, N] -> [.., N/16, M/16, 16, 16]``."""
    *outer, rows, columns = x.shape
    result = np.zeros((*outer, -(-columns // 16), -(-rows // 16), 16, 16), x.dtype)
    for *o, m, n in np.ndindex(x.shape):
        result[(*o, n // 16, m // 16, m % 16, n % 16)] = x[(*o, m, n)]
    return result


def move(op, x, y, source, target):
    return Case(op, (x,), (y,), {"src_format": source, "dst_format": target})


def cases():
    for number, (shape, block) in enumerate([
        ((1, 16, 2, 3), 16), ((2, 32, 3, 1), 16), ((1, 5, 2, 2), 4), ((2, 8, 1, 5), 8), ((1, 17, 2, 2), 16), ((3, 1, 1, 1), 4),
    ]):  # fmt: skip
        x = numbers(number, shape)
        y, word = blocked(x, block), f"NCHW{block}c"
        last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        yield move("LayoutTransform", x, y, "NCHW", word)
        yield move("LayoutTransform", y, x, word, "NCHW")
        yield move("LayoutTransform", x, last, "NCHW", "NHWC")
        yield move("LayoutTransform", last, y, "NHWC", word)
        if block == 16:
            yield move("TransData", x, y, "NCHW", "NC1HWC0")
            yield move("TransData", y, x, "NC1HWC0", "DefaultFormat")


def matrices():
    for number, shape in enumerate([(16, 16), (32, 48), (5, 7), (17, 31), (2, 16, 33), (1, 16), (16, 1), (2, 3, 4, 5)]):
        kind = ("float32", "float16")[number % 2]
        x = numbers(number, shape, kind)
        yield move("TransData", x, fractal(x), "DefaultFormat", "FRACTAL_NZ")
        yield move("TransData", fractal(x), x, "FRACTAL_NZ", "DefaultFormat")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", [*cases(), *matrices()], ids=lambda c: f"{c}-{c.attrs['src_format']}")
def test_layouts(case, target):
    case.agrees(target)
