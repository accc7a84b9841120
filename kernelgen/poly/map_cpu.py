"""Mapping to a CPU: which loops run on several cores, which one runs on vector lanes, what is tiled for the cache.

For every innermost band the member whose vector loop touches memory most contiguously becomes the innermost loop and
is marked ``vector``; for every outermost band the first coincident member comes first and is marked ``parallel``.

    colsum: [j (coincident), i]  ->  parallel j by 2048; i by 8; vector j; i unrolled
                                     rows are read as they lie, sums stay in L1 and are touched once for eight rows
    transpose: [i, j]            ->  parallel i by 64; j by 64; interleave i; vector j
    y = f(x) over one axis       ->  parallel i by 16384; vector i
    matmul: [i, j, k]            ->  parallel j by 32; i by 8; k; vector j; i unrolled
                                     32 x 8 results stay in registers while k runs; what no whole block covers
                                     is a piece of its own

A permutable band may be reordered and tiled: no dependence has a negative component on any of its members. A member may
be ``vector`` when it is coincident, or when only reductions cross it (lanes then keep partial results). The loop around
a vector loop is marked ``interleave`` when an access is contiguous along it and strided along the vector loop.
"""

from __future__ import annotations

from dataclasses import dataclass

import islpy as isl

from kernelgen.dims import Dim, Sym
from kernelgen.nest.index import stride
from kernelgen.nest.nodes import Index
from kernelgen.poly.relations import Relations
from kernelgen.poly.reuse import is_product, moves
from kernelgen.poly.scop import Scop, Statement
from kernelgen.poly.tree import Loop, Member, Node, edit_bands, has_band_below, members, replace_band, split_band, tiled

PARALLEL, VECTOR, INTERLEAVE = "parallel", "vector", "interleave"
Piece = tuple[isl.UnionSet, list[Loop]]
"""A part of a band's domain, and its loops."""


@dataclass(frozen=True)
class CpuPlan:
    """The choices of the mapping, all sizes in elements."""

    chunk: int = 16384  # of a single long loop: one parallel iteration
    strip: int = 2048  # of a vector loop inside a serial reduction: its partial results stay in L1
    tile: int = 64  # of both loops of a transposed access
    rows: int = 8  # that a column reduction adds up before it touches its partial results; halved until it divides
    block: tuple[int, int] = (8, 32)  # rows and columns of a matrix product's results that registers hold
    points: tuple[int, int] = (4, 4)  # the same where the lanes are terms of the sum


def map_cpu(schedule: isl.Schedule, scop: Scop, whole: Relations, plan: CpuPlan) -> isl.Schedule:
    """The schedule with loops reordered, tiled and marked."""
    mapper = _Mapper({s.name: s for s in scop.statements}, whole, plan)
    root = schedule.get_root()
    return edit_bands(root.child(0), mapper.edit).get_schedule() if root.n_children() else schedule


