"""Marks: what a mapping promises about a loop, with one text form for plans and schedule trees: ``thread 128``."""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.errors import ArgumentError
from kernelgen.nest.nodes import LoopKind


@dataclass(frozen=True)
class Mark:
    """The kind that a loop shall have; ``width`` is how many threads share it, where the kind is THREAD.

    Its text is the kind's word, with the width behind that of a thread loop; that of :data:`UNMARKED` is empty.
    """

    kind: LoopKind
    width: int = 1

    def __post_init__(self) -> None:
        if self.width < 1 or (self.width > 1 and self.kind is not LoopKind.THREAD):
            raise ArgumentError(f"a {self.kind.value} loop of width {self.width}")

    def __str__(self) -> str:
        if self.kind is LoopKind.THREAD:
            return f"{self.kind.value} {self.width}"
        return "" if self == UNMARKED else self.kind.value

    @staticmethod
    def from_text(text: str) -> Mark:
        """The inverse of ``str``. Raises ArgumentError for all other texts."""
        word, _, width = text.partition(" ")
        kind = _KINDS.get(word)
        if kind is not None and (not width or width.isdecimal()):
            mark = Mark(kind, int(width or 1))
            if str(mark) == text:
                return mark
        raise ArgumentError(f"unknown mark {text!r}; known: {', '.join(filter(None, _KINDS))}")


UNMARKED = Mark(LoopKind.SERIAL)
PARALLEL, VECTOR, INTERLEAVE = Mark(LoopKind.PARALLEL), Mark(LoopKind.VECTOR), Mark(LoopKind.INTERLEAVE)
BLOCK, ROWS = Mark(LoopKind.BLOCK), Mark(LoopKind.ROWS)


def thread(width: int) -> Mark:
    """The mark of a loop that so many threads of a block share."""
    return Mark(LoopKind.THREAD, width)


_KINDS = {"": LoopKind.SERIAL} | {
    mark.kind.value: mark.kind for mark in (PARALLEL, VECTOR, INTERLEAVE, BLOCK, thread(1), ROWS)
}
