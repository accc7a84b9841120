"""Paths as users give them: whatever else comes in their place is an error that says so."""

from __future__ import annotations

import os

from graphkernel.errors import GraphKernelError


def path_text(given: object, taker: str, error: type[GraphKernelError]) -> str:
    """The path that a function called ``taker`` was ``given``, as text. Raises ``error`` for what is none."""
    if isinstance(given, str | bytes | os.PathLike):
        return os.fsdecode(given)
    advice = "onnx.save(model, path) writes a model that is in memory" if hasattr(given, "SerializeToString") else ""
    advice = advice or "give the name of a file, as text or pathlib.Path"
    raise error(f"{taker} takes the path of a file, got {type(given).__name__}; {advice}")
