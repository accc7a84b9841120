"""The contestants of :mod:`benchmarks.models.contestant`, each in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.child import ChildError, told_by

MOST_FATAL = 20


def child(side: str, path: Path, folder: str, environment: Mapping[str, str]) -> dict[str, Any] | str:
    """What the process of one side printed; its last line of error where it fails."""
    try:
        return told_by(["-m", "benchmarks.models.contestant", side, str(path), folder], environment)
    except ChildError as error:
        return str(error)


def draw(path: Path, folder: str) -> str:
    """Writes what the model takes to ``folder`` as ``inputs0.npz`` and so on; why there is nothing, else an empty text.

    Inputs that end onnxruntime's process are noted there, and left out the next time.
    """
    drawn: dict[str, Any] | str = ""
    for _ in range(1 + MOST_FATAL):
        drawn = child("draw", path, folder, {})
        if isinstance(drawn, dict) or not drawn.startswith("exit status -"):
            break
    if isinstance(drawn, str):
        return drawn
    return "" if list(Path(folder).glob("inputs*.npz")) else "takes no inputs that were tried"
