"""Packs what all row blocks of a matrix product read again into a panel: contiguous, small enough for the first cache.

    for i in 0..M step 8:                          for k0 in 0..K step 256:
      for k in 0..K:                                 alloc p[256, 32]
        vector j in c..c + 32:                       for k in k0..k0 + 256:
          y[i, j] += a[i, k] * f(b[k, j])    ->        vector j in 0..32: p[k - k0, j] = f(b[k, c + j])
          y[i + 1, j] += ...                         for i in 0..M step 8:
                                                       for k in k0..k0 + 256:
                                                         vector j in 0..32: y[i, c + j] += a[i, k] * p[k - k0, j]

Rows of ``b`` lie far apart: where they are read again and again, each is in another page and many fall into the same
cache sets. What is computed from ``b`` alone, a cast or a prologue, is computed once instead of once for each block; what
is computed from ``a`` alone is computed with vectors, into a strip of terms for each row of a block.
The order of the loops is that of Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008): a
panel stays in the caches of one core while the rows of the other operand stream past it.

Legality. A panel holds values that do not depend on the row loop, in which nothing that they load is written. The row loop
runs once for every piece of the sum: it only accumulates, into elements that belong to one of its iterations and are not
read, and a reduction may take its terms in any order. Starting values are stored in a row loop of their own before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import prod

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.cost import node_count
from kernelgen.nest.ranges import range_of
from kernelgen.nest.substitute import substituted, written_out
from kernelgen.nest.walk import loads, loads_of, map_blocks, nested, statements, stored_buffers
from kernelgen.transforms.cpu.register_blocking import MAX_LENGTH, reduction_of

MAX_PRODUCTS = 4
"""In one nest: panels lie on the stack."""

MAX_INNER = 1 << 10
"""Elements of a panel for one term of the outermost sum."""

LEAST_BLOCKS = 4
"""Row blocks that make a panel worth its copy."""

LEAST_TURNED = 2
"""The same of an operand that lies along the terms: a copy turns it round, else vectors are gathered, or summed up in lanes."""

LEAST_TERMS = 8
"""Of a sum whose operand is worth a panel."""

MAX_NODES = 32
"""Size of a term that is worth looking at; larger ones are rare."""

STAGGER = 16
"""Elements after each strip, so that equal places of strips fall into different cache sets."""


def pack(nest: n.Nest, panel: int) -> n.Nest:
    """The nest with such products packed into panels of so many bytes."""
    numbers, room = count(), iter(range(MAX_PRODUCTS))
    return replace(nest, body=map_blocks(nest.body, lambda block: _block(block, panel, numbers, room, nest.panels)))


def _block(block: n.Block, panel: int, numbers: Iterator[int], room: Iterator[int], packed: frozenset[str]) -> n.Block:
    """``packed`` are the buffers whose elements lie as loops read them."""
    parts: list[n.Statement] = []
    for part in block.statements:
        product = _product(part, packed) if isinstance(part, n.For) else None
        fits = product is not None and next(room, None) is not None
        parts += _where_rows_are(product, product.packed(panel, numbers)) if product and fits else [part]
    return n.Block(tuple(parts))


def _where_rows_are(product: _Product, parts: list[n.Statement]) -> list[n.Statement]:
    """The parts of a packed product, whose panels nobody reads where an open size leaves no block of rows."""
    rows = product.rows
    if isinstance(ix.subtract(rows.upper, rows.lower), n.Num):
        return parts
    return [n.If((n.Compare("<", rows.lower, rows.upper),), n.Block(tuple(parts)))]


@dataclass(frozen=True)
class _Product:
    """``rows`` holds ``starts``, then ``sums`` around ``vector``, which accumulates ``terms`` (bindings are written out).

    ``columns`` are the parts of terms that a panel holds, ``strips`` those that are computed for a row of a block.
    """

    rows: n.For
    starts: tuple[n.Statement, ...]
    sums: tuple[n.For, ...]
    vector: n.For
    terms: tuple[n.Accumulate, ...]
    columns: tuple[n.Expr, ...]
    strips: tuple[n.Expr, ...]

    def packed(self, panel: int, numbers: Iterator[int]) -> list[n.Statement]:
        """The loops over pieces of the sum; one piece alone keeps the starting values where they are."""
        first, trips = self.sums[0], ix.subtract(self.sums[0].upper, self.sums[0].lower)
        depth = self._depth(panel)
        buffers = self._buffers(depth, numbers)
        if isinstance(trips, n.Num) and trips.value <= depth:
            return self._piece(self.sums, buffers, self.starts)
        start = n.Var(f"{first.var}_piece")
        end = ix.add(start, n.Num(depth))
        if not isinstance(trips, n.Num) or trips.value % depth:
            end = ix.minimum(end, first.upper)
        piece = self._piece((replace(first, lower=start, upper=end), *self.sums[1:]), buffers, ())
        begun = [replace(self.rows, body=n.Block(self.starts))] if self.starts else []
        return [*begun, replace(first, var=start.name, step=depth, body=n.Block(tuple(piece)))]

    def _depth(self, panel: int) -> int:
        """Terms of the outermost sum in a piece: what the panels have room for, in pieces of about the same size."""
        inner = prod(map(_trips, (*self.sums[1:], self.vector)))
        most = max(1, panel // (sum(part.dtype.itemsize for part in self.columns) * inner))
        trips = ix.subtract(self.sums[0].upper, self.sums[0].lower)
        if not isinstance(trips, n.Num):
            return most
        return -(-trips.value // -(-trips.value // most))

    def _buffers(self, depth: int, numbers: Iterator[int]) -> dict[n.Expr, n.Buffer]:
        *inner, last = (depth, *map(_trips, self.sums[1:]))
        shapes = {part: (*inner, last, _trips(self.vector)) for part in self.columns}
        shapes |= {part: (*inner, last + STAGGER) for part in self.strips}
        return {
            part: n.Buffer(f"panel{next(numbers)}", part.dtype, shape, n.Space.LOCAL) for part, shape in shapes.items()
        }

    def _piece(
        self, sums: tuple[n.For, ...], buffers: Mapping[n.Expr, n.Buffer], starts: tuple[n.Statement, ...]
    ) -> list[n.Statement]:
        """Panels for some terms of the sum, and the row loop over those terms."""
        here = replace(self.vector, lower=n.Num(0), upper=n.Num(_trips(self.vector)))
        at = {self.vector.var: ix.add(self.vector.lower, n.Var(self.vector.var))}
        term = tuple(ix.subtract(n.Var(loop.var), loop.lower) for loop in sums)
        place = (*term, n.Var(self.vector.var))
        columns: list[n.Statement] = []
        for part in self.columns:
            copy = replace(here, body=n.Block((n.Store(buffers[part], place, ix.substitute_in(part, at)),)))
            kind = n.LoopKind.INTERLEAVE if _is_turned((part,), sums[-1]) else n.LoopKind.SERIAL
            last = replace(sums[-1], kind=kind)
            columns += [n.Alloc(buffers[part]), *nested((*sums[:-1], last), n.Block((copy,))).statements]
        strips = [n.Store(buffers[part], term, part) for part in self.strips]
        if strips:
            lanes = replace(sums[-1], kind=n.LoopKind.VECTOR, body=n.Block(tuple(strips)))
            strips = [*(n.Alloc(store.buffer) for store in strips), *nested(sums[:-1], n.Block((lanes,))).statements]
        body = n.Block(tuple(self._terms(buffers, place, at)))
        begun = [self._counted(start) for start in starts]
        rows = n.Block((*strips, *begun, *nested(sums, n.Block((replace(here, body=body),))).statements))
        return [*columns, replace(self.rows, body=rows)]

    def _counted(self, start: n.Statement) -> n.Statement:
        """What stores starting values, from 0 as the vector loop that then accumulates: results may stay in registers."""
        if not isinstance(start, n.For) or replace(start, body=self.vector.body) != self.vector:
            return start
        at = {start.var: ix.add(start.lower, n.Var(start.var))}
        return replace(start, lower=n.Num(0), upper=n.Num(_trips(start)), body=substituted(start.body, at))

    def _terms(
        self, buffers: Mapping[n.Expr, n.Buffer], place: tuple[n.Index, ...], at: Mapping[str, n.Index]
    ) -> Iterator[n.Statement]:
        """The accumulations of the vector loop, which now counts from 0, with parts read from where they lie."""
        names = {part: f"{buffers[part].name}_here" for part in self.columns}
        for part, name in names.items():
            yield n.Let(name, n.Load(buffers[part], place))

        def moved(expr: n.Expr) -> n.Expr:
            if expr in names:
                return n.Ref(names[expr], expr.dtype)
            if expr in buffers:
                return n.Load(buffers[expr], place[:-1])
            if isinstance(expr, n.Call):
                return replace(expr, args=tuple(map(moved, expr.args)))
            return ix.substitute_in(expr, at)

        for term in self.terms:
            yield replace(term, index=tuple(ix.substitute(i, at) for i in term.index), value=moved(term.value))


def _product(rows: n.For, packed: frozenset[str]) -> _Product | None:
    """The row loop as a product that is worth panels, else None."""
    body = rows.body.statements
    if rows.kind is not n.LoopKind.SERIAL or not body or not isinstance(body[-1], n.For):
        return None
    found = reduction_of(body[-1])
    if found is None or not _is_rectangle(rows, found) or _is_short(found[:-1]):
        return None
    sums, vector = found[:-1], found[-1]
    terms = _closed_terms(vector.body)
    by_data = any(ix.is_by_data(*term.index) for term in terms)
    if not terms or by_data or not _is_apart(rows, terms, body[:-1]):
        return None
    columns = _parts(terms, lambda part: _is_column(part, rows, vector, packed))
    strips = _parts(terms, lambda part: _is_strip(part, rows, sums[-1], vector))
    if not columns or _has_few_blocks(rows, LEAST_TURNED if _is_turned(columns, sums[-1]) else LEAST_BLOCKS):
        return None
    return _Product(rows, body[:-1], sums, vector, terms, columns, strips)


def _has_few_blocks(rows: n.For, least: int) -> bool:
    most = range_of(ix.subtract(rows.upper, rows.lower), {}).high
    return most is not None and most < least * rows.step


def _is_turned(parts: Sequence[n.Expr], terms: n.For) -> bool:
    """Whether one of the parts reads something as it lies along the terms of the sum."""
    return any(ix.lies_along(load, terms.var) for part in parts for load in loads(part))


def _is_rectangle(rows: n.For, found: Sequence[n.For]) -> bool:
    """Bounds depend on none of the loops, inner sums and columns have known lengths, loops hold nothing between them."""
    names = {rows.var, *(loop.var for loop in found)}
    if any(names & (ix.variables(loop.lower) | ix.variables(loop.upper)) for loop in found):
        return False
    if any(len(loop.body.statements) != 1 or loop.step != 1 for loop in found[:-1]):
        return False
    lengths = [ix.subtract(loop.upper, loop.lower) for loop in found[1:]]
    known = [length.value for length in lengths if isinstance(length, n.Num)]
    return len(known) == len(lengths) and 0 < known[-1] <= MAX_LENGTH and 0 < prod(known) <= MAX_INNER


def _is_short(sums: Sequence[n.For]) -> bool:
    lengths = [ix.subtract(loop.upper, loop.lower) for loop in sums]
    known = [length.value for length in lengths if isinstance(length, n.Num)]
    return len(known) == len(lengths) and prod(known) < LEAST_TERMS


def _closed_terms(body: n.Block) -> tuple[n.Accumulate, ...]:
    """The accumulations with bindings replaced by their values; none where a term is large, or data decides a place."""
    values: dict[str, n.Expr] = {}
    terms: list[n.Accumulate] = []
    for part in body.statements:
        if not isinstance(part, n.Let | n.Accumulate):
            return ()
        value = written_out(part.value, values)
        by_data = any(ix.is_by_data(*load.index) for load in loads(value))
        if by_data or node_count(value) > MAX_NODES:
            return ()
        if isinstance(part, n.Let):
            values[part.name] = value
        else:
            terms.append(replace(part, value=value))
    return tuple(terms)


def _is_apart(rows: n.For, terms: Sequence[n.Accumulate], starts: Sequence[n.Statement]) -> bool:
    """Every element belongs to one iteration of the row loop, and nothing that is written there is loaded."""
    written = stored_buffers(rows)
    if any(load.buffer.name in written for part in statements(rows) for load in loads_of(part)):
        return False
    begun = [part for start in starts for part in statements(start)]
    stored = [part for part in begun if isinstance(part, n.Store)]
    if not all(isinstance(part, n.Store | n.For | n.Block) for part in begun):
        return False
    return all(any(_is_row(i, rows) for i in part.index) for part in (*terms, *stored))


def _is_row(index: n.Index, rows: n.For) -> bool:
    """Whether it is ``row + c`` with ``0 <= c < step``."""
    distance = ix.substitute(index, {rows.var: n.Num(0)})
    return ix.stride(index, rows.var) == 1 and isinstance(distance, n.Num) and 0 <= distance.value < rows.step


def _parts(terms: Sequence[n.Accumulate], fits: Callable[[n.Expr], bool]) -> tuple[n.Expr, ...]:
    """The largest parts of terms that fit, without repetition: unrolled rows use the same ones."""
    waiting: list[n.Expr] = [term.value for term in reversed(terms)]
    found: dict[n.Expr, None] = {}
    while waiting:
        each = waiting.pop()
        if fits(each):
            found[each] = None
        elif isinstance(each, n.Call):
            waiting.extend(reversed(each.args))
    return tuple(found)


def _is_column(part: n.Expr, rows: n.For, vector: n.For, packed: frozenset[str]) -> bool:
    """It is the same for all rows, and does not lie as it is read."""
    moving = ix.variables_in(part)
    is_same = vector.var in moving and rows.var not in moving and any(True for _ in loads(part))
    return is_same and not (isinstance(part, n.Load) and part.buffer.name in packed)


def _is_strip(part: n.Expr, rows: n.For, along: n.For, vector: n.For) -> bool:
    """It is computed, is the same for all columns, and lies along the innermost sum."""
    moving = ix.variables_in(part)
    if not isinstance(part, n.Call) or vector.var in moving or rows.var not in moving:
        return False
    found = list(loads(part))
    return bool(found) and all(ix.lies_along(load, along.var) for load in found)


def _trips(loop: n.For) -> int:
    trips = ix.subtract(loop.upper, loop.lower)
    assert isinstance(trips, n.Num)
    return trips.value
