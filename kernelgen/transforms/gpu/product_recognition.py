"""Recognises matrix products in grids whose threads compute one result each.

    block i: block j:
      p = 0                                       rows i        what the left factor alone moves along
      for k: p += f(a[i, k]) * g(b[k, j])         columns j     the right factor alone
      y[i, j] = h(p, bias[j])                     batch         both or neither; sums k

Any number of loops may be rows, columns, batch or sums: a convolution is a product with rows ``n, h, w`` and sums
``kh, kw, c``. A factor is any scalar function of what it loads: casts, scales and guards of an operand belong to it. What
stands behind the sum, the tail, may be anything that has no loops.

Legality of computing tiles of results together: iterations of block loops are independent, so nothing that a factor loads
is written by another result's tail; a reduction may take its terms in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelgen.nest import index as ix
from kernelgen.nest.cost import node_count
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Bind,
    Buffer,
    Call,
    Expr,
    For,
    Grid,
    Let,
    Literal,
    Load,
    LoopKind,
    Num,
    Ref,
    Space,
    Statement,
    Store,
)
from kernelgen.nest.substitute import written_out
from kernelgen.nest.walk import loads, map_expressions, statements
from kernelgen.transforms.gpu.delinearise import block_loops, iterations

MAX_NODES = 32
"""Size of a term that is worth looking at; larger ones are rare."""

LEAST = 8
"""Rows and columns, below which tiles would be mostly empty."""


@dataclass(frozen=True)
class Product:
    """``total = sum over sums of left * right`` for all of ``batch``, ``rows`` and ``columns``; then ``tail``.

    Bindings before the sum are part of the tail; the factors have them written out.
    """

    batch: tuple[For, ...]
    rows: tuple[For, ...]
    columns: tuple[For, ...]
    sums: tuple[For, ...]
    left: Expr
    right: Expr
    total: Buffer
    tail: tuple[Statement, ...]


def product_of(grid: Grid) -> Product | None:
    """The product that a grid computes, if it is one that is worth tiles."""
    loops, inner = block_loops(grid.body)
    parts = inner.statements
    place = next((k for k, part in enumerate(parts) if isinstance(part, For)), None)
    if (
        not loops
        or not all(_is_plain(loop, loops) for loop in loops)
        or place is None
        or any(isinstance(s, For | Grid) for part in parts[place + 1 :] for s in statements(part))
    ):
        return None
    found = _sum_of(parts[place])
    if found is None or not all(isinstance(part, Alloc | Let | Store) for part in parts[:place]):
        return None
    sums, bindings, last = found
    total, value = last.buffer, last.value
    start, head = _started(parts[:place], total)
    if not start or not isinstance(value, Call) or value.function != "mul" or last.function != "add":
        return None
    bindings = [*(part for part in head if isinstance(part, Let)), *bindings]
    bound = {part.name: part.value for part in bindings}
    left, right = (written_out(factor, bound) for factor in value.args)
    tail = _bound_scalars((*head, *parts[place + 1 :]))
    return _sides(loops, sums, (left, right), Product((), (), (), sums, left, right, total, tail))


def is_dealt(grid: Grid) -> bool:
    """Whether the grid is the program of one thread already: it starts with what its block's number says."""
    return bool(grid.body.statements) and isinstance(grid.body.statements[0], Bind)


def _is_plain(loop: For, around: Sequence[For]) -> bool:
    return loop.lower == Num(0) and loop.step == 1 and not ix.variables(loop.upper) & {each.var for each in around}


def _sum_of(part: Statement) -> tuple[tuple[For, ...], list[Let], Accumulate] | None:
    """The loops of a sum, the bindings on the way, and the accumulation into one element that is all they do."""
    loops: list[For] = []
    bindings: list[Let] = []
    while isinstance(part, For):
        if (
            part.kind not in (LoopKind.SERIAL, LoopKind.UNROLL)
            or not _is_plain(part, loops)
            or not part.body.statements
        ):
            return None
        loops.append(part)
        *before, part = part.body.statements
        lets = [each for each in before if isinstance(each, Let)]
        if len(lets) != len(before):
            return None
        bindings += lets
    is_sum = isinstance(part, Accumulate) and part.buffer.space is Space.PRIVATE and not part.buffer.shape
    return (tuple(loops), bindings, part) if is_sum and isinstance(part, Accumulate) else None


