"""Which statements share which outer loops.

isl's own clustering gives up on phases that are separated by a reduction (a softmax becomes three nests), although all
phases of one row can run inside one parallel row loop. So the shared loops are decided here, and isl schedules what is
below them. The result is a forest:

    Shared(i; [G0: max over j], [G1: exp, sum over j], [G2: divide])    =    for i: { for j: G0; for j: G1; for j: G2 }

Legality: an axis is shared by statements A and B only when every pair of accesses of them that touch one buffer, one of
them writing, addresses some dim of it directly by that axis. Every dependence is then ``{ A[.., i, ..] -> B[.., i, ..] }``
on the axis, which makes the loop parallel; and no statement that is in the loop accumulates over the axis. Inside a
parallel loop over blocks of an axis one over the axis may be shared that some statement accumulates over: it is serial.
Cost: a shared loop never leaves an outer axis of a statement to the inside, since column sums are fast row by row, and where
nothing is summed up no axis at all: the parts of a concatenation are copied as they lie. A matrix product shares no loop,
since blocks of its results stay in registers; nor does a row times a constant, whose columns come in panels. A reduction
down columns (:mod:`kernelgen.poly.grouping.column_sums`) shares only loops that are outside of all that it reduces over.
The proof checks the finished schedule, independently of this reasoning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from kernelgen.nest.nodes import Var
from kernelgen.poly.model.equal_axes import Place, axis_classes
from kernelgen.poly.model.product_recognition import is_product, is_row_of_constant
from kernelgen.poly.model.scop import Access, Scop, Statement
from kernelgen.poly.model.window_recognition import rows_around_places, rows_of_images, window_of


@dataclass(frozen=True)
class Leaf:
    """One statement; ``iterators`` are the positions of those that no enclosing loop covers."""

    statement: Statement
    iterators: tuple[int, ...]


@dataclass(frozen=True)
class Shared:
    """Loops around parts: for each statement name the iterator positions that the loops run over.

    ``coincident`` says for each loop whether nothing accumulates over it.
    """

    iterators: dict[str, tuple[int, ...]]
    parts: tuple[Leaf | Shared, ...]
    coincident: tuple[bool, ...]


Forest = tuple[Leaf | Shared, ...]


def align(scop: Scop) -> Forest:
    """The forest of shared loops, in an order that respects all dependences."""
    classes = axis_classes(scop)
    rows = {s.name: classes.axes_of(s) for s in scop.statements}
    parallel = {
        s.name: frozenset[Place]()
        if is_row_of_constant(s, scop.constants)
        else _parallel_axes(s, rows[s.name], s.name in scop.handing)
        for s in scop.statements
    }
    for statement in scop.statements:
        around = rows_of_images(statement, scop.constants) | rows_around_places(statement, scop.constants)
        along = zip(statement.iterators, rows[statement.name], strict=True)
        parallel[statement.name] |= {axis for it, axis in along if (it.blocks.of if it.blocks else it.name) in around}
    for name in scop.columns:
        parallel[name] = _leading(rows[name], parallel[name])
    return _forest(scop.statements, Axes(rows, parallel, classes.blocked, classes.overlapping), frozenset())


@dataclass(frozen=True)
class Axes:
    """For each statement the axes that its iterators run along, and those of them that no reduction runs over.

    For axes that count blocks, what the blocks are of, and which of them count blocks that overlap.
    """

    rows: Mapping[str, tuple[Place, ...]]
    parallel: Mapping[str, frozenset[Place]]
    blocked: Mapping[Place, Place]
    overlapping: frozenset[Place] = frozenset()

    def __getitem__(self, statement: str) -> tuple[Place, ...]:
        return self.rows[statement]


Touch = tuple[Statement, Access]


@dataclass
class _Cluster:
    """Statements that share loops over ``axes``; for each buffer, who of them reads and who writes it.

    ``parallel`` are the axes that no reduction of some member runs over.
    """

    axes: frozenset[Place]
    statements: list[Statement] = field(default_factory=list)
    rows: set[tuple[Place, ...]] = field(default_factory=set)
    parallel: frozenset[Place] = frozenset()
    readers: dict[str, list[Touch]] = field(default_factory=dict)
    writers: dict[str, list[Touch]] = field(default_factory=dict)

    def add(self, statement: Statement, axes: Axes) -> None:
        self.statements.append(statement)
        self.rows.add(axes[statement.name])
        self.parallel |= axes.parallel[statement.name]
        for known, accesses in ((self.readers, statement.reads), (self.writers, statement.writes)):
            for access in accesses:
                known.setdefault(access.buffer.name, []).append((statement, access))

    def shared_axes(
        self, statement: Statement, own: frozenset[Place], axes: Axes, fixed: frozenset[Place]
    ) -> frozenset[Place]:
        """The axes that all members and the statement can share; empty when there is none or no data in common.

        There are loops over ``fixed`` already.
        """
        if statement.touched.isdisjoint(self.readers) and statement.touched.isdisjoint(self.writers):
            return frozenset()
        candidates = self.axes & own & (self.parallel | axes.parallel[statement.name])
        for (member, first), second in self.conflicts(statement):
            candidates &= _agreeing(member, first, statement, second, axes)
        rows = (*self.rows, axes[statement.name])
        for tile in candidates & axes.overlapping:  # inside of it each statement runs over rows of its own
            candidates = frozenset.intersection(candidates, *(row[: row.index(tile) + 1] for row in rows))
        if not any(
            member.accumulations for member in (*self.statements, statement)
        ):  # nothing waits for all of an axis
            candidates = frozenset.intersection(candidates, *(_leading(row, candidates | fixed) for row in rows))
        walks_rows = all(_leads(row, candidates, axes, fixed) for row in rows)
        return candidates if walks_rows else frozenset()

    def conflicts(self, statement: Statement) -> Iterator[tuple[Touch, Access]]:
        """The accesses of a member and of the statement to one buffer, of which at least one writes."""
        for access in (*statement.reads, *statement.writes):
            yield from ((touch, access) for touch in self.writers.get(access.buffer.name, ()))
        for access in statement.writes:
            yield from ((touch, access) for touch in self.readers.get(access.buffer.name, ()))


def _forest(statements: Sequence[Statement], axes: Axes, fixed: frozenset[Place]) -> Forest:
    """Clusters statements greedily in program order, each into the last cluster that it can join legally."""
    clusters: list[_Cluster] = []
    written: dict[str, int] = {}  # buffer -> the last cluster that writes it
    touched: dict[str, int] = {}  # buffer -> the last cluster that reads or writes it
    for statement in statements:
        own = (axes.parallel[statement.name] | _axes_in_blocks(statement, axes, fixed)) - fixed
        before = [written.get(access.buffer.name, 0) for access in statement.reads]
        before += [touched.get(access.buffer.name, 0) for access in statement.writes]
        earliest = max(before, default=0)
        for number in range(len(clusters) - 1, earliest - 1, -1):
            shared = clusters[number].shared_axes(statement, own, axes, fixed)
            if shared:
                clusters[number].axes = shared
                break
        else:
            number = len(clusters)
            clusters.append(_Cluster(own))
        clusters[number].add(statement, axes)
        for last, names in ((written, {w.buffer.name for w in statement.writes}), (touched, statement.touched)):
            last.update((name, max(number, last.get(name, 0))) for name in names)
    return tuple(_part(cluster, axes, fixed) for cluster in clusters)


def _part(cluster: _Cluster, axes: Axes, fixed: frozenset[Place]) -> Leaf | Shared:
    shared = cluster.axes
    if len(cluster.statements) == 1:
        (statement,) = cluster.statements
        shared = frozenset(axis for axis in shared if axis in axes.blocked)
        if not shared:
            return Leaf(statement, tuple(k for k, axis in enumerate(axes[statement.name]) if axis not in fixed))
    widest = max(cluster.statements, key=lambda s: len(s.iterators))
    order = [axis for axis in axes[widest.name] if axis in shared]
    iterators = {s.name: tuple(axes[s.name].index(axis) for axis in order) for s in cluster.statements}
    parallel = frozenset[Place].intersection(*(axes.parallel[s.name] for s in cluster.statements))
    coincident = tuple(axis in parallel for axis in order)
    return Shared(iterators, _forest(cluster.statements, axes, fixed | shared), coincident)


def _parallel_axes(statement: Statement, axes: tuple[Place, ...], is_handing: bool) -> frozenset[Place]:
    """The axes that occur once in the box and that address what the statement writes: no reduction runs over them.

    A matrix product shares no loop, but those over batches and over blocks of its rows where it hands these on. What reduces
    windows shares none over neighbours and channels.
    """
    product, window = is_product(statement), window_of(statement)
    if product and not is_handing:
        return frozenset()
    inside = frozenset((window.row, window.column)) if window is not None else frozenset[str]()
    found: set[Place] = set()
    for iterator, axis in zip(statement.iterators, axes, strict=True):
        if iterator.name in inside:
            continue
        if product and iterator.blocks is None and not _is_batch(statement, iterator.name):
            continue
        names = [Var(iterator.name), *([Var(iterator.blocks.of)] if iterator.blocks is not None else [])]
        if axes.count(axis) == 1 and all(any(name in write.index for name in names) for write in statement.writes):
            found.add(axis)
    return frozenset(found)


def _is_batch(statement: Statement, name: str) -> bool:
    """Whether all that it reads and writes moves along an iterator."""
    return all(Var(name) in access.index for access in (*statement.reads, *statement.writes))


def _axes_in_blocks(statement: Statement, axes: Axes, fixed: frozenset[Place]) -> frozenset[Place]:
    """The axes of which a loop runs over blocks already, so that one over their elements need not be parallel.

    Blocks of a product's rows are not taken apart.
    """
    if is_product(statement):
        return frozenset()
    inside = {axes.blocked[axis] for axis in fixed if axis in axes.blocked}
    row = axes[statement.name]
    return frozenset(axis for axis in row if axis in inside and row.count(axis) == 1)


def _leading(row: tuple[Place, ...], axes: frozenset[Place]) -> frozenset[Place]:
    """The first axes of a row, as far as they are among these."""
    return frozenset(takewhile(axes.__contains__, row))


def _leads(row: tuple[Place, ...], shared: frozenset[Place], axes: Axes, fixed: frozenset[Place]) -> bool:
    """False when loops over the axes would leave an outer axis to the inside: the statement would walk columns."""
    row = tuple(axis for axis in row if axis not in fixed)
    row = tuple(axis for axis in row if axes.blocked.get(axis) not in row or axis in shared)
    return not row or row[0] in shared or shared.isdisjoint(row[1:])


def _agreeing(a: Statement, first: Access, b: Statement, second: Access, axes: Axes) -> frozenset[Place]:
    """The axes on which two accesses of one element must be equal: some dim is addressed directly by both."""
    left = {Var(it.name): axis for it, axis in zip(a.iterators, axes[a.name], strict=True)}
    right = {Var(it.name): axis for it, axis in zip(b.iterators, axes[b.name], strict=True)}
    equal = {  # a place may be a size too: it is no axis
        left[i]
        for i, j in zip(first.index, second.index, strict=True)
        if isinstance(i, Var) and isinstance(j, Var) and i in left and left[i] == right.get(j)
    }
    return frozenset(equal | {block for block, axis in axes.blocked.items() if axis in equal})
