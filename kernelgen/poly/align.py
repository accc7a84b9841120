"""Which statements share which outer loops.

isl's own clustering gives up on phases that are separated by a reduction (a softmax becomes three nests), although all
phases of one row can run inside one parallel row loop. So the shared loops are decided here, and isl schedules what is
below them. The result is a forest:

    Shared(i; [G0: max over j], [G1: exp, sum over j], [G2: divide])    =    for i: { for j: G0; for j: G1; for j: G2 }

Legality: an axis is shared by statements A and B only when every pair of accesses of them that touch one buffer, one of
them writing, addresses some dim of it directly by that axis. Every dependence is then ``{ A[.., i, ..] -> B[.., i, ..] }``
on the axis, which makes the loop parallel; and no statement that is in the loop accumulates over the axis.
Cost: a shared loop never leaves an outer axis of a statement to the inside, since column sums are fast row by row; a
matrix product shares no loop, since blocks of its results stay in registers.
The proof checks the finished schedule, independently of this reasoning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelgen.nest.nodes import Var
from kernelgen.poly.classes import AxisClasses, Place, axis_classes
from kernelgen.poly.reuse import is_product
from kernelgen.poly.scop import Access, Scop, Statement


@dataclass(frozen=True)
class Leaf:
    """One statement; ``iterators`` are the positions of those that no enclosing loop covers."""

    statement: Statement
    iterators: tuple[int, ...]


@dataclass(frozen=True)
class Shared:
    """Loops around several parts: for each statement name the iterator positions that the loops run over."""

    iterators: dict[str, tuple[int, ...]]
    parts: tuple[Leaf | Shared, ...]


Forest = tuple[Leaf | Shared, ...]


def align(scop: Scop) -> Forest:
    """The forest of shared loops, in an order that respects all dependences."""
    return _forest(scop.statements, axis_classes(scop), frozenset())


@dataclass
class _Cluster:
    statements: list[Statement] = field(default_factory=list)
    axes: frozenset[Place] = frozenset()


def _forest(statements: Sequence[Statement], classes: AxisClasses, fixed: frozenset[Place]) -> Forest:
    """Clusters statements greedily in program order, each into the last cluster that it can join legally."""
    clusters: list[_Cluster] = []
    home: dict[str, int] = {}
    for statement in statements:
        own = _parallel_axes(statement, classes) - fixed
        before = [home[s.name] for s in statements if s.name in home and _conflicts(s, statement)]
        earliest = max(before, default=0)
        for number in range(len(clusters) - 1, earliest - 1, -1):
            shared = _shared_axes(clusters[number], statement, own, classes)
            if shared:
                break
        else:
            number, shared = len(clusters), own
            clusters.append(_Cluster())
        clusters[number].statements.append(statement)
        clusters[number].axes = shared
        home[statement.name] = number
    return tuple(_part(cluster, classes, fixed) for cluster in clusters)


def _part(cluster: _Cluster, classes: AxisClasses, fixed: frozenset[Place]) -> Leaf | Shared:
    if len(cluster.statements) == 1:
        (statement,) = cluster.statements
        free = [k for k, axis in enumerate(_axes(statement, classes)) if axis not in fixed]
        return Leaf(statement, tuple(free))
    widest = max(cluster.statements, key=lambda s: len(s.iterators))
    order = [axis for axis in _axes(widest, classes) if axis in cluster.axes]
    iterators = {s.name: tuple(_axes(s, classes).index(axis) for axis in order) for s in cluster.statements}
    return Shared(iterators, _forest(cluster.statements, classes, fixed | cluster.axes))


def _axes(statement: Statement, classes: AxisClasses) -> list[Place]:
    return [classes.find(("statement", statement.name, k)) for k in range(len(statement.iterators))]


def _parallel_axes(statement: Statement, classes: AxisClasses) -> frozenset[Place]:
    """The axes that occur once in the box and that address what the statement writes: no reduction runs over them."""
    axes = _axes(statement, classes)
    found: set[Place] = set()
    for iterator, axis in zip(statement.iterators, axes, strict=True):
        if axes.count(axis) == 1 and all(Var(iterator.name) in write.index for write in statement.writes):
            found.add(axis)
    return frozenset(found)


def _shared_axes(
    cluster: _Cluster, statement: Statement, own: frozenset[Place], classes: AxisClasses
) -> frozenset[Place]:
    """The axes that all members and the statement can share; empty when there is none or no data in common."""
    if not any(_touched(member) & _touched(statement) for member in cluster.statements):
        return frozenset()
    if any(map(is_product, (*cluster.statements, statement))):
        return frozenset()
    candidates = cluster.axes & own
    for member in cluster.statements:
        for first, second in _conflicts(member, statement):
            candidates &= _agreeing(member, first, statement, second, classes)
    walks_rows = all(_leads(s, candidates, classes) for s in (*cluster.statements, statement))
    return candidates if walks_rows else frozenset()


def _leads(statement: Statement, axes: frozenset[Place], classes: AxisClasses) -> bool:
    """False when loops over the axes would leave an outer axis to the inside: the statement would walk columns."""
    own = _axes(statement, classes)
    return not own or own[0] in axes or not axes.intersection(own[1:])


def _agreeing(a: Statement, first: Access, b: Statement, second: Access, classes: AxisClasses) -> frozenset[Place]:
    """The axes on which two accesses of one element must be equal: some dim is addressed directly by both."""
    left = {Var(it.name): axis for it, axis in zip(a.iterators, _axes(a, classes), strict=True)}
    right = {Var(it.name): axis for it, axis in zip(b.iterators, _axes(b, classes), strict=True)}
    return frozenset(
        left[i]
        for i, j in zip(first.index, second.index, strict=True)
        if isinstance(i, Var) and isinstance(j, Var) and left[i] == right[j]
    )


def _conflicts(a: Statement, b: Statement) -> list[tuple[Access, Access]]:
    """The pairs of accesses to one buffer of which at least one writes."""
    pairs = [(w, x) for w in a.writes for x in (*b.reads, *b.writes) if w.buffer == x.buffer]
    return pairs + [(r, w) for r in a.reads for w in b.writes if r.buffer == w.buffer]


def _touched(statement: Statement) -> frozenset[str]:
    return frozenset(access.buffer.name for access in (*statement.reads, *statement.writes))
