"""Loaded kernels as Python callables."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from kernelgen.dims import solve
from kernelgen.errors import ArgumentError
from kernelgen.nest.nodes import Nest, Num
from kernelgen.targets.cpu.emit import ENTRY
from kernelgen.targets.cpu.module import Library, detect_host
from kernelgen.targets.cpu.objects import cached_library
from kernelgen.targets.cpu.team import team
from kernelgen.targets.cpu.work import TICKS_PER_NANOSECOND, work
from kernelgen.targets.cpu.wrapper import OVERLAP, Argument, arguments, fast_function

LOCK_NANOSECONDS = 5_000
"""A kernel that runs longer lets other Python threads run; symbolic ones count as longer."""

_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


@dataclass(frozen=True, eq=False)
class CpuEntry:
    """A kernel body; see :class:`kernelgen.targets.base.Entry`."""

    nest: Nest
    library: Library = field(repr=False)
    from_disk: bool = False

    def __call__(self, arrays: tuple[Any, ...], symbols: tuple[int, ...] = ()) -> None:
        """Runs the kernel on arrays that are known to fit: the fast way, or where that is too strict through ctypes."""
        try:
            self.fast(*arrays)
        except ArgumentError:
            self.run_unchecked(arrays, symbols)

    def run_unchecked(self, arrays: tuple[Any, ...], symbols: tuple[int, ...]) -> None:
        """Runs the kernel on the arrays' memory. Raises ArgumentError where elements are not aligned, which code relies on."""
        if not all(array.flags.aligned for array in arrays):
            raise ArgumentError(f"the elements of an array of {self.nest.name} are not aligned")
        addresses = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        sizes = (ctypes.c_int64 * len(symbols))(*symbols)
        self._body(addresses, sizes)

    @cached_property
    def fast(self) -> Callable[..., None]:
        """``fast(*arrays)``: checks the arrays, binds the symbols from their shapes, runs. 0.1 us where possible.

        Raises ArgumentError, a TypeError, when an array does not fit.
        """
        found = fast_function(self.nest, self.library, ENTRY, _is_long(self.nest))
        return found or partial(_checked_call, self, arguments(self.nest))

    @cached_property
    def _body(self) -> Callable[..., None]:
        return _BODY(self.library.addresses[ENTRY])


def load_entry(source: str, nest: Nest) -> CpuEntry:
    """Machine code for the source, linked against the threads of this process where it has parallel loops."""
    threads = team().functions if "@GOMP_parallel" in source else {}
    library, from_disk = cached_library(source, detect_host(), (ENTRY,), threads)
    return CpuEntry(nest, library, from_disk)


def _is_long(nest: Nest) -> bool:
    time = work(nest.body)
    return not isinstance(time, Num) or time.value > LOCK_NANOSECONDS * TICKS_PER_NANOSECOND


def _checked_call(entry: CpuEntry, expected: tuple[Argument, ...], *arrays: Any) -> None:
    """What the wrapper in machine code does, for layouts and extents that it does not know."""
    if len(arrays) != len(expected):
        raise ArgumentError(f"expected {len(expected)} arrays: {', '.join(a.name for a in expected)}")
    symbols: dict[str, int] = {}
    known = -1
    while known < len(symbols):  # the last round finds nothing new, and compares every extent
        known = len(symbols)
        for argument, array in zip(expected, arrays, strict=True):
            if not _fits(argument, array, symbols):
                raise ArgumentError(str(argument))
    written = {k for k, argument in enumerate(expected) if argument.is_written}
    if any(np.may_share_memory(arrays[k], other) for k in written for n, other in enumerate(arrays) if n != k):
        raise ArgumentError(OVERLAP)
    if len(symbols) < len(entry.nest.symbols):
        raise ArgumentError(
            f"the shapes do not tell {', '.join(name for name in entry.nest.symbols if name not in symbols)}"
        )
    entry.run_unchecked(arrays, tuple(symbols[name] for name in entry.nest.symbols))


def _fits(argument: Argument, array: Any, symbols: dict[str, int]) -> bool:
    """Whether an array is as expected; binds new symbols on the way."""
    if not isinstance(array, np.ndarray) or array.dtype != argument.dtype.numpy or array.ndim != len(argument.shape):
        return False
    if not array.flags.c_contiguous or not array.flags.aligned or (argument.is_written and not array.flags.writeable):
        return False
    for dim, extent in zip(argument.shape, array.shape, strict=True):
        found = solve(dim, extent, symbols)
        if found is None:
            return False
        symbols.update(found)
    return True
