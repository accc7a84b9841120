"""Processes that answer: an answer is what was written as one, whatever else the process prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kernelgen.system.answering import AnsweringProcess, Limit, command_of

LIMIT = Limit(60.0)
PRINTS = """
import os, sys
print("loaded")
os.write(1, b"\\1\\0\\0\\0\\0\\0\\0\\0!")

def answer(request):
    print("asked", flush=True)
    return request.upper()
"""


@pytest.fixture
def loud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AnsweringProcess:
    """A process of a module that prints when it is imported and when it is asked."""
    (tmp_path / "loud.py").write_text(PRINTS, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return AnsweringProcess(command_of("loud:answer"))


def test_what_is_printed_is_no_answer(loud: AnsweringProcess) -> None:
    assert [loud.answer(question, LIMIT) for question in (b"one", b"", b"two")] == [b"ONE", b"", b"TWO"]
    assert loud.end() == 0


def test_nothing_of_a_process_stays_open(loud: AnsweringProcess) -> None:
    loud.answer(b"first", LIMIT)
    before = len(list(Path("/proc/self/fd").iterdir()))
    loud.end(kill=True)
    assert len(list(Path("/proc/self/fd").iterdir())) == before - 2
    assert loud.answer(b"again", LIMIT) == b"AGAIN", "the next question has a new process"
    loud.end()
