"""Extents that change between calls become symbols, so that one executable takes all further ones.

The first call is compiled for its own shapes. An axis whose extent differs in a later call is symbolic from then on; equal
extents of such axes are one symbol. 0 and 1 stay numbers, since they broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from logging import getLogger
from typing import Any

from kernelgen.tensor.types import Dim, Shape, Sym, TensorType, sym

Make = Callable[[Sequence[TensorType]], Any]
"""What compiles a function for arguments of these types."""

log = getLogger(__name__)


@dataclass
class Extents:
    """The axes that changed so far, between calls that differ in extents only, and what was compiled for which types."""

    first: Sequence[Shape] = ()
    changed: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])
    compiled: dict[tuple[TensorType, ...], Any] = field(default_factory=dict[tuple[TensorType, ...], Any])
    is_fixed: bool = False

    def made(self, types: Sequence[TensorType], make: Make) -> Any:  # what ``make`` gives
        """What was compiled for arguments of these types, now if need be. Where symbols fail, numbers stay."""
        self._compare([of.shape for of in types])
        symbolic = tuple(types) if self.is_fixed else self._symbolic(types)
        if symbolic not in self.compiled:
            try:
                self.compiled[symbolic] = make(symbolic)
            except Exception as error:  # the function may do with numbers what symbols do not stand
                if symbolic == tuple(types):
                    raise
                log.info("compiled for every length by itself: %s", error)
                self.is_fixed = True
                return make(types)
        return self.compiled[symbolic]

    def _compare(self, shapes: Sequence[Shape]) -> None:
        self.first = self.first or shapes
        for position, (old, new) in enumerate(zip(self.first, shapes, strict=True)):
            self.changed.update(
                (position, axis) for axis, pair in enumerate(zip(old, new, strict=True)) if len({*pair}) > 1
            )

    def _symbolic(self, types: Sequence[TensorType]) -> tuple[TensorType, ...]:
        symbols: dict[Dim, Sym] = {}

        def extent(place: tuple[int, int], own: Dim) -> Dim:
            if place not in self.changed or own in (0, 1):
                return own
            return symbols.setdefault(own, sym(f"N{len(symbols)}"))

        return tuple(
            TensorType(tuple(extent((position, axis), own) for axis, own in enumerate(of.shape)), of.dtype)
            for position, of in enumerate(types)
        )
