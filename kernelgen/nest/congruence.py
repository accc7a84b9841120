"""What is known of an index modulo a number: enough to prove where an access lies in a vector or a block.

    residue((i * 30522 + j) - (i * 30522 + j + 16), 16)       0
    residue(i * 30522 + j, 16, {"i": Var("t") * 8, "j": 0})   0, since 8 * 30522 is a multiple of 16
    residue(i * 30522, 16)                                    None

An index becomes a polynomial over its variables with coefficients modulo that number; what is no sum or product is a
variable of its own. Terms whose coefficient vanishes are multiples, whatever their variables are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from kernelgen.nest.index import substitute, subtract
from kernelgen.nest.nodes import Index, IndexBinary, IndexOp, Num

Monomial = tuple[Index, ...]
Polynomial = dict[Monomial, int]
"""Sorted factors -> coefficient, 1 to modulus - 1; ``()`` is the constant term."""


def residue(
    index: Index, modulus: int, known: Mapping[str, Index] | None = None, zeros: Sequence[Index] = ()
) -> int | None:
    """``index mod modulus`` where it is one number for all values of the variables.

    ``known`` are what variables equal; ``zeros`` are indices that are multiples of the modulus. Where one has a term whose
    coefficient has an inverse, that term is what the others make it.
    """
    found = polynomial(substitute(index, known) if known else index, modulus)
    for zero in zeros:
        found = _without(found, polynomial(zero, modulus), modulus)
    return found.get((), 0) if found.keys() <= {()} else None


def distance(left: Index, right: Index, modulus: int) -> int | None:
    """``left - right mod modulus`` where it is one number."""
    return residue(subtract(left, right), modulus)


def polynomial(index: Index, modulus: int) -> Polynomial:
    """The terms that do not vanish modulo a number."""
    match index:
        case Num(value):
            return _reduced({(): value}, modulus)
        case IndexBinary(IndexOp.ADD | IndexOp.SUB as op, left, right):
            sign = 1 if op is IndexOp.ADD else -1
            total = polynomial(left, modulus)
            for term, coefficient in polynomial(right, modulus).items():
                total[term] = total.get(term, 0) + sign * coefficient
            return _reduced(total, modulus)
        case IndexBinary(IndexOp.MUL, left, Num(factor)):  # nearly all products: factors stay in order
            return _reduced({term: value * factor for term, value in polynomial(left, modulus).items()}, modulus)
        case IndexBinary(IndexOp.MUL, left, right):
            return _product(polynomial(left, modulus), polynomial(right, modulus), modulus)
        case IndexBinary(IndexOp.MOD, left, Num(divisor)) if divisor % modulus == 0:
            return polynomial(left, modulus)
        case _:
            return _reduced({(index,): 1}, modulus)


def _without(found: Polynomial, zero: Polynomial, modulus: int) -> Polynomial:
    """The terms that are left when a vanishing polynomial is taken away as often as its leading term is there."""
    if len(zero) == 1:
        ((term, factor),) = zero.items()
        return {own: value for own, value in found.items() if value % factor or not _holds(own, term)}
    lead = max((term for term, factor in zero.items() if gcd(factor, modulus) == 1), key=len, default=())
    if not lead:
        return found
    scaled = _product(zero, {(): pow(zero[lead], -1, modulus)}, modulus)
    while (term := next((own for own in found if _holds(own, lead)), None)) is not None:
        rest = list(term)
        for each in lead:
            rest.remove(each)
        taken = _product(scaled, {tuple(rest): -found[term]}, modulus)
        found = _reduced({own: found.get(own, 0) + taken.get(own, 0) for own in {**found, **taken}}, modulus)
    return found


def _holds(term: Monomial, part: Monomial) -> bool:
    return bool(part) and all(term.count(each) >= part.count(each) for each in part)


def _product(left: Polynomial, right: Polynomial, modulus: int) -> Polynomial:
    total: Polynomial = {}
    for a, x in left.items():
        for b, y in right.items():
            term = tuple(sorted((*a, *b), key=repr))
            total[term] = total.get(term, 0) + x * y
    return _reduced(total, modulus)


def _reduced(terms: Polynomial, modulus: int) -> Polynomial:
    return {term: rest for term, value in terms.items() if (rest := value % modulus)}
