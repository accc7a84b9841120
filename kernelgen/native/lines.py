"""Arrays for weights: they start with a line of the caches, and lie where memory is read fastest.

Vectors that lie across two lines take twice as long. Numpy asks the system for large pages; a product of one row, which reads
9 MB of weights once a call, took 236 us with them in an array, or in a mapped file, and 351 us in an object of bytes.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from kernelgen.machines.cpu import CPU
from kernelgen.native.call import NativeKernel
from kernelgen.tensor.dims import evaluate


def on_lines(shape: tuple[int, ...], kind: np.dtype[Any]) -> np.ndarray:
    """An array whose elements are not set yet."""
    size = prod(shape) * kind.itemsize
    room = np.empty(size + CPU.line_bytes, np.uint8)
    start = -room.ctypes.data % CPU.line_bytes
    return room[start : start + size].view(kind).reshape(shape)


def moved_to_lines(array: np.ndarray) -> np.ndarray:
    """The same content in such memory, read-only."""
    made = on_lines(array.shape, array.dtype)
    made[...] = array
    made.flags.writeable = False
    return made


def prepared(preparation: NativeKernel | None, constants: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a kernel of known sizes computes from constants, in such memory; nothing without one.

    Raises ArgumentError when an array does not fit.
    """
    if preparation is None:
        return ()
    outputs = preparation.signature.outputs
    made = [on_lines(tuple(evaluate(dim, {}) for dim in tensor.shape), tensor.dtype.numpy) for tensor in outputs]
    return preparation(*constants, out=made)
