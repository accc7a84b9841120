"""Casts between integers wrap around as the meaning says, though the machine's own saturate."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor

from kernelgen.driver import compile
from kernelgen.kernel import Kernel
from kernelgen.semantics import reference
from kernelgen.tensor.dtypes import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    DType,
)

WHOLE = (INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64)


def cast(source: DType, target: DType) -> Kernel:
    w, x = Writer(), tensor("x", 300, dtype=source)
    return compile(w.desc("cast", (x,), w.op("Cast", x, shape=(300,), dtype=target, dst_type=target.name)), "ascend")


@pytest.mark.parametrize("source", WHOLE, ids=str)
@pytest.mark.parametrize("target", WHOLE, ids=str)
def test_integers_wrap_around(source: DType, target: DType) -> None:
    kernel = cast(source, target)
    limits = np.iinfo(source.numpy)
    x = np.random.default_rng(0).integers(limits.min, limits.max, 300, dtype=source.numpy, endpoint=True)
    (found,), (wanted,) = kernel(x), reference(kernel.desc)(x)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("source", [UINT16, UINT32, INT64, UINT64], ids=str)
@pytest.mark.parametrize("target", [FLOAT16, FLOAT32, BFLOAT16], ids=str)
def test_integers_become_the_nearest_float(source: DType, target: DType) -> None:
    kernel = cast(source, target)
    random = np.random.default_rng(1)
    x = (random.integers(0, 1 << 63, 300, dtype=np.uint64) >> random.integers(0, 64, 300, dtype=np.uint64)) * 2 + 1
    x = x.astype(source.numpy)
    with np.errstate(over="ignore"):
        (found,), (wanted,) = kernel(x), reference(kernel.desc)(x)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("target", WHOLE, ids=str)
@pytest.mark.parametrize("source", [FLOAT16, FLOAT32, BFLOAT16], ids=str)
def test_floats_lose_their_fraction(source: DType, target: DType) -> None:
    kernel, limits = cast(source, target), np.iinfo(target.numpy)
    most = min(float(limits.max), 6e4 if source == FLOAT16 else 2.0**64) * 0.99
    random = np.random.default_rng(2)
    size = np.exp2(random.uniform(-2, np.log2(most), 300))
    x = np.where((random.random(300) < 0.5) & (limits.min < 0), -size, size).astype(source.numpy)
    (found,), (wanted,) = kernel(x), reference(kernel.desc)(x)
    np.testing.assert_array_equal(found, wanted)


def test_unsigned_sums_have_the_bits_of_signed_ones() -> None:
    w, x, y = Writer(), tensor("x", 40, dtype=UINT32), tensor("y", 40, dtype=UINT32)
    kernel = compile(w.desc("difference", (x, y), w.op("Sub", x, y, shape=(40,))), "ascend")
    first, second = np.random.default_rng(0).integers(0, 1 << 32, (2, 40), dtype=np.uint32)
    (found,) = kernel(first, second)
    np.testing.assert_array_equal(found, first - second)
