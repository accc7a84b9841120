"""Asks clang, in a process of its own: what is wrong with AscendC texts, what kernel_operator.h declares."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
FRONT_END = FOLDER / "front_end.py"
SECONDS = 300


def errors_of(texts: Sequence[str]) -> list[list[str]]:
    """For each text what is wrong with it, ``line:column: message``; nothing for C++. One process reads them all."""
    return _answer("errors", texts)


def declared() -> list[tuple[str, tuple[str, ...]]]:
    """Functions and constructors of kernel_operator.h: name, and the types of the parameters without const and &."""
    (found,) = _answer("declarations", ['#include "kernel_operator.h"'])
    return [(name, tuple(types)) for name, types in found]


def _answer(task: str, texts: Sequence[str]) -> list[Any]:
    command = [sys.executable, str(FRONT_END), task, str(FOLDER)]
    done = subprocess.run(
        command, input=json.dumps(list(texts)), capture_output=True, encoding="utf-8", timeout=SECONDS, check=False
    )
    if done.returncode:
        raise RuntimeError(f"clang ended with code {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)
