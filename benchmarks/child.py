"""Processes that measure: each a fresh Python, which prints what it found as JSON in its last line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

LIMIT_SECONDS = 600
MOST_CHARACTERS = 400


BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""What is installed has its bytecode on disk: a process that compiles our sources anew starts 30 to 80 ms later."""


class ChildError(Exception):
    """Why a process found nothing: the last line of its error, the signal that ended it, or that it took too long."""


def told_by(
    arguments: Sequence[str], environment: Mapping[str, str] | None = None, seconds: int = LIMIT_SECONDS
) -> Any:
    """What Python with these arguments prints in its last line; an empty mapping where it prints nothing.

    ``environment`` is added to this process's. Raises ``ChildError``.
    """
    command, variables = [sys.executable, *arguments], {**os.environ, **BYTECODE, **(environment or {})}
    try:
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise ChildError(f"not done after {seconds} s") from None
    if done.returncode:
        said = done.stderr.strip().splitlines() if done.returncode > 0 else []
        raise ChildError((said or [f"exit status {done.returncode}"])[-1][:MOST_CHARACTERS])
    return json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}
