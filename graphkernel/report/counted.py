"""Numbers with their nouns: ``1 kernel``, ``2 kernels``."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """The count and the noun in the singular or plural, which ends in s."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
