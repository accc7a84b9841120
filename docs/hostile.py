"""docs/hostile_inputs.md: the table of inputs that tests bring to every door."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import groupby

from docs.markdown import page, table
from kernelgen.system.limits import LIMITS
from tests.hostile.case import FINE
from tests.hostile.table import CASES

EXPLAINED = {"Refused": "status 1 or 2, one line"}
"""What the tests call an end that is no exception."""


def hostile_inputs() -> Mapping[str, str]:
    """File name -> text."""
    counted = len(CASES)
    doors = [
        part
        for door, cases in groupby(sorted(CASES, key=lambda case: case.door), key=lambda case: case.door)
        for part in (
            f"## {door[0].upper()}{door[1:]}",
            table(("input", "what comes of it"), [(plain(case.name), ending(case.expected)) for case in cases]),
        )
    ]
    return {
        "docs/hostile_inputs.md": page(
            "Hostile inputs",
            f"{counted} inputs that nobody should give. A test brings each to its door, in a process that may take 2 GB more "
            "than it has and compute for 10 seconds: it ends in an error of the class named here, which says what is wrong "
            "where, or in the right result. [SECURITY.md](../SECURITY.md) says what is trusted and what is not.",
            "## Bounds",
            table(("bound", "value"), [(f"`{name}`", f"{value:,}") for name, value in LIMITS._asdict().items()]),
            "`kernelgen/system/limits.py` says what each bounds.",
            *doors,
        )
    }


def ending(expected: str) -> str:
    """The end of a case."""
    return expected if expected == FINE else EXPLAINED.get(expected, f"`{expected}`")


def plain(name: str) -> str:
    """A name in which Markdown sees no marks."""
    return re.sub(r"([*_|<>])", r"\\\1", name)