def _started(parts: Sequence[Statement], total: Buffer) -> tuple[bool, tuple[Statement, ...]]:
    """Whether the total starts from 0 and is the only thing stored; what else stands there."""
    own = [part for part in parts if isinstance(part, Alloc | Store) and part.buffer.name == total.name]
    starts = [part for part in own if isinstance(part, Store)]
    is_zero = len(starts) == 1 and isinstance(starts[0].value, Literal) and starts[0].value.value == 0
    rest = tuple(part for part in parts if part not in own)
    return is_zero and len(own) == 2 and not any(isinstance(part, Store) for part in rest), rest


def _bound_scalars(parts: Sequence[Statement]) -> tuple[Statement, ...]:
    """The statements with bindings in place of arrays of one element that are stored once and then read."""
    made = {part.buffer.name for part in parts if isinstance(part, Alloc) and not part.buffer.shape}
    touched = [part.buffer.name for top in parts for part in statements(top) if isinstance(part, Store | Accumulate)]
    once = {
        part.buffer.name for part in parts if isinstance(part, Store) and touched.count(part.buffer.name) == 1
    } & made

    def read(expr: Expr) -> Expr:
        is_bound = isinstance(expr, Load) and expr.buffer.name in once
        return Ref(f"{expr.buffer.name}_value", expr.dtype) if is_bound and isinstance(expr, Load) else expr

    found: list[Statement] = []
    for part in parts:
        if isinstance(part, Alloc) and part.buffer.name in once:
            continue
        part = map_expressions(part, read)
        is_start = isinstance(part, Store) and part.buffer.name in once
        found.append(Let(f"{part.buffer.name}_value", part.value) if is_start and isinstance(part, Store) else part)
    return tuple(found)


def _sides(loops: Sequence[For], sums: tuple[For, ...], factors: tuple[Expr, Expr], found: Product) -> Product | None:
    """The product with its loops told apart; None where a factor has no side of its own, or data decides a place."""
    if not all(map(_is_simple, factors)):
        return None
    left, right = factors
    along = [{name for load in loads(factor) for i in load.index for name in ix.variables(i)} for factor in factors]
    if any(ix.variables_in(factor) - names for factor, names in zip(factors, along, strict=True)):
        return None
    if loops[-1].var in along[0] and loops[-1].var not in along[1]:  # neighbouring threads, neighbouring columns
        left, right, along = right, left, along[::-1]
    rows = tuple(loop for loop in loops if loop.var in along[0] and loop.var not in along[1])
    columns = tuple(loop for loop in loops if loop.var in along[1] and loop.var not in along[0])
    if not (_is_enough(rows) and _is_enough(columns)):
        return None
    batch = tuple(loop for loop in loops if loop not in rows and loop not in columns)
    return Product(batch, rows, columns, sums, left, right, found.total, found.tail)


def _is_enough(side: Sequence[For]) -> bool:
    count = iterations(side)
    return bool(side) and (not isinstance(count, Num) or count.value >= LEAST)


def _is_simple(expr: Expr) -> bool:
    """Small, and no data decides where it loads."""
    found = list(loads(expr))
    return len(found) > 0 and node_count(expr) <= MAX_NODES and not any(ix.is_by_data(*load.index) for load in found)


def is_contiguous(load: Load, variable: str) -> bool:
    """Whether neighbouring values of the variable load neighbours of a row."""
    *outer, last = load.index or (Num(0),)
    return ix.stride(last, variable) == 1 and not any(variable in ix.variables(i) for i in outer)
