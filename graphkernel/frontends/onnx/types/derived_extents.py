"""Arithmetic of extents beyond polynomials: quotients, the lesser, the greater, what broadcasts.

Whatever is no polynomial becomes a symbol that the graph derives; equal arithmetic gives equal symbols, so that the two
branches of a residual block have one extent.

A slice ``table[:S]`` of ten rows has the extent min(S, 10). If it is added to S rows, then no run is possible in which
it is not S. Such extents are ``needed`` as if nothing were cut, and an import that is told so gives them the extent S.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kernelgen.tensor.derived import FUNCTIONS, Derived
from kernelgen.tensor.types import Dim, Sym, divide_exactly, substitute, sym, symbols_of

MOST_STEPS = 6  # bounds that are put in one after the other to see a sign


class DependsOnDataError(Exception):
    """An extent that follows from one that an operator defines: it is known when that has run."""


@dataclass
class DerivedExtents:
    """``told`` are the symbols that the inputs tell, ``name`` makes names; ``entries`` are derived in their order.

    ``uncut`` are lesser and greater ones (by :meth:`text`) of which only the first operand counts, ``needed`` are further
    ones for which that would make operands fit.
    """

    told: set[str]
    name: Callable[[], str]
    uncut: frozenset[str] = frozenset()
    needed: set[str] = field(default_factory=set[str])
    entries: dict[str, Derived] = field(default_factory=dict[str, Derived])
    _known: dict[tuple[str, Dim, Dim], Dim] = field(default_factory=dict[tuple[str, Dim, Dim], Dim])
    _first: dict[str, Dim] = field(default_factory=dict[str, Dim])

    @contextmanager
    def tried(self) -> Generator[None]:
        """Where what comes fails, nothing was derived."""
        needed, tables = set(self.needed), (self.entries, self._known, self._first)
        counts = tuple(map(len, tables))
        try:
            yield
        except Exception:
            self.told -= set(list(self.entries)[counts[0] :])
            self.needed = needed
            for table, count in zip(tables, counts, strict=True):
                take_back(table, count)
            raise

    def floor_div(self, dividend: Dim, divisor: Dim) -> Dim:
        """The quotient rounded down. Raises ``ZeroDivisionError``."""
        exact = None if divisor == 0 else divide_exactly(dividend, divisor)
        if exact is not None:
            return exact
        if not isinstance(divisor, int):
            return self._derived("floor_div", dividend, divisor)
        whole, rest = _split(dividend, divisor)
        if _is_subtracted(rest):  # -(n // -d) is the quotient rounded up, and as an extent it is no less than nothing
            return whole - self.floor_div(rest * -1 + (divisor - 1), divisor)
        whole, rest = _split(dividend, divisor, whole_down=True)
        return whole + self._derived("floor_div", rest, divisor)

    def windows(self, room: Dim, stride: int) -> Dim:
        """How many windows there are that begin a ``stride`` apart, where one leaves so much ``room``."""
        if stride == 1 or self.is_nonnegative(room):
            return self.floor_div(room, stride) + 1
        return self._derived("windows", room, stride)

    def ceil_div(self, dividend: Dim, divisor: int) -> Dim:
        """The quotient by a positive number rounded up."""
        return self.floor_div(dividend + (divisor - 1), divisor)

    def least(self, a: Dim, b: Dim) -> Dim:
        """The lesser of two."""
        if self.is_nonnegative(a - b):
            return b
        return a if self.is_nonnegative(b - a) else self._cut("min", a, b)

    def greatest(self, a: Dim, b: Dim) -> Dim:
        """The greater of two."""
        if self.is_nonnegative(a - b):
            return a
        return b if self.is_nonnegative(b - a) else self._cut("max", a, b)

    def from_front(self, bound: Dim, extent: Dim) -> Dim:
        """The place that a bound means on an axis of this extent: a negative one counts from the end, and not beyond 0."""
        return self._derived("from_front", bound, extent)

    def broadcast(self, a: Dim, b: Dim) -> Dim:
        """The extent of an axis of two operands that broadcast; a number other than 1 settles it."""
        if a == b or b == 1 or (isinstance(a, int) and a != 1):
            return a
        if a == 1 or isinstance(b, int):
            return b
        return a if self.must_equal(a, b) else self._derived("broadcast", *_ordered(a, b))

    def must_equal(self, a: Dim, b: Dim) -> bool:
        """Whether two extents are one once nothing is cut; that is noted as needed."""
        found: set[str] = set()
        if isinstance(a, int) or isinstance(b, int) or self._uncut(a, found) != self._uncut(b, found):
            return False
        self.needed |= found
        return True

    def _uncut(self, dim: Dim, found: set[str]) -> Dim:
        """The dim as if nothing were cut; ``found`` takes what that is about."""
        names = [name for name in symbols_of((dim,)) if isinstance(self._first.get(name), Sym)]
        found.update(self._text(self.entries[name]) for name in names)
        return substitute(dim, {name: self._uncut(self._first[name], found) for name in names})

    def _cut(self, function: str, a: Dim, b: Dim) -> Dim:
        first, second = _ordered(a, b)
        if isinstance(a, Sym) and self._text(Derived("", function, first, second)) in self.uncut:
            return a
        made = self._derived(function, first, second)
        if isinstance(made, Sym):
            self._first.setdefault(made.symbols[0], a)
        return made

    def _text(self, entry: Derived) -> str:
        """What is derived, without names of what is derived, which differ from import to import."""
        text = f"{entry.function}({entry.first}, {entry.second})"
        inner = {name: self._text(self.entries[name]) for name in entry.symbols if name in self.entries}
        return re.sub(r"\w+", lambda word: inner.get(word.group(), word.group()), text)

    def shape(self, shapes: Iterable[Iterable[Dim]]) -> tuple[Dim, ...]:
        """The shape of operands that broadcast."""
        result: tuple[Dim, ...] = ()
        for other in map(tuple, shapes):
            rank = max(len(result), len(other))
            left, right = ((1,) * (rank - len(x)) + x for x in (result, other))
            result = tuple(map(self.broadcast, left, right))
        return result

    def is_nonnegative(self, dim: Dim, steps: int = MOST_STEPS) -> bool:
        """Whether a dim is at least 0 for all symbols of inputs from 1 on; False when that is not seen."""
        if isinstance(dim, int):
            return dim >= 0
        if self._least_value(dim) >= 0:
            return True
        return steps > 0 and any(self.is_nonnegative(bound, steps - 1) for bound in self._bounds(dim))

    def _least_value(self, dim: Sym) -> int:
        """The value where all symbols are as small as they can be, those of inputs 1; -1 where they may be subtracted."""
        if any(factor < 0 for names, factor in dim.terms if names):
            return -1
        given = self.told - self.entries.keys()
        return sum(factor for names, factor in dim.terms if given.issuperset(names))

    def _bounds(self, dim: Sym) -> Iterator[Dim]:
        """Dims that are at most some positive multiple of this one: with a bound in place of a derived extent."""
        for names, factor in dim.terms:
            if len(names) == 1 and names[0] in self.entries:
                rest = dim - sym(names[0]) * factor
                for bound, scale in _bounds(self.entries[names[0]], upper=factor < 0):
                    yield bound * factor + rest * scale

    def _derived(self, function: str, first: Dim, second: Dim) -> Dim:
        if isinstance(first, int) and isinstance(second, int):
            return FUNCTIONS[function](first, second)
        key = (function, first, second)
        if key not in self._known:
            entry = Derived("", function, first, second)
            if not self.told.issuperset(entry.symbols):
                raise DependsOnDataError(f"{function}({first}, {second})")
            name = self.name()
            self.told.add(name)
            self.entries[name] = Derived(name, function, first, second)
            self._known[key] = sym(name)
        return self._known[key]


def take_back(table: dict[Any, Any], count: int) -> None:
    """Leaves the first entries of a table."""
    while len(table) > count:
        table.popitem()


def _bounds(entry: Derived, upper: bool) -> Iterator[tuple[Dim, int]]:
    """(bound, scale): scale times the derived extent is at most, or at least, the bound."""
    match entry.function:
        case "floor_div":
            if isinstance(entry.second, int) and entry.second > 0:
                yield entry.first if upper else entry.first - (entry.second - 1), entry.second
        case "windows" if not upper:
            if isinstance(entry.second, int):
                yield entry.first + 1, entry.second
        case "min" if upper:
            yield from ((entry.first, 1), (entry.second, 1))
        case "max" if not upper:
            yield from ((entry.first, 1), (entry.second, 1))
        case _:
            return


def _split(dividend: Dim, divisor: int, *, whole_down: bool = False) -> tuple[Dim, Dim]:
    """(whole, rest): the dividend is whole * divisor + rest, with factors in the rest that are less than the divisor.

    Factors are divided towards zero, or with ``whole_down`` downwards.
    """
    whole: Dim = 0
    rest: Dim = 0
    for names, factor in dividend.terms if isinstance(dividend, Sym) else (((), dividend),):
        monomial: Dim = 1
        for name in names:
            monomial = monomial * sym(name)
        times = factor // divisor if whole_down or factor > 0 else -(-factor // divisor)
        whole, rest = whole + monomial * times, rest + monomial * (factor - times * divisor)
    return whole, rest


def _is_subtracted(rest: Dim) -> bool:
    """Whether all symbols in it are subtracted."""
    return isinstance(rest, Sym) and all(factor < 0 for names, factor in rest.terms if names)


def _ordered(a: Dim, b: Dim) -> tuple[Dim, Dim]:
    first, second = sorted((a, b), key=lambda dim: (isinstance(dim, Sym), str(dim)))
    return first, second
