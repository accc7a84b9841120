"""Takes out of the divisions of a vector loop what does not change in its lanes.

    for c in 0..128 step 16:                              for c in 0..128 step 16:
      vector j in 0..16: ... x[(c + j) / 4 * 4 + 1]    ->   vector j in 0..16: ... x[c + j / 4 * 4 + 1]
      vector j in 0..16: ... x[(c + j) / 32 * 32]      ->   vector j in 0..16: ... x[c / 32 * 32]

Legality, for whole numbers of either sign: ``floor((4 a + r) / 4) = a + floor(r / 4)``; and where 16 divides ``c`` and 32,
``floor((c + j) / 32) = floor(c / 32)`` for ``0 <= j < 16``, since no multiple of 32 lies between. ``c`` is a multiple of 16
where its loop begins at one and goes in steps of one. So an address is one that the vector has, and places of its lanes that
are known (:mod:`kernelgen.targets.cpu.statements.strided`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import gcd, inf

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.substitute import map_indices
from kernelgen.nest.walk import map_loops


def settle_divisions(nest: n.Nest) -> n.Nest:
    """The nest with such divisions."""

    def settled(loop: n.For, around: Sequence[n.For]) -> n.For:
        lanes = _Lanes(loop.var, _extent(loop), {each.var: _factor(each) for each in around})
        return replace(loop, body=map_indices(loop.body, lanes.settled))

    return replace(nest, body=map_loops(nest.body, (n.LoopKind.VECTOR,), settled))


def _extent(loop: n.For) -> float:
    return loop.upper.value if loop.lower == n.Num(0) and isinstance(loop.upper, n.Num) else inf


def _factor(loop: n.For) -> int:
    return gcd(loop.lower.value, loop.step) if isinstance(loop.lower, n.Num) else 1


@dataclass(frozen=True)
class _Lanes:
    """The variable of a vector loop, which is below the ``extent``, and what the variables around are multiples of."""

    variable: str
    extent: float
    factors: dict[str, int]

    def settled(self, index: n.Index) -> n.Index:
        """The index with such divisions."""
        if self.variable not in ix.variables(index) or not isinstance(index, n.IndexBinary):
            return index
        match index:
            case n.IndexBinary(n.IndexOp.MUL, n.IndexBinary(n.IndexOp.DIV, inner, n.Num(divisor)), n.Num(factor)):
                return self.quotient(inner, divisor, factor) or index
            case n.IndexBinary(n.IndexOp.DIV, inner, n.Num(divisor)):
                return self.quotient(inner, divisor, 1) or index
            case _:
                return ix.binary(index.op, self.settled(index.left), self.settled(index.right))

    def quotient(self, index: n.Index, divisor: int, factor: int) -> n.Index | None:
        """The floor of its quotient, as often as the ``factor`` says; None where that cannot be said of lanes alone."""
        terms = _terms(index)
        moving = [term for term in terms if self.variable in ix.variables(term)]
        fixed = _sum(term for term in terms if self.variable not in ix.variables(term))
        common = gcd(divisor, self.multiple_of(fixed))
        if self.extent <= common and moving == [n.Var(self.variable)]:
            return self.times(fixed, divisor, factor)
        if common < divisor or fixed == n.Num(0) or ix.variables(_sum(moving)) != frozenset((self.variable,)):
            return None
        return ix.add(self.times(fixed, divisor, factor), self.times(_sum(moving), divisor, factor))

    def times(self, index: n.Index, divisor: int, factor: int) -> n.Index:
        """``factor * floor(index / divisor)``."""
        if factor % divisor == 0 and self.multiple_of(index) % divisor == 0:
            return ix.multiply(index, n.Num(factor // divisor))
        return ix.multiply(ix.floor_divide(index, n.Num(divisor)), n.Num(factor))

    def multiple_of(self, index: n.Index) -> int:
        """A number that certainly divides the index; 0 divides nothing but 0."""
        match index:
            case n.Num(value):
                return abs(value)
            case n.Var(name):
                return self.factors.get(name, 1)
            case n.IndexBinary(n.IndexOp.ADD | n.IndexOp.SUB, left, right):
                return gcd(self.multiple_of(left), self.multiple_of(right))
            case n.IndexBinary(n.IndexOp.MUL, left, right):
                return self.multiple_of(left) * self.multiple_of(right)
            case _:
                return 1


def _terms(index: n.Index) -> list[n.Index]:
    match index:
        case n.IndexBinary(n.IndexOp.ADD, left, right):
            return [*_terms(left), *_terms(right)]
        case _:
            return [index]


def _sum(terms: Iterable[n.Index]) -> n.Index:
    return reduce(ix.add, terms, n.Num(0))
