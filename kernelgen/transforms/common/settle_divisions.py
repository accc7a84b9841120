"""Takes out of the divisions of a vector loop what the loops around it leave whole, so that lanes alone are divided.

    for c in 0..128 step 16:                              for c in 0..128 step 16:
      vector j in 0..16: ... x[(c + j) / 4 * 4 + 1]    ->   vector j in 0..16: ... x[c + j / 4 * 4 + 1]

Legality: ``floor((4 a + r) / 4) = a + floor(r / 4)`` for whole numbers ``a`` and ``r`` of either sign; ``c`` is a multiple of 4
where its loop begins at one and goes in steps of one. An address then is one that the vector has and places of its lanes
that are known (:mod:`kernelgen.targets.cpu.statements.strided`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import gcd

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.ranges import is_multiple
from kernelgen.nest.substitute import map_indices
from kernelgen.nest.walk import map_loops

Factors = Mapping[str, int]
"""Of variables: what each is a multiple of."""


def settle_divisions(nest: n.Nest) -> n.Nest:
    """The nest with such divisions."""

    def settled(loop: n.For, around: Sequence[n.For]) -> n.For:
        factors = {each.var: _factor(each) for each in around}
        return replace(loop, body=map_indices(loop.body, lambda index: _index(index, loop.var, factors)))

    return replace(nest, body=map_loops(nest.body, (n.LoopKind.VECTOR,), settled))


def _factor(loop: n.For) -> int:
    return gcd(loop.lower.value, loop.step) if isinstance(loop.lower, n.Num) else 1


def _index(index: n.Index, lane: str, factors: Factors) -> n.Index:
    match index:
        case n.IndexBinary(n.IndexOp.MUL, n.IndexBinary(n.IndexOp.DIV, inner, n.Num(divisor)), n.Num(factor)):
            parts = _parts(inner, divisor, lane, factors) if factor % divisor == 0 else None
            if parts is not None:
                whole, rest = parts
                lanes = ix.multiply(ix.floor_divide(rest, n.Num(divisor)), n.Num(factor))
                return ix.add(ix.multiply(whole, n.Num(factor // divisor)), lanes)
        case n.IndexBinary(op, left, right) if lane in index.variables:
            return ix.binary(op, _index(left, lane, factors), _index(right, lane, factors))
    return index


def _parts(index: n.Index, divisor: int, lane: str, factors: Factors) -> tuple[n.Index, n.Index] | None:
    """The sum of its terms that are multiples of the divisor, and that of the others, which move with lanes alone; None where
    it is not such a sum.
    """
    terms = list(_terms(index))
    known = {name: ix.multiply(n.Var(name), n.Num(factor)) for name, factor in factors.items()}
    whole = [term for term in terms if is_multiple(ix.substitute(term, known), divisor)]
    rest = [term for term in terms if term not in whole]
    if not whole or ix.variables(reduce(ix.add, rest, n.Num(0))) != {lane}:
        return None
    return reduce(ix.add, whole), reduce(ix.add, rest)


def _terms(index: n.Index) -> Iterator[n.Index]:
    match index:
        case n.IndexBinary(n.IndexOp.ADD, left, right):
            yield from _terms(left)
            yield from _terms(right)
        case _:
            yield index
