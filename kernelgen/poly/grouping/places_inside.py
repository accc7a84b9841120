"""Products of the places of tiles run over all places of a row before the next row, so that a row stays in a cache between
what makes its places, their products, and who adds those up.

    V0[i, j, c]: v[0, i, j, c] = x[..] - x[..]; V1: v[1, i, j, c] = ...       V0, V1, ...
    P[p, i, j, o, c]: m[p, i, j, o] += v[p, i, j, c] * u[p, c, o]      ->     P[i, p, j, o, c]: ...
    Y[i, j, o]: y[..] = m[0, i, j, o] + m[1, i, j, o] + ...                   Y

Legality: instances of a statement have no order among themselves. Cost: each row reads the constants of all places, which the
second cache keeps where they are few, and what is made of a row is as large as a row, not as an image.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.nest.nodes import Num, Space
from kernelgen.poly.model.product_recognition import is_product, kept_names, moves
from kernelgen.poly.model.scop import Scop, Statement


def places_inside(scop: Scop) -> Scop:
    """The ``scop`` with rows outside of places in products with constants whose places others make one by one."""
    made = {
        write.buffer.name
        for statement in scop.statements
        for write in statement.writes
        if write.buffer.space is Space.WORKSPACE and write.index and isinstance(write.index[0], Num)
    }
    found = tuple(_with_rows_first(statement, scop.constants, made) for statement in scop.statements)
    return scop if found == scop.statements else replace(scop, statements=found)


def _with_rows_first(statement: Statement, constants: frozenset[str], made: set[str]) -> Statement:
    if not is_product(statement):
        return statement
    held = [moves(read) for read in statement.reads if read.buffer.name in constants]
    others = [read for read in statement.reads if read.buffer.name not in constants]
    if len(held) != 1 or len(others) != 1 or others[0].buffer.name not in made:
        return statement
    kept = kept_names(statement)
    places = [name for name in kept if name in held[0] & moves(others[0])]
    rows = [name for name in kept if name not in held[0]][:-1]
    first = [it for it in statement.iterators if it.name in rows]
    if len(places) != 1 or not rows:
        return statement
    return replace(statement, iterators=(*first, *(it for it in statement.iterators if it.name not in rows)))
