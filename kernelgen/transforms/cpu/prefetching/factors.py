"""Asks for the factor of a product that no cache holds, a tile before it is multiplied.

    for b in 0..M step 128: ... for i in b..b + 128 step 8:        the block of rows that lies 128 further on:
      for k in 0..K: vector j: r[j] += a[i, k] * p[k, j]; ...        prefetch a[i + 128, 0] + 8 k

    for b in 0..K step 196: ... for i in 0..M step 8:              the same element of the term that lies 196 further on:
      for k in b..b + 196: vector j: r[j] += a[k, i] * p[k, j]; ...  prefetch a[k + 196, i]

Blocks of rows are read along eight rows at once, or a few elements of a line of every term: a processor follows neither.
Panels of a tile pass again over what the first one asked for, and ask in vain. Asking changes nothing but time, also past
the end of an array.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import loads_of, statements, vector_loop_of
from kernelgen.transforms.cpu.prefetching.hints import OVER_TERMS, argument_names, flat_place, with_hints

LEVEL = 2
"""The cache that holds a tile."""


def prefetch_factors(nest: n.Nest) -> n.Nest:
    """The nest with such hints in the innermost loops of sums."""
    arguments = argument_names(nest)
    return with_hints(nest, OVER_TERMS, lambda terms, around: _asking(terms, around, arguments))


def _asking(terms: n.For, around: tuple[n.For, ...], arguments: frozenset[str]) -> n.For:
    vector = vector_loop_of(terms.body)
    hint = None if vector is None else _hint(vector, terms, around, arguments)
    return terms if hint is None else replace(terms, body=n.Block((hint, *terms.body.statements)))


def _hint(vector: n.For, terms: n.For, around: tuple[n.For, ...], arguments: frozenset[str]) -> n.Prefetch | None:
    """What a turn of ``terms`` asks for; None where its factor does not come in tiles, or its rows lie apart."""
    sums = [part for part in statements(vector.body) if isinstance(part, n.Accumulate)]
    loads = (load for part in sums for load in loads_of(part) if load.buffer.name in arguments)
    factor = next((load for load in loads if not any(vector.var in ix.variables(i) for i in load.index)), None)
    if factor is None or not around:
        return None
    rows, place = around[-1], flat_place(factor)
    along, across = ix.stride(place, terms.var), ix.stride(place, rows.var)
    if along is None or across is None:
        return None
    if across == 1 and (tile := _tile_of(terms, around)) is not None:
        return n.Prefetch(factor.buffer, ix.add(place, n.Num(along * tile.step)), LEVEL)
    is_whole = along == 1 and ix.subtract(terms.upper, terms.lower) == n.Num(across)
    if is_whole and (tile := _tile_of(rows, around)) is not None:
        here = ix.substitute(place, {terms.var: terms.lower})
        turn = ix.multiply(ix.subtract(n.Var(terms.var), terms.lower), n.Num(rows.step))
        return n.Prefetch(factor.buffer, ix.add(ix.add(here, n.Num(across * tile.step)), turn), LEVEL)
    return None


def _tile_of(loop: n.For, around: tuple[n.For, ...]) -> n.For | None:
    """The loop around over tiles of this one."""
    return next((each for each in around if loop.lower == n.Var(each.var)), None)
