"""Rewrites accesses ``x[n / 16, n mod 16]`` as ``x[n]``, so that isl has no quotients to deal with.

    x[n / 16, m, n mod 16]  ->  x[n, m, 0]        bind i = n / 16; bind j = n mod 16; x[i, j]  ->  x[n, 0]

``(n / t, n mod t) = (m / t, m mod t)`` is ``n = m``, so that two accesses meet in the one form if and only if they do in the
other one. All accesses of a buffer change together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Index, IndexBinary, IndexOp, Num, Var
from kernelgen.poly.proof.grid_accesses import Digits, Site

Element = tuple[Index, ...]


def by_wholes(sites: Sequence[Site]) -> list[Site]:
    """The accesses of one buffer, with a number in place of its digits where all of them address the same dims by those."""
    found = list(sites)
    for digits in sites[0].path.digits:
        places = _places_of(sites[0], digits)
        if places and not _moves(sites[0], digits):
            found = _rewritten(found, lambda site, d=digits, p=places: _by_digits(site, d, p))
    for first, second in permutations(range(len(sites[0].element)), 2):
        radix = _radix(found[0].element, first, second)
        if radix is not None:
            found = _rewritten(found, lambda site, r=radix, p=first, q=second: _by_parts(site, r, p, q))
    return found


def _rewritten(sites: list[Site], rewrite: Callable[[Site], Element | None]) -> list[Site]:
    """All of them or none."""
    elements = [rewrite(site) for site in sites]
    known = [element for element in elements if element is not None]
    if len(known) < len(sites):
        return sites
    return [replace(site, element=element) for site, element in zip(sites, known, strict=True)]


def _by_digits(site: Site, digits: Digits, places: tuple[int, ...]) -> Element | None:
    """The number whose digits to the same radices stand at those places."""
    for own in site.path.digits:
        if own.radices == digits.radices and _places_of(site, own) == places:
            return _with_whole(site, Var(own.whole), places)
    return None


def _moves(site: Site, digits: Digits) -> bool:
    """Whether the digits start somewhere else for other instances: equal digits are then no sign of equal numbers."""
    return any(name in site.path.dims for radix in digits.radices for name in ix.variables(radix.start))


def _places_of(site: Site, digits: Digits) -> tuple[int, ...]:
    """The dims that the digits address, one each; none where it is not so."""
    found = [[k for k, i in enumerate(site.element) if i == Var(name)] for name in digits.names]
    return tuple(places[0] for places in found) if all(len(places) == 1 for places in found) else ()


def _by_parts(site: Site, radix: int, first: int, second: int) -> Element | None:
    """The number whose quotient and rest stand at those places."""
    if _radix(site.element, first, second) != radix:
        return None
    quotient = site.element[first]
    return _with_whole(site, quotient.left, (first, second)) if isinstance(quotient, IndexBinary) else None


def _radix(element: Element, first: int, second: int) -> int | None:
    """The divisor, where the two places are quotient and rest of one number."""
    match element[first], element[second]:
        case IndexBinary(IndexOp.DIV, whole, Num(radix)), IndexBinary(IndexOp.MOD, other, Num(same)) if (
            whole == other and radix == same
        ):
            return radix
        case _:
            return None


def _with_whole(site: Site, whole: Index, places: tuple[int, ...]) -> Element:
    first, *others = places
    return tuple(whole if k == first else Num(0) if k in others else i for k, i in enumerate(site.element))
