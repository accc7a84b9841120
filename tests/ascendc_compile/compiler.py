"""What clang says of AscendC texts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
FRONT_END = FOLDER / "front_end.py"
SECONDS = 300


def errors_of(texts: Sequence[str]) -> list[list[str]]:
    """For each text what is wrong with it, ``line:column: message``; nothing for C++. One process reads them all."""
    command = [sys.executable, str(FRONT_END), str(FOLDER)]
    done = subprocess.run(
        command, input=json.dumps(list(texts)), capture_output=True, encoding="utf-8", timeout=SECONDS, check=False
    )
    if done.returncode:
        raise RuntimeError(f"clang ended with code {done.returncode}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)
