"""Extents that follow from others by more than a polynomial: half of N, at most 8, what broadcasts to both.

Such an extent has a symbol of its own. The graph says how it follows from the symbols of its inputs and those before it,
so its value is known as soon as the inputs are there. It may be 0. One that follows from nothing is a number that somebody
gave for a symbol: types have the number, and this still has its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.types import Dim, evaluate, substitute, symbols_of


def _broadcast(a: int, b: int) -> int:
    return b if a == 1 else a


def _windows(room: int, stride: int) -> int:
    before = room // stride if room >= 0 else -(-room // stride)
    return max(before + 1, 0)


def _from_front(bound: int, extent: int) -> int:
    return max(bound + extent, 0) if bound < 0 else bound


FUNCTIONS: Mapping[str, Callable[[int, int], int]] = {
    "floor_div": int.__floordiv__,
    "windows": _windows,
    "min": min,
    "max": max,
    "broadcast": _broadcast,
    "from_front": _from_front,
}
"""What an extent may be of two others; ``windows`` counts those that begin a stride apart and leave that room when there is
one: where there is less than none as well, up to a stride, as ONNX rounds; ``broadcast`` is the extent that numpy gives them
both; ``from_front`` is the place that a bound means on an axis of an extent, from whose end negative ones count,
and which it does not leave at the front.
"""


class Derived(NamedTuple):
    """``name = function(first, second)``, or ``name = number``, which is the greater one of it and itself."""

    name: str
    function: str
    first: Dim
    second: Dim

    def __str__(self) -> str:
        if isinstance(self.first, int) and self == Derived.given(self.name, self.first):
            return f"{self.name} = {self.first}"
        return f"{self.name} = {self.function}({self.first}, {self.second})"

    @staticmethod
    def given(name: str, extent: Dim) -> Derived:
        """``name = extent``."""
        return Derived(name, "max", extent, extent)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols that it follows from."""
        return symbols_of((self.first, self.second))

    def value(self, symbols: Mapping[str, int]) -> int:
        """Its value for these values of symbols; ``ZeroDivisionError`` where it is divided by nothing."""
        return FUNCTIONS[self.function](evaluate(self.first, symbols), evaluate(self.second, symbols))

    def after(self, values: Mapping[str, Dim]) -> Derived:
        """The same of other dims."""
        return Derived(self.name, self.function, substitute(self.first, values), substitute(self.second, values))


def with_derived(symbols: dict[str, int], derived: Iterable[Derived]) -> dict[str, int]:
    """The values of all symbols, when those of the inputs are these."""
    for entry in derived:
        symbols[entry.name] = entry.value(symbols)
    return symbols
