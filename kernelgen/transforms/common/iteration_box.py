"""Statements of a nest with the box that the loops around them run over; a loop over chunks and the loop in a chunk are one.

for c0 in 0..64 step 11 { for c1 in c0..min(64, c0 + 11) { for c2 in 0..N { ...      ->   c1: 64, c2: N
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelgen.nest.index import add, minimum, variables
from kernelgen.nest.nodes import Block, For, Index, Num, Statement, Var


@dataclass(frozen=True)
class Placed:
    """A statement with the loops around it, outermost first."""

    statement: Statement
    loops: tuple[For, ...]


def placed(root: Statement, loops: tuple[For, ...] = ()) -> Iterator[Placed]:
    """What is in blocks and loops, in order; other statements with blocks stay whole."""
    match root:
        case Block(statements):
            for one in statements:
                yield from placed(one, loops)
        case For():
            yield from placed(root.body, (*loops, root))
        case _:
            yield Placed(root, loops)


def boxes(loops: Sequence[For]) -> dict[str, Index] | None:
    """Variable -> extent of loops that make a box, chunks joined to one loop; None where they do not."""
    outer = {loop.var: loop for loop in loops}
    found: dict[str, Index] = {}
    for loop in loops:
        chunk = outer.get(loop.lower.name) if isinstance(loop.lower, Var) else None
        if chunk is not None:
            if not _is_chunk(loop, chunk) or chunk.var not in found:
                return None
            found[loop.var] = found.pop(chunk.var)
        elif loop.lower == Num(0):
            found[loop.var] = loop.upper
        else:
            return None
    stepped = {loop.var for loop in loops if loop.step != 1}
    inner = {name for extent in found.values() for name in variables(extent)} & set(outer)
    return None if inner or stepped & set(found) else found


def _is_chunk(loop: For, chunk: For) -> bool:
    """Whether a loop counts through one step of another that is around it."""
    end = add(Var(chunk.var), Num(chunk.step))
    whole = isinstance(chunk.upper, Num) and chunk.upper.value % chunk.step == 0
    return loop.step == 1 and (loop.upper == minimum(chunk.upper, end) or (whole and loop.upper == end))


def whole_axes(index: tuple[Index, ...], axes: Mapping[str, Index]) -> list[str] | None:
    """The variables of an index that is nothing but variables, each once, or 0; None for any other."""
    names = [at.name for at in index if isinstance(at, Var)]
    plain = all(isinstance(at, Var) or at == Num(0) for at in index)
    return names if plain and len(set(names)) == len(names) and all(name in axes for name in names) else None
