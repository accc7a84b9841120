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
from kernelgen.nest import nodes as n
from kernelgen.nest.cost import node_count
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

    batch: tuple[n.For, ...]
    rows: tuple[n.For, ...]
    columns: tuple[n.For, ...]
    sums: tuple[n.For, ...]
    left: n.Expr
    right: n.Expr
    total: n.Buffer
    tail: tuple[n.Statement, ...]


def product_of(grid: n.Grid) -> Product | None:
    """The product that a grid computes, if it is one that is worth tiles."""
    loops, inner = block_loops(grid.body)
    parts = inner.statements
    place = next((k for k, part in enumerate(parts) if isinstance(part, n.For)), None)
    if (
        not loops
        or not all(_is_plain(loop, loops) for loop in loops)
        or place is None
        or any(isinstance(s, n.For | n.Grid) for part in parts[place + 1 :] for s in statements(part))
    ):
        return None
    found = _sum_of(parts[place])
    if found is None or not all(isinstance(part, n.Alloc | n.Let | n.Store) for part in parts[:place]):
        return None
    sums, bindings, last = found
    total, value = last.buffer, last.value
    start, head = _started(parts[:place], total)
    if not start or not isinstance(value, n.Call) or value.function != "mul" or last.function != "add":
        return None
    bindings = [*(part for part in head if isinstance(part, n.Let)), *bindings]
    bound = {part.name: part.value for part in bindings}
    left, right = (written_out(factor, bound) for factor in value.args)
    tail = _bound_scalars((*head, *parts[place + 1 :]))
    return _sides(loops, sums, (left, right), Product((), (), (), sums, left, right, total, tail))


def is_dealt(grid: n.Grid) -> bool:
    """Whether the grid is the program of one thread already: it starts with what its block's number says."""
    return bool(grid.body.statements) and isinstance(grid.body.statements[0], n.Bind)


def _is_plain(loop: n.For, around: Sequence[n.For]) -> bool:
    return loop.lower == n.Num(0) and loop.step == 1 and not ix.variables(loop.upper) & {each.var for each in around}


def _sum_of(part: n.Statement) -> tuple[tuple[n.For, ...], list[n.Let], n.Accumulate] | None:
    """The loops of a sum, the bindings on the way, and the accumulation into one element that is all they do."""
    loops: list[n.For] = []
    bindings: list[n.Let] = []
    while isinstance(part, n.For):
        if (
            part.kind not in (n.LoopKind.SERIAL, n.LoopKind.UNROLL)
            or not _is_plain(part, loops)
            or not part.body.statements
        ):
            return None
        loops.append(part)
        *before, part = part.body.statements
        lets = [each for each in before if isinstance(each, n.Let)]
        if len(lets) != len(before):
            return None
        bindings += lets
    is_sum = isinstance(part, n.Accumulate) and part.buffer.space is n.Space.PRIVATE and not part.buffer.shape
    return (tuple(loops), bindings, part) if is_sum and isinstance(part, n.Accumulate) else None


def _started(parts: Sequence[n.Statement], total: n.Buffer) -> tuple[bool, tuple[n.Statement, ...]]:
    """Whether the total starts from 0 and is the only thing stored; what else stands there."""
    own = [part for part in parts if isinstance(part, n.Alloc | n.Store) and part.buffer.name == total.name]
    starts = [part for part in own if isinstance(part, n.Store)]
    is_zero = len(starts) == 1 and isinstance(starts[0].value, n.Literal) and starts[0].value.value == 0
    rest = tuple(part for part in parts if part not in own)
    return is_zero and len(own) == 2 and not any(isinstance(part, n.Store) for part in rest), rest


def _bound_scalars(parts: Sequence[n.Statement]) -> tuple[n.Statement, ...]:
    """The statements with bindings in place of arrays of one element that are stored once and then read."""
    made = {part.buffer.name for part in parts if isinstance(part, n.Alloc) and not part.buffer.shape}
    touched = [
        part.buffer.name for top in parts for part in statements(top) if isinstance(part, n.Store | n.Accumulate)
    ]
    once = {
        part.buffer.name for part in parts if isinstance(part, n.Store) and touched.count(part.buffer.name) == 1
    } & made

    def read(expr: n.Expr) -> n.Expr:
        is_bound = isinstance(expr, n.Load) and expr.buffer.name in once
        return n.Ref(f"{expr.buffer.name}_value", expr.dtype) if is_bound and isinstance(expr, n.Load) else expr

    found: list[n.Statement] = []
    for part in parts:
        if isinstance(part, n.Alloc) and part.buffer.name in once:
            continue
        part = map_expressions(part, read)
        is_start = isinstance(part, n.Store) and part.buffer.name in once
        found.append(n.Let(f"{part.buffer.name}_value", part.value) if is_start and isinstance(part, n.Store) else part)
    return tuple(found)


def _sides(
    loops: Sequence[n.For], sums: tuple[n.For, ...], factors: tuple[n.Expr, n.Expr], found: Product
) -> Product | None:
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


def _is_enough(side: Sequence[n.For]) -> bool:
    count = iterations(side)
    return bool(side) and (not isinstance(count, n.Num) or count.value >= LEAST)


def _is_simple(expr: n.Expr) -> bool:
    """Small, and no data decides where it loads."""
    found = list(loads(expr))
    return len(found) > 0 and node_count(expr) <= MAX_NODES and not any(ix.is_by_data(*load.index) for load in found)


def is_contiguous(load: n.Load, variable: str) -> bool:
    """Whether neighbouring values of the variable load neighbours of a row."""
    *outer, last = load.index or (n.Num(0),)
    return ix.stride(last, variable) == 1 and not any(variable in ix.variables(i) for i in outer)
