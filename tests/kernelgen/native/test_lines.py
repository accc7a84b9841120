"""The memory of weights: where it starts, what it holds."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgen.machines.cpu import CPU
from kernelgen.native.lines import moved_to_lines, on_lines


@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (70, 33), (0, 4)])
@pytest.mark.parametrize("kind", ["float32", "uint8", "float64"])
def test_arrays_start_with_a_line(shape: tuple[int, ...], kind: str) -> None:
    made = on_lines(shape, np.dtype(kind))
    assert (made.shape, made.dtype) == (shape, np.dtype(kind))
    assert made.size == 0 or made.ctypes.data % CPU.line_bytes == 0
    assert made.flags.c_contiguous
    assert made.flags.writeable


def test_what_is_moved_is_the_same_and_cannot_be_written() -> None:
    given = np.frombuffer(bytes(range(240)), np.float32)[3:].reshape(3, 19)
    made = moved_to_lines(given)
    np.testing.assert_array_equal(made.view(np.uint32), given.view(np.uint32))
    assert not made.flags.writeable
    assert not np.shares_memory(made, given)
