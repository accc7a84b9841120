"""Marks are values with one text form each."""

from __future__ import annotations

import pytest

from kernelgen.errors import ArgumentError
from kernelgen.nest.marks import BLOCK, INTERLEAVE, PARALLEL, ROWS, UNMARKED, VECTOR, Mark, thread
from kernelgen.nest.nodes import LoopKind

TEXTS = {
    "": UNMARKED,
    "parallel": PARALLEL,
    "vector": VECTOR,
    "interleave": INTERLEAVE,
    "block": BLOCK,
    "rows": ROWS,
    "thread 1": thread(1),
    "thread 128": thread(128),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_one_mark_and_back(text: str) -> None:
    assert Mark.from_text(text) == TEXTS[text]
    assert str(TEXTS[text]) == text


@pytest.mark.parametrize(
    "text",
    ["magic", "serial", "unroll", "thread", "thread 0", "thread 0128", "thread -4", "vector 4", "vector ", "block 1"],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ArgumentError):
        Mark.from_text(text)


@pytest.mark.parametrize(("kind", "width"), [(LoopKind.VECTOR, 4), (LoopKind.THREAD, 0), (LoopKind.SERIAL, 2)])
def test_only_threads_have_a_width(kind: LoopKind, width: int) -> None:
    with pytest.raises(ArgumentError, match="width"):
        Mark(kind, width)
