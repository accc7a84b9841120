"""Loaded kernels as Python callables."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from kernelgen.errors import ArgumentError
from kernelgen.native.library import Library
from kernelgen.native.signature import Argument
from kernelgen.native.team import Team
from kernelgen.native.wrapper import OVERLAP, fast_function
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.dims import solve

ENTRY = "kernel"
"""The name of a kernel's function in its machine code."""

_BODY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class CpuEntry:
    """A kernel body that takes these arrays and the values of these symbols; see :class:`kernelgen.native.call.Entry`.

    It is called through ``caller``. ``releases_lock`` lets other Python threads run meanwhile. ``team`` runs its parallel
    loops; None where it has none. ``flags`` are the words of Linux for what the processor must have.
    """

    def __init__(
        self,
        name: str,
        arguments: tuple[Argument, ...],
        sizes: tuple[str, ...],
        library: Library,
        caller: Library,
        releases_lock: bool = True,
        from_disk: bool = False,
        team: Team | None = None,
        flags: tuple[str, ...] = (),
    ) -> None:
        self.name: Final = name
        self.arguments: Final = arguments
        self.sizes: Final = sizes
        self.library: Final = library
        self.caller: Final = caller
        self.releases_lock: Final = releases_lock
        self.from_disk: Final = from_disk
        self.team: Final = team
        self.flags: Final = flags

    def __call__(self, arrays: tuple[Any, ...], symbols: tuple[int, ...] = ()) -> None:
        """Runs the kernel on arrays that are known to fit: the fast way, or where that is too strict through ctypes."""
        try:
            self.fast(*arrays)
        except ArgumentError:
            self.run_unchecked(arrays, symbols)

    def run_unchecked(self, arrays: tuple[Any, ...], symbols: tuple[int, ...]) -> None:
        """Runs the kernel on the arrays' memory. Raises ArgumentError where elements are not aligned, which code relies on."""
        if not all(array.flags.aligned for array in arrays):
            raise ArgumentError(f"the elements of an array of {self.name} are not aligned")
        addresses = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        sizes = (ctypes.c_int64 * len(symbols))(*symbols)
        self._body(addresses, sizes)

    @cached_property
    def fast(self) -> Callable[..., None]:
        """``fast(*arrays)``: checks the arrays, binds the symbols from their shapes, runs. 0.1 us where possible.

        Raises ArgumentError, a TypeError, when an array does not fit.
        """
        code = self.library.addresses[ENTRY]
        found = fast_function(self.arguments, self.sizes, code, self.caller, self.releases_lock, self.library)
        return found or partial(_checked_call, self)

    @cached_property
    def _body(self) -> Callable[..., None]:
        return _BODY(self.library.addresses[ENTRY])


def _checked_call(entry: CpuEntry, *arrays: Any) -> None:
    """What the wrapper in machine code does, for layouts and extents that it does not know."""
    expected = entry.arguments
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
    if len(symbols) < len(entry.sizes):
        raise ArgumentError(f"the shapes do not tell {', '.join(name for name in entry.sizes if name not in symbols)}")
    entry.run_unchecked(arrays, tuple(symbols[name] for name in entry.sizes))


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
