"""The walk of passes that ask in loops for what is read later; which loops may ask is said here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kernelgen.nest import nodes as n
from kernelgen.nest.walk import AROUND, of_statements, with_body

Kinds = frozenset[n.LoopKind]
Ask = Callable[[n.For, tuple[n.For, ...]], n.For]
"""A loop with hints, or the loop itself, given the loops around it, outermost first."""

IN_TURN: Kinds = frozenset((n.LoopKind.SERIAL,))
OF_THREADS: Kinds = frozenset((n.LoopKind.PARALLEL,))
OVER_ROWS = IN_TURN | OF_THREADS
OVER_TERMS = OVER_ROWS | {n.LoopKind.UNROLL, n.LoopKind.ROWS}
"""Loops around vector loops. An interleaved one is none of them: squares are printed of a vector loop that stands alone."""


def with_hints(nest: n.Nest, kinds: Kinds, ask: Ask) -> n.Nest:
    """The ``nest`` whose loops of these ``kinds``, inner ones first, are what ``ask`` makes of them."""
    return replace(nest, body=_block(nest.body, (), kinds, ask))


def _block(block: n.Block, around: tuple[n.For, ...], kinds: Kinds, ask: Ask) -> n.Block:
    return of_statements(block, [_statement(part, around, kinds, ask) for part in block.statements])


def _statement(part: n.Statement, around: tuple[n.For, ...], kinds: Kinds, ask: Ask) -> n.Statement:
    if isinstance(part, n.Block):
        return _block(part, around, kinds, ask)
    if not isinstance(part, AROUND):
        return part
    inside = (*around, part) if isinstance(part, n.For) else around
    made = with_body(part, _block(part.body, inside, kinds, ask))
    return ask(made, around) if isinstance(made, n.For) and made.kind in kinds else made