@dataclass(frozen=True)
class _Mapper:
    statements: dict[str, Statement]
    whole: Relations
    plan: CpuPlan

    def edit(self, band: Node, outermost: bool) -> Node:
        """One band as marked loops."""
        found = members(band)
        if has_band_below(band):
            return replace_band(band, self.outer(found, outermost))
        order = self.vector_last(found, bool(band.band_get_permutable()))
        last = order[-1]
        pieces = self.product_pieces(band, order) if band.band_get_permutable() else None
        if pieces is not None:
            return split_band(band, [(piece, self.parallel(ls) if outermost else ls) for piece, ls in pieces])
        vector = last.coincident or self.only_reductions_cross(band, last)
        loops = [Loop(member) for member in order[:-1]] + [Loop(last, VECTOR if vector else "")]
        if len(loops) == 1:
            loops = self.chunked(loops[0]) if outermost else loops
        elif band.band_get_permutable():
            loops = self.blocked(loops)
        return replace_band(band, self.parallel(loops) if outermost else loops)

    def outer(self, found: list[Member], outermost: bool) -> list[Loop]:
        """Row loops: coincident members first."""
        loops = [Loop(member) for member in found]
        return self.parallel(loops) if outermost else loops

    def parallel(self, loops: list[Loop]) -> list[Loop]:
        """The first coincident loop that is not the vector loop, moved to the front and marked."""
        for position, loop in enumerate(loops):
            if loop.member.coincident and not loop.mark:
                return [Loop(loop.member, PARALLEL), *loops[:position], *loops[position + 1 :]]
        return loops

    def chunked(self, loop: Loop) -> list[Loop]:
        """A single long loop in pieces, so that there is something to run in parallel."""
        long = loop.member.coincident and self.longer_than(loop.member, 2 * self.plan.chunk)
        return [Loop(tiled(loop.member, self.plan.chunk)), loop] if long else [loop]

    def blocked(self, loops: list[Loop]) -> list[Loop]:
        """Adds tile loops where they pay: around vector loops inside reductions, and for transposed accesses."""
        last = loops[-1].member
        if last.coincident and not any(loop.member.coincident for loop in loops[:-1]):
            long = self.longer_than(last, 2 * self.plan.strip - 1)
            return [*([Loop(tiled(last, self.plan.strip))] if long else []), *self.several_rows(loops)]
        partner = self.transposed_partner(loops)
        if partner is None:
            return loops
        rest = [loop for loop in loops[:-1] if loop is not partner]
        size = self.plan.tile
        tiles = [Loop(tiled(member, size)) for member in (partner.member, last) if self.longer_than(member, size)]
        inner = Loop(partner.member, INTERLEAVE if last.coincident else "")
        return [*rest, *tiles, inner, loops[-1]]

    def product_pieces(self, band: Node, order: list[Member]) -> list[Piece] | None:
        """The blocks of a matrix product's results, and what is left of its rows and columns; None for other bands.

        The lanes are columns, or terms of the sum where that is how memory lies: then a block is of single results.
        """
        last = order[-1]
        along_sum = not last.coincident
        if along_sum and not self.only_reductions_cross(band, last):
            return None
        sides = self.sides(order, [last] if last.coincident else order)
        if sides is None:
            return None
        row, column = sides
        rows, columns = self.plan.points if along_sum else self.plan.block
        rest = [Loop(m) for m in order if m.coincident and m is not row and m is not column]
        sums = [Loop(m) for m in order if not m.coincident and m is not last] + [Loop(last, VECTOR)]
        single = [Loop(column)] if along_sum else []
        both = [Loop(row, unroll=True), *([Loop(column, unroll=True)] if along_sum else [])]
        domain = band.get_domain()
        whole_rows = domain.intersect(_whole_tiles(row, domain, rows))
        whole = whole_rows.intersect(_whole_tiles(column, domain, columns))
        return [
            (whole, [*rest, Loop(tiled(column, columns)), Loop(tiled(row, rows)), *sums, *both]),
            (whole_rows.subtract(whole), [*rest, Loop(tiled(row, rows)), *single, *sums, Loop(row, unroll=True)]),
            (domain.subtract(whole_rows), [*rest, Loop(row), *single, *sums]),
        ]

    def sides(self, order: list[Member], columns: list[Member]) -> tuple[Member, Member] | None:
        """The innermost row and column of a matrix product: a read moves with the column and stays along the row."""
        for column in reversed(columns):
            pairs = self.iterator_of(column)
            if len(pairs) != 1 or not column.coincident or not is_product(pairs[0][0]):
                continue
            statement, name = pairs[0]
            reads = [read for read in map(moves, statement.reads) if name in read]
            for row in reversed(order):
                stays = any(other not in read for _, other in self.iterator_of(row) for read in reads)
                if row.coincident and row is not column and stays:
                    return row, column
        return None

    def several_rows(self, loops: list[Loop]) -> list[Loop]:
        """``i; vector j`` as ``i by rows; vector j; i unrolled``, when the rows divide the loop."""
        row, rows = loops[-2].member, self.plan.rows
        extent = self.extent(row)
        if extent is None:
            return loops
        while extent % rows:
            rows //= 2
        if rows < 2:
            return loops
        return [*loops[:-2], Loop(tiled(row, rows)), loops[-1], Loop(row, unroll=True)]

    def extent(self, member: Member) -> int | None:
        """The constant number of iterations of a loop of one statement, else None."""
        pairs = self.iterator_of(member)
        if len(pairs) != 1:
            return None
        ((statement, name),) = pairs
        extent = next(it.extent for it in statement.iterators if it.name == name)
        return None if isinstance(extent, Sym) else extent

    def vector_last(self, found: list[Member], permutable: bool) -> list[Member]:
        """The members with the best vector loop last, the others in order."""
        if not permutable:
            return found
        best = max(range(len(found)), key=lambda k: (self.contiguity(found[k]), k))
        return [*found[:best], *found[best + 1 :], found[best]]

    def contiguity(self, member: Member) -> int:
        """How well memory is touched when this member is the vector loop: +2 contiguous, +1 the same, -3 strided."""
        score = 0
        for statement, name in self.iterator_of(member):
            for access in (*statement.reads, *statement.writes, *statement.writes):
                step = element_stride(access.index, access.buffer.shape, name)
                score += {0: 1, 1: 2}.get(step if step is not None else -1, -3)
        return score

    def transposed_partner(self, loops: list[Loop]) -> Loop | None:
        """The coincident loop along which an access is contiguous that is strided along the vector loop."""
        vector = dict((s.name, name) for s, name in self.iterator_of(loops[-1].member))
        for loop in loops[:-1]:
            for statement, name in self.iterator_of(loop.member):
                for access in (*statement.reads, *statement.writes):
                    along = element_stride(access.index, access.buffer.shape, name)
                    across = element_stride(access.index, access.buffer.shape, vector.get(statement.name, ""))
                    if along == 1 and across not in (0, 1) and loop.member.coincident:
                        return loop
        return None

    def iterator_of(self, member: Member) -> list[tuple[Statement, str]]:
        """For each statement the iterator that the member follows; statements that do not move with it are left out."""
        pairs: list[tuple[Statement, str]] = []
        found = member.time.get_pw_aff_list()
        for k in range(found.n_pw_aff()):
            piece = found.get_at(k)
            statement = self.statements[piece.get_tuple_id(isl.dim_type.in_).get_name()]
            used = [d for d in range(len(statement.iterators)) if piece.involves_dims(isl.dim_type.in_, d, 1)]
            pairs += [(statement, statement.iterators[used[0]].name)] if len(used) == 1 else []
        return pairs

    def longer_than(self, member: Member, limit: int) -> bool:
        """Whether the loop has more iterations; a symbolic loop counts as long."""
        for statement, name in self.iterator_of(member):
            extent = next(it.extent for it in statement.iterators if it.name == name)
            if isinstance(extent, Sym) or extent > limit:
                return True
        return False

    def only_reductions_cross(self, band: Node, member: Member) -> bool:
        """No flow dependence between instances that the loops around the band run together crosses the member."""
        flow = self.whole.flow.intersect_domain(band.get_domain()).intersect_range(band.get_domain())
        around = band.get_prefix_schedule_union_map()
        flow = flow.intersect(around.apply_range(around.reverse()))
        time = isl.UnionMap.from_union_pw_aff(member.time)
        return bool(flow.apply_domain(time).apply_range(time).is_subset(_identity_of(time)))


