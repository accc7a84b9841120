"""A launch's arguments: arrays become buffers, scalars and structs the bytes of the parameters.

A blank is a buffer of zeros that nobody wants back: it takes memory where it is written alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelgen.errors import ArgumentError
from kernelgen.simulators.ptx.language.nodes import Kernel, Variable
from kernelgen.simulators.ptx.state.memory import Region, blank_region, buffer_region


@dataclass(frozen=True)
class Blank:
    """A buffer of so many bytes, all zero."""

    size: int


Argument = Blank | np.ndarray | np.generic | int | float | bytes
POINTER_BYTES = 8


def bind(
    kernel: Kernel, arguments: Sequence[Argument]
) -> tuple[tuple[bytes, ...], list[tuple[Region, np.ndarray | None]]]:
    """Bytes for each parameter, and the buffers with the arrays that they came from, None for blanks.

    An array that is given twice is one buffer. Raises ArgumentError for a wrong number, type or size of arguments.
    """
    if len(arguments) != len(kernel.parameters):
        raise ArgumentError(
            f"kernel {kernel.name} takes {len(kernel.parameters)} arguments, {len(arguments)} are given"
        )
    buffers = list[tuple[Region, np.ndarray | None]]()
    values = tuple(
        _bytes_of(parameter, argument, buffers)
        for parameter, argument in zip(kernel.parameters, arguments, strict=True)
    )
    return values, buffers


def _bytes_of(parameter: Variable, argument: Argument, buffers: list[tuple[Region, np.ndarray | None]]) -> bytes:
    if isinstance(argument, Blank):
        region = blank_region(len(buffers), parameter.name, argument.size)
        buffers.append((region, None))
        value = region.base.to_bytes(POINTER_BYTES, "little")
    elif isinstance(argument, np.ndarray):
        value = _buffer(parameter, argument, buffers).base.to_bytes(POINTER_BYTES, "little")
    elif isinstance(argument, bytes):
        value = argument
    elif isinstance(argument, np.generic):
        value = argument.tobytes()
    elif isinstance(argument, float):
        value = np.array(argument, np.float32 if parameter.size == 4 else np.float64).tobytes()
    else:
        value = (argument & (1 << 8 * parameter.size) - 1).to_bytes(parameter.size, "little")
    if len(value) != parameter.size:
        raise ArgumentError(f"parameter {parameter.name} has {parameter.size} bytes, {argument!r} has {len(value)}")
    return value


def _buffer(parameter: Variable, array: np.ndarray, buffers: list[tuple[Region, np.ndarray | None]]) -> Region:
    for region, other in buffers:
        if other is None:
            continue
        if array is other or (array.ctypes.data == other.ctypes.data and array.nbytes == other.nbytes and array.nbytes):
            return region
        if np.shares_memory(array, other):
            raise ArgumentError(f"parameter {parameter.name} overlaps another buffer in part")
    region = buffer_region(len(buffers), parameter.name, array)
    buffers.append((region, array))
    return region
