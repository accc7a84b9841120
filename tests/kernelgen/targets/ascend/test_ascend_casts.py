"""Casts between integers wrap around as the meaning says, though the machine's own saturate."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor

from kernelgen.driver import compile
from kernelgen.dtypes import INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, DType
from kernelgen.errors import UnsupportedError
from kernelgen.kernel import Kernel
from kernelgen.meaning import reference

SMALL = (INT8, UINT8, INT16, UINT16, INT32, UINT32)


def cast(source: DType, target: DType) -> Kernel:
    w, x = Writer(), tensor("x", 300, dtype=source)
    return compile(w.desc("cast", (x,), w.op("Cast", x, shape=(300,), dtype=target, dst_type=target.name)), "ascend")


@pytest.mark.parametrize("source", SMALL, ids=str)
@pytest.mark.parametrize("target", SMALL, ids=str)
def test_integers_wrap_around(source: DType, target: DType) -> None:
    kernel = cast(source, target)
    limits = np.iinfo(source.numpy)
    x = np.random.default_rng(0).integers(limits.min, limits.max, 300, dtype=np.int64, endpoint=True)
    x = x.astype(source.numpy)
    (found,), (wanted,) = kernel(x), reference(kernel.desc)(x)
    np.testing.assert_array_equal(found, wanted)


def test_no_cast_makes_a_sign_of_the_highest_bit() -> None:
    with pytest.raises(UnsupportedError, match="no casts lead from uint32 to int64"):
        cast(UINT32, INT64)


def test_unsigned_sums_have_the_bits_of_signed_ones() -> None:
    w, x, y = Writer(), tensor("x", 40, dtype=UINT32), tensor("y", 40, dtype=UINT32)
    kernel = compile(w.desc("difference", (x, y), w.op("Sub", x, y, shape=(40,))), "ascend")
    first, second = np.random.default_rng(0).integers(0, 1 << 32, (2, 40), dtype=np.uint32)
    (found,) = kernel(first, second)
    np.testing.assert_array_equal(found, first - second)
