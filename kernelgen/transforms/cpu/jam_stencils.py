"""Takes several rows of a stencil at once: what neighbouring rows read and compute alike is read and computed once.

    for i in 0..N:                            for i in 0..N / 4 * 4 step 4:
      vector for j:                             vector for j:
        a = x[i, j] + x[i, j + 1]      ->         a0 = x[i, j] + x[i, j + 1]; a1 = x[i + 1, j] + x[i + 1, j + 1]; ... a4
        b = x[i + 1, j] + x[i + 1, j + 1]         y[i, j] = a0 + a1; y[i + 1, j] = a1 + a2; ... y[i + 3, j] = a3 + a4
        y[i, j] = a + b                       for i in N / 4 * 4..N: one row

A box of 3 x 3 reads nine elements for each result and 18 for four; loads that are shifted along the row lie in two lines of
a cache each, so that loads bound such loops. A value of one row is one of another where both are the same function of the
same elements: expressions are numbered, places in their normal form. Results stay the same to the last bit.

Legality: the two loops together run the same instances. Nothing that is stored is loaded, so that none waits for another,
and instances of different rows store to different elements, so that none overwrites another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.substitute import substituted
from kernelgen.nest.walk import loads_of, map_blocks, map_expression, map_expressions
from kernelgen.transforms.cpu.unroll_and_jam import columns_of, has_rows, jammed

COUNTS = (4, 2)
"""Rows that are taken at once, the most that there are and that are not too long."""
MOST = 256
"""Statements of rows that are taken at once."""


def jam_stencils(nest: n.Nest) -> n.Nest:
    """The nest with two loops in place of one over rows that share what they read: several rows at once, and the rest."""
    return replace(nest, body=map_blocks(nest.body, _block))


def _block(block: n.Block) -> n.Block:
    return n.Block(tuple(made for part in block.statements for made in _loops(part)))


def _loops(part: n.Statement) -> Iterable[n.Statement]:
    """What stands in place of a statement."""
    columns = columns_of(part) if isinstance(part, n.For) else None
    if not isinstance(part, n.For) or columns is None or not _is_stencil(columns, part.var):
        return (part,)
    for count in COUNTS:
        rows, rest = jammed(part, columns, count)
        (together,) = (each for each in rows.body.statements if isinstance(each, n.For))
        body = _numbered(together.body)
        if has_rows(part, count) and len(body.statements) <= MOST:
            return replace(rows, body=n.Block((replace(together, body=body),))), rest
    return (part,)


def _is_stencil(columns: n.For, row: str) -> bool:
    """Whether a row only binds and stores, nothing that it loads and each elsewhere, and reads what the next one does."""
    body = columns.body.statements
    stores = [part for part in body if isinstance(part, n.Store)]
    stored = {store.buffer.name for store in stores}
    loaded = {load.buffer.name for part in body for load in loads_of(part)}
    if not all(isinstance(part, n.Let | n.Store) for part in body) or len(stored) < len(stores) or stored & loaded:
        return False
    apart = (any(ix.stride(at, row) and not ix.stride(at, columns.var) for at in store.index) for store in stores)
    following = substituted(columns.body, {row: ix.add(n.Var(row), n.Num(1))})
    return all(apart) and not _read(columns.body, row).isdisjoint(_read(following, row))


def _read(body: n.Block, row: str) -> frozenset[n.Expr]:
    """The loads of a body that move with the row."""
    loads = (load for part in body.statements for load in loads_of(part))
    return frozenset(normal(load) for load in loads if row in ix.variables_in(load))


def _numbered(body: n.Block) -> n.Block:
    """The body with each value bound once."""
    same: dict[str, n.Expr] = {}
    bound: dict[n.Expr, n.Ref] = {}
    parts: list[n.Statement] = []
    for part in body.statements:
        part = map_expressions(part, lambda expr: same.get(expr.name, expr) if isinstance(expr, n.Ref) else expr)
        if isinstance(part, n.Let):
            known = part.value if isinstance(part.value, n.Ref) else bound.get(normal(part.value))
            if known is not None:
                same[part.name] = known
                continue
            bound[normal(part.value)] = n.Ref(part.name, part.value.dtype)
        parts.append(part)
    return n.Block(tuple(parts))


def normal(expr: n.Expr) -> n.Expr:
    """The expression with places that look equal where they are."""

    def value(each: n.Expr) -> n.Expr:
        match each:
            case n.Load(buffer, index):
                return n.Load(buffer, tuple(map(polynomial, index)))
            case n.IndexValue(index):
                return replace(each, index=polynomial(index))
            case _:
                return each

    return map_expression(expr, value)


def polynomial(index: n.Index) -> n.Index:
    """The place with its terms in one order; as it is where it is no polynomial."""
    dim = ix.to_dim(index)
    return index if dim is None else ix.from_dim(dim)
