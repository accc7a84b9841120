"""Loops with the plan by which they are printed. The pieces and edges that the printer cuts from a loop keep its plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from kernelgen.nest.nodes import For

P = TypeVar("P")


@dataclass(unsafe_hash=True)
class ChosenLoop(For, Generic[P]):
    """A loop and its plan; a plan that is a string says why the loop runs one iteration after the other."""

    plan: Final[P | str] = ""
