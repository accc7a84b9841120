"""Numbers with their nouns: ``1 kernel``, ``2 kernels``."""

from __future__ import annotations


def counted(count: int, noun: str, nouns: str = "") -> str:
    """The count and the noun in the singular or plural, which ends in s if it is not given."""
    return f"{count} {noun}" if count == 1 else f"{count} {nouns or noun + 's'}"
