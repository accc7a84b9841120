"""Extents of tensor dimensions: an ``int``, or a :class:`Sym`, a polynomial over named symbols.

Equal symbols mean equal extents, so two dims are equal exactly when their canonical polynomials are.
Every symbol stands for an integer >= 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from math import prod
from typing import Final

from kernelgen.system.limits import LIMITS

Monomial = tuple[str, ...]


class Sym:
    """A polynomial with integer coefficients: ``terms`` is sorted ``((symbols...), coefficient)`` pairs.

    ``Sym`` supports ``+ - *`` with ints and other Syms; a constant result collapses to ``int``.
    Make one with :func:`sym` or :func:`parse_dim`.
    """

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms: Final = terms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sym) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.terms)

    def __add__(self, other: Dim) -> Dim:
        return _from_terms([*self.terms, *_terms(other)])

    def __mul__(self, other: Dim) -> Dim:
        return _from_terms([(tuple(sorted(a + b)), x * y) for a, x in self.terms for b, y in _terms(other)])

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return self + (other * -1)

    def __rsub__(self, other: Dim) -> Dim:
        return (self * -1) + other

    __radd__ = __add__
    __rmul__ = __mul__

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names in it, sorted."""
        return tuple(sorted({name for monomial, _ in self.terms for name in monomial}))

    def __str__(self) -> str:
        text = " + ".join(_monomial_text(monomial, coefficient) for monomial, coefficient in self.terms)
        return text.replace("+ -", "- ")

    __repr__ = __str__


Dim = int | Sym
Shape = tuple[Dim, ...]


