"""Tile against element numbers modulo the extents."""

import numpy as np
import pytest
from operator_cases import TARGETS, Case, numbers


def tiled(x, multiples):
    """``result[i] = x[i mod extents]``, missing leading dims are 1."""
    x = x.reshape((1,) * (len(multiples) - x.ndim) + x.shape)
    result = np.empty([extent * count for extent, count in zip(x.shape, multiples, strict=True)], x.dtype)
    for place in np.ndindex(result.shape):
        result[place] = x[tuple(k % extent for k, extent in zip(place, x.shape, strict=True))]
    return result


CASES = [
    ((3,), (2,), "float32"), ((1,), (7,), "float32"), ((2, 3), (1, 1), "float32"), ((2, 3), (3, 2), "float32"),
    ((3, 1), (1, 5), "float32"), ((4,), (2, 3), "float32"), ((2, 1, 3), (2, 2, 2), "float32"), ((5, 7), (1, 3), "float16"),
    ((5, 7), (2, 1), "bfloat16"), ((3,), (2,), "int32"), ((3,), (2,), "uint8"), ((2, 3), (0, 2), "float32"),
    ((0, 3), (2, 2), "float32"), ((), (3,), "float32"), ((17, 2), (3, 1), "float64"),
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "multiples", "kind"), CASES)
def test_tile(shape, multiples, kind, target):
    x = numbers(1, shape, kind, 0, 9)
    Case("Tile", (x,), (tiled(x, multiples),), {"multiples": multiples}).agrees(target)
