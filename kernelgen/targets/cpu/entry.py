"""Loaded kernels as Python callables."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np

from kernelgen.nest.nodes import Nest
from kernelgen.targets.cpu.emit import ENTRY
from kernelgen.targets.cpu.module import Library, compile_object, host, link
from kernelgen.targets.cpu.openmp import runtime


@dataclass(frozen=True)
class CpuEntry:
    """A kernel body; see :class:`kernelgen.targets.base.Entry`."""

    library: Library

    def __call__(self, arrays: tuple[np.ndarray, ...], symbols: tuple[int, ...] = ()) -> None:
        addresses = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        sizes = (ctypes.c_int64 * len(symbols))(*symbols)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(self.library.addresses[ENTRY])(addresses, sizes)


def load_entry(source: str, nest: Nest) -> CpuEntry:
    """Machine code for the source, linked against the OpenMP runtime."""
    return CpuEntry(link(compile_object(source, host()), (ENTRY,), runtime()))
