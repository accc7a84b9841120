"""Names and messages on their way out: kernelgen's functions, which hold for graphs as well. See :mod:`kernelgen.escape`."""

from __future__ import annotations

from kernelgen.escape import line, lines, markup

__all__ = ["line", "lines", "markup"]
