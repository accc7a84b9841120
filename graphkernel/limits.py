"""What a file may ask: kernelgen's bounds, which hold for graphs as well. See :mod:`kernelgen.limits`."""

from __future__ import annotations

from kernelgen.limits import LIMITS, InputLimits

__all__ = ["LIMITS", "InputLimits"]