def _whole_tiles(member: Member, domain: isl.UnionSet, size: int) -> isl.UnionSet:
    """``{ S[i] : time(S[i]) < size * floor(end / size) }``, where loops run from 0 to ``end``.

    The bound is a number over the parameters: so what is left is a loop from there on, without guards.
    """
    context = domain.get_ctx()
    time = isl.UnionMap.from_union_pw_aff(member.time).intersect_domain(domain)
    last = isl.Set.from_union_set(time.range()).dim_max(0)
    tiles = last.add_constant_val(isl.Val(1, context)).scale_down_val(isl.Val(size, context)).floor()
    end = isl.Set.from_pw_aff(tiles.scale_val(isl.Val(size, context)))
    before = isl.Map.read_from_str(context, "{ [t] -> [end] : t < end }").intersect_range(end).domain()
    return time.intersect_range(isl.UnionSet.from_set(before)).domain()


def _identity_of(time: isl.UnionMap) -> isl.UnionMap:
    return isl.UnionMap.read_from_str(time.get_ctx(), "{ [t] -> [t] }")


def element_stride(index: tuple[Index, ...], shape: tuple[Dim, ...], name: str) -> int | None:
    """By how many elements an access moves when iterator ``name`` grows by 1; None when that is not constant."""
    steps = [stride(i, name) for i in index]
    if any(step is None for step in steps):
        return None
    if not any(steps):
        return 0
    total: int = 0
    scale: Dim = 1
    for step, dim in zip(reversed(steps), reversed(shape), strict=True):
        if step and isinstance(scale, Sym):
            return None
        total += int(step or 0) * (int(scale) if isinstance(scale, int) else 0)
        scale = scale * dim
    return total
