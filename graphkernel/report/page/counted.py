"""Numbers as people write them: with their nouns (``1 kernel``, ``2 kernels``), and bytes in their units."""

from __future__ import annotations

from kernelgen.tensor.types import Dim


def counted(count: int, noun: str, nouns: str = "") -> str:
    """The count and the noun in the singular or plural, which ends in s if it is not given."""
    return f"{count} {noun}" if count == 1 else f"{count} {nouns or noun + 's'}"


def size_text(size: Dim) -> str:
    """A number of bytes as people write it; a polynomial as it is."""
    if not isinstance(size, int):
        return f"{size} B"
    amount, unit = float(size), 0
    while amount >= 1024 and unit < 4:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.0f} B" if unit == 0 else f"{amount:.1f} {('', 'KiB', 'MiB', 'GiB', 'TiB')[unit]}"
