"""A kernel bound to shapes and to a device: what is left of a call is to read addresses and to launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernelgen.targets.gpu.launch.device import Function

ALIGNMENT = 16
"""Bytes: the widest access of a thread. Every library's own arrays start at multiples of 256; slices of them may not."""


@dataclass(frozen=True)
class Call:
    """A launch for known sizes: ``buffers`` are the positions of its pointers, ``sizes`` its last arguments."""

    function: Function
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    buffers: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class BoundKernel:
    """The launches for cupy arrays of known shapes, with workspaces of its own: one stream at a time may use it.

    ``pointers`` are those of all arrays of the kernel; at the positions ``moving`` another call's may stand.
    """

    calls: tuple[Call, ...]
    pointers: tuple[int, ...]
    moving: tuple[int, ...]
    workspaces: tuple[Any, ...]

    def __call__(self, arrays: Sequence[Any]) -> bool:
        """Launches on inputs and outputs that overlap only where the kernel updates in place, on the current stream.

        False, and nothing is launched, where a moving array has gaps or starts between two vectors.
        """
        pointers = list(self.pointers)
        for position in self.moving:
            array = arrays[position]
            pointers[position] = pointer = array.data.ptr
            if pointer & (ALIGNMENT - 1) or not array.flags.c_contiguous:
                return False
        launch(self.calls, pointers)
        return True


def launch(calls: Sequence[Call], pointers: Sequence[int]) -> None:
    """Launches one after the other on cupy's current stream; ``pointers`` are those of all arrays of the kernel."""
    for call in calls:
        arguments = (*[pointers[k] for k in call.buffers], *call.sizes)
        call.function(call.grid, call.block, arguments, call.shared)