def sym(name: str) -> Sym:
    """The symbol of that name. Raises ValueError for a text that is no name."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"{name!r} is not a symbol name: letters, digits and underscores, no leading digit")
    return Sym((((name,), 1),))


def parse_dim(text: str | int) -> Dim:
    """Reads ``"8"``, ``"N"``, ``"2*N"``, ``"N*M + 1"``; the inverse of ``str``."""
    return int(text) if isinstance(text, int) or text.isdecimal() else _polynomial(text)


@lru_cache(maxsize=1 << 12)  # the texts of one graph repeat few polynomials
def _polynomial(text: str) -> Dim:
    total: Dim = 0
    for sign, term in re.findall(r"([+-]?)\s*([^\s+-][^+-]*)", text):
        factors: list[Dim] = [int(f) if f.strip().isdigit() else sym(f.strip()) for f in term.split("*")]
        total = total + product(factors) * (-1 if sign == "-" else 1)
    return total


def product(dims: Iterable[Dim]) -> Dim:
    """The product of dims, 1 for none: the number of elements of a shape."""
    return prod(dims, start=1)  # type: ignore[arg-type,return-value]  # Sym multiplies with int


def total(dims: Iterable[Dim]) -> Dim:
    """The sum of dims, 0 for none; long sums are put in order once."""
    number, terms = 0, list[tuple[Monomial, int]]()
    for dim in dims:
        if isinstance(dim, Sym):
            terms += dim.terms
        else:
            number += dim
    return _from_terms([*terms, *_terms(number)]) if terms else number


def divide_exactly(dividend: Dim, divisor: Dim) -> Dim | None:
    """``dividend / divisor`` if that is a polynomial for all symbol values, else None.

    Long division: what cancels the leading term of the rest is the only next term that a quotient can have.
    """
    divisor_terms = _terms(divisor)
    if dividend == divisor or not divisor_terms:
        return 1 if dividend == divisor else None
    leading, factor = divisor_terms[0]
    rest, quotient = dict(_terms(dividend)), list[tuple[Monomial, int]]()
    while rest:
        greatest = min(rest, key=_order)
        part, (times, over) = _without(greatest, leading), divmod(rest[greatest], factor)
        if part is None or over or len(quotient) == LIMITS.symbol_terms:
            return None
        quotient.append((part, times))
        for symbols, coefficient in divisor_terms:
            place = tuple(sorted(part + symbols))
            rest[place] = rest.get(place, 0) - times * coefficient
            if not rest[place]:
                del rest[place]
    return _from_terms(quotient)


def _without(symbols: Monomial, divisor: Monomial) -> Monomial | None:
    """The quotient of two products of symbols; None when there is none."""
    remaining = list(symbols)
    for name in divisor:
        if name not in remaining:
            return None
        remaining.remove(name)
    return tuple(remaining)


def evaluate(dim: Dim, values: Mapping[str, int]) -> int:
    """The value of a dim when each symbol has the given value; ``KeyError`` for a missing symbol."""
    if not isinstance(dim, Sym):  # most are numbers
        return dim
    return sum(c * prod(values[name] for name in symbols) for symbols, c in dim.terms)


def least_extent(dim: Dim) -> int:
    """What the extent is at least for all sizes of its symbols, which are 1 or more; 0 when that cannot be told."""
    if not isinstance(dim, Sym):
        return dim
    falls = any(symbols and factor < 0 for symbols, factor in dim.terms)
    return 0 if falls else max(evaluate(dim, dict.fromkeys(dim.symbols, 1)), 0)


def substitute(dim: Dim, values: Mapping[str, Dim]) -> Dim:
    """The dim with some symbols replaced; symbols that are not in ``values`` stay."""
    if not isinstance(dim, Sym):
        return dim
    total: Dim = 0
    for symbols, coefficient in dim.terms:
        total = total + product(values.get(name, sym(name)) for name in symbols) * coefficient
    return total


def static_extents(shape: Shape) -> tuple[int, ...] | None:
    """The extents when all are numbers, else None."""
    extents = tuple([dim for dim in shape if not isinstance(dim, Sym)])
    return extents if len(extents) == len(shape) else None


def symbols_of(shape: Iterable[Dim]) -> tuple[str, ...]:
    """The sorted names of all symbols in a shape."""
    return tuple(sorted({name for dim in shape if isinstance(dim, Sym) for name in dim.symbols}))


def solve(pattern: Dim, value: int, known: Mapping[str, int]) -> dict[str, int] | None:
    """Binds the one unknown symbol in ``pattern`` so that it equals ``value``.

    Returns the new bindings (empty when none was needed), or None when there is no solution.
    Only linear occurrences of one unknown can be solved; other patterns return ``{}`` unbound.
    """
    if not isinstance(pattern, Sym):
        return {} if pattern == value else None
    slopes = _slopes(pattern, known)
    rest = value - slopes.pop((), 0)
    unknown = [(symbols, slope) for symbols, slope in slopes.items() if slope]
    if not unknown:
        return {} if rest == 0 else None
    if len(unknown) > 1 or len(unknown[0][0]) > 1:
        return {}
    (((name,), slope),) = unknown
    quotient, remainder = divmod(rest, slope)
    return {name: quotient} if remainder == 0 and quotient >= 0 else None


def _slopes(pattern: Sym, known: Mapping[str, int]) -> dict[Monomial, int]:
    """By products of unknown symbols, their factors when the others have their values; under ``()`` what has none."""
    found: dict[Monomial, int] = {}
    for symbols, coefficient in pattern.terms:
        unknown = tuple([name for name in symbols if name not in known])
        factor = prod([known[name] for name in symbols if name in known])
        found[unknown] = found.get(unknown, 0) + coefficient * factor
    return found


def _terms(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(dim, Sym):
        return dim.terms
    return (((), dim),) if dim else ()


def _from_terms(terms: Iterable[tuple[Monomial, int]]) -> Dim:
    collected: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        collected[monomial] = collected.get(monomial, 0) + coefficient
    kept = tuple(sorted(((m, c) for m, c in collected.items() if c), key=lambda term: _order(term[0])))
    if not kept:
        return 0
    if kept[0][0] == ():
        return kept[0][1]
    if len(kept) > LIMITS.symbol_terms or len(kept[0][0]) > LIMITS.symbol_degree:
        raise ValueError(f"a polynomial of more than {LIMITS.symbol_terms} products of {LIMITS.symbol_degree} symbols")
    return Sym(kept)


def _order(symbols: Monomial) -> tuple[int, Monomial]:
    """The order of terms: by degree, then by names; products with the same symbols keep it."""
    return -len(symbols), symbols


def _monomial_text(monomial: Monomial, coefficient: int) -> str:
    if not monomial:
        return str(coefficient)
    body = "*".join(monomial)
    if coefficient == 1:
        return body
    return f"-{body}" if coefficient == -1 else f"{coefficient}*{body}"
