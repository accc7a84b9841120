"""Machine code in memory of its own: code that may run and not be written, constants that may be read, variables."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import weakref
from collections.abc import Mapping
from functools import cache

from kernelgen.errors import BackendUnavailable, CodegenError
from kernelgen.native.code import Code
from kernelgen.native.library import Library, function_address

_READ, _WRITE, _EXECUTE = 1, 2, 4
_PRIVATE, _ANONYMOUS = 0x02, 0x20
_FAILED = ctypes.c_void_p(-1).value


def is_supported() -> bool:
    """Whether code is loaded here: on x86-64 Linux. Elsewhere LLVM links its objects."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and ctypes.sizeof(ctypes.c_void_p) == 8


def load_code(code: Code, symbols: Mapping[str, int]) -> Library:
    """Loads machine code; ``symbols`` are the functions that it calls and the process does not export itself.

    Raises CodegenError for code that calls what is not there or does not fit itself, BackendUnavailable where the system
    refuses memory for code.
    """
    addresses = {cell: symbols.get(name) or _exported(name) for cell, name in code.checked().imports}
    base = _reserved(len(code.content))
    try:
        ctypes.memmove(base, code.content, len(code.content))
        for cell, offset in code.pointers:
            addresses[cell] = base + offset
        for cell, address in addresses.items():
            ctypes.c_uint64.from_address(base + cell).value = address
        _protect(base, base + code.constants, _READ | _EXECUTE)
        _protect(base + code.constants, base + code.variables, _READ)
    except BaseException:
        _system().munmap(base, len(code.content))
        raise
    library = Library({name: base + offset for name, offset in code.exports}, code)
    unmapping = weakref.finalize(library, _system().munmap, base, len(code.content))
    unmapping.atexit = False  # daemon threads may still run it then
    return library


def _exported(name: str) -> int:
    """Where a function lies that the process exports. Raises CodegenError where there is none."""
    try:
        return function_address(getattr(_system(), name))
    except AttributeError:
        raise CodegenError(f"machine code calls {name}, which this process does not have") from None


def _reserved(size: int) -> int:
    address = _system().mmap(None, size, _READ | _WRITE, _PRIVATE | _ANONYMOUS, -1, 0)
    if address in (None, _FAILED):
        raise BackendUnavailable(f"no memory for {size} bytes of code: {os.strerror(ctypes.get_errno())}")
    return address


def _protect(start: int, end: int, access: int) -> None:
    if start < end and _system().mprotect(start, end - start, access):
        reason = os.strerror(ctypes.get_errno())
        raise BackendUnavailable(f"this system lets no memory become code: {reason}")


@cache
def _system() -> ctypes.CDLL:
    """The process and its C library."""
    system = ctypes.CDLL(None, use_errno=True)
    system.mmap.restype = ctypes.c_void_p
    system.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long)
    system.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    system.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return system
