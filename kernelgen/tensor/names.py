"""The name that is meant: people may write a model's names as they are, or with other signs where these are awkward."""

from __future__ import annotations

import re
from collections.abc import Iterable


def meant(typed: str, names: Iterable[str]) -> str | None:
    """The name itself, else the only one of the same words: ``gpu_0.data_0`` and ``gpu_0_data_0`` mean ``gpu_0/data_0``."""
    known = tuple(names)
    if typed in known:
        return typed
    alike = [name for name in known if plain(name) == plain(typed)]
    return alike[0] if len(alike) == 1 else None


def plain(name: str) -> str:
    """The words of a name, so that any name can be a keyword of a call."""
    return re.sub(r"\W+", "_", name).strip("_")
