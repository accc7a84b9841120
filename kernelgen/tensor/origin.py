"""Where an operator of an optimized graph comes from, read off its label.

An expansion calls its operators after the one that they stand for (``t2.0``, ``t2.1``), and a label that occurs twice gets
a number (``t2_1``). Taking off what was put on gives the label in the graph as it came; that graph itself knows from which
nodes of a model its operators were made.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from kernelgen.tensor.graph import Origin

_NUMBERED = re.compile(r"(.+)_\d+")
_EXPANDED = re.compile(r"(.+)\.c?\d+")


def origin_of(label: str, known: Container[str]) -> str | None:
    """The longest of the known labels that this one was made from; None when it was made from none of them."""
    found: str | None = label
    while found is not None and found not in known:
        match = _NUMBERED.fullmatch(found) or _EXPANDED.fullmatch(found)
        found = match[1] if match else None
    return found


def made_from(name: str, origins: Mapping[str, Origin]) -> frozenset[str]:
    """The labels of what was made from the model's node of this name, or from all nodes of this operator of it."""
    return frozenset(label for label, origin in origins.items() if name in (origin.operator, origin.node))
