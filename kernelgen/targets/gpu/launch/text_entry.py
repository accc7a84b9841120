"""A program that is printed for another tool chain: calling it says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from kernelgen.errors import BackendUnavailable
from kernelgen.nest.nodes import Nest


@dataclass(frozen=True, eq=False)
class TextEntry:
    """The text is all there is: ``kernel.source``, launched as ``launches(kernel.nest)`` says."""

    source: str
    nest: Nest

    def __call__(self, arrays: tuple[Any, ...], symbols: tuple[int, ...] = ()) -> NoReturn:
        """Raises BackendUnavailable."""
        raise BackendUnavailable(f"{self.nest.name} is text for another compiler; nothing here runs it")
