"""Why a case was refused, in a few words: the first phrase that its message contains."""

from __future__ import annotations

import re

PHRASES: dict[str, str] = {
    "axes at run time": "axes are computed at run time|and ONNX cannot tell",
    "rank unknown": "not even the rank",
    "extent depends on data": "depends on data",
    "bodies": "with bodies",
    "sequences, optionals": "only tensors",
    "data type": "data type",
    "skipped result": "no node makes it",
    "functions": "functions of its own",
    "run time": "onnxruntime",
}


def reason_of(message: str) -> str:
    """A key of :data:`PHRASES`, else ``other``."""
    return next((reason for reason, pattern in PHRASES.items() if re.search(pattern, message)), "other")
