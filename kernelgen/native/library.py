"""Machine code in memory."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Final

from kernelgen.native.code import Code


class Library:
    """Loaded machine code: functions and variables by name. It stays loaded as long as this object lives.

    ``code`` is what was loaded; None where LLVM linked it.
    """

    def __init__(self, addresses: Mapping[str, int], code: Code | None = None) -> None:
        self.addresses: Final = addresses
        self.code: Final = code


def function_address(function: Any) -> int:  # any ctypes function pointer
    """Where a ctypes function lies."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
