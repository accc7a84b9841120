"""Machine code in memory."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelgen.native.code import Code


@dataclass(frozen=True, eq=False)
class Library:
    """Loaded machine code: functions and variables by name. It stays loaded as long as this object lives.

    ``code`` is what was loaded; None where LLVM linked it.
    """

    addresses: Mapping[str, int]
    code: Code | None = None


def function_address(function: Any) -> int:  # any ctypes function pointer
    """Where a ctypes function lies."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
