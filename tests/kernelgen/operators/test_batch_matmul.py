"""BatchMatMul against its definition: a sum of products in exact or double arithmetic."""

import itertools
import math

import numpy as np
import pytest
from operator_cases import TARGETS, Case, numbers


def product(left, right, transpose_a, transpose_b, bias=None):
    """``result[.., i, j] = sum_k left[.., i, k] * right[.., k, j] + bias[j]``, batches broadcast."""
    a = np.swapaxes(left, -1, -2) if transpose_a else left
    b = np.swapaxes(right, -1, -2) if transpose_b else right
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = np.broadcast_to(a, batch + a.shape[-2:]).astype(np.float64)
    b = np.broadcast_to(b, batch + b.shape[-2:]).astype(np.float64)
    result = np.zeros((*batch, a.shape[-2], b.shape[-1]))
    for place in np.ndindex(result.shape):
        *outer, i, j = place
        terms = [a[(*outer, i, k)] * b[(*outer, k, j)] for k in range(a.shape[-1])]
        result[place] = math.fsum(terms) + (0 if bias is None else float(bias[j]))
    return result.astype(left.dtype)


# batch of the left operand, of the right one, rows, columns, inner extent, data type
SIZES = [
    ((2,), (2,), 3, 4, 5, "float32"), ((1,), (1,), 1, 1, 1, "float32"), ((3,), (1,), 7, 2, 13, "float32"),
    ((2, 3), (2, 3), 4, 5, 6, "float32"), ((2, 1), (1, 3), 2, 3, 2, "float32"), ((4,), (), 5, 17, 3, "float32"),
    ((2,), (2,), 16, 16, 16, "float16"), ((2,), (2,), 5, 9, 31, "float16"), ((2,), (2,), 4, 3, 8, "bfloat16"),
    ((2,), (2,), 3, 3, 7, "float64"), ((2,), (2,), 3, 4, 5, "int32"), ((0,), (0,), 3, 4, 5, "float32"),
    ((2,), (2,), 3, 4, 0, "float32"),
]  # fmt: skip


def cases():
    for number, (batch, other, rows, columns, inner, kind) in enumerate(SIZES):
        a, b = ((False, False), (True, False), (False, True), (True, True))[number % 4]
        left = numbers(number, (*batch, *((inner, rows) if a else (rows, inner))), kind)
        right = numbers(number + 99, (*other, *((columns, inner) if b else (inner, columns))), kind)
        bias = numbers(number + 7, (columns,), kind) if number % 3 == 1 else None
        inputs = (left, right) if bias is None else (left, right, bias)
        expected = product(left, right, a, b, bias)
        yield Case("BatchMatMul", inputs, (expected,), {"transpose_a": a, "transpose_b": b})


def transposes():
    left, right = numbers(1, (2, 3, 5)), numbers(2, (2, 5, 4))
    for a, b in itertools.product((False, True), repeat=2):
        x, y = (np.ascontiguousarray(np.swapaxes(v, 1, 2)) if t else v for v, t in ((left, a), (right, b)))
        yield Case("BatchMatMul", (x, y), (product(x, y, a, b),), {"transpose_a": a, "transpose_b": b})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", [*cases(), *transposes()], ids=str)
def test_batch_matmul(case, target):
    case.agrees(target)
