"""Which statements run point by point together.

A statement joins an earlier group of the same box when every dependence between them is the identity on iterators,
``{ A[i] -> B[i] }``: both then run at the same instant and the value stays in a register. A dependence of any other
form (a finished reduction, a transposed read) separates groups. What is left for isl is one statement per phase: a
softmax is three (maximum; exponential and sum; division).

Legality: a statement goes to a group at or after the groups of everything that it depends on (flow, and anti for
buffers updated in place), strictly after when the dependence is not the identity or when both write the buffer. An
ordered statement keeps a group of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from kernelgen.nest.index import variables
from kernelgen.nest.nodes import Accumulate, Index, Let, Space, Store, Var
from kernelgen.plan import Partials
from kernelgen.poly.grouping.privatise import reduces_well
from kernelgen.poly.model.scop import Statement
from kernelgen.tensor.dims import Dim

Groups = tuple[tuple[Statement, ...], ...]


@dataclass
class _Group:
    """Statements of one box, the buffers that they touch, and the dims that its reductions keep."""

    box: tuple[Dim, ...]
    ordered: bool
    partials: Partials
    members: list[Statement] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    kept: set[tuple[int, ...]] = field(default_factory=set)

    def add(self, statement: Statement) -> None:
        self.members.append(statement)
        self.touched |= statement.touched
        if statement.accumulations:
            self.kept.add(_kept_dims(statement))

    def takes(self, statement: Statement, near: frozenset[str]) -> bool:
        """Same box, something in common (an operand or a result, or what is ``near``), and no reductions over different dims.

        A row sum and a column sum of one box have no loop in common that could run in parallel, unless partial results
        give them one.
        """
        if box(statement) != self.box or statement.ordered or self.ordered or self.touched.isdisjoint(near):
            return False
        if not statement.accumulations or not self.kept or _kept_dims(statement) in self.kept:
            return True
        return reduces_well([*(member for member in self.members if member.accumulations), statement], self.partials)


def partition(statements: Sequence[Statement], partials: Partials, anywhere: AbstractSet[str] = frozenset()) -> Groups:
    """The groups in an order that respects all dependences; members keep their program order.

    ``partials`` says when statements that reduce different axes gain from being one, ``anywhere`` which values whoever reads
    them elsewhere than where they are made computes again: he waits for what these read.
    """
    groups: list[_Group] = []
    number: dict[str, int] = {}
    writers: dict[str, list[Statement]] = {}
    readers: dict[str, list[Statement]] = {}
    behind: dict[str, int] = {}
    for statement, near in _beside_readers(statements):
        again = {name: behind[name] for name in anywhere & statement.touched if name in behind}
        earliest = max(_after_writers(statement, writers, number, again), _after_readers(statement, readers, number))
        if (made := effect(statement)).buffer.name in anywhere:
            behind[made.buffer.name] = _behind(statement, writers, number, again)
        home = next((g for g in range(earliest, len(groups)) if groups[g].takes(statement, near)), len(groups))
        if home == len(groups):
            groups.append(_Group(box(statement), statement.ordered, partials))
        groups[home].add(statement)
        number[statement.name] = home
        for index, accesses in ((writers, statement.writes), (readers, statement.reads)):
            for name in dict.fromkeys(access.buffer.name for access in accesses):
                index.setdefault(name, []).append(statement)
    return tuple(tuple(each.members) for each in groups)


def _beside_readers(statements: Sequence[Statement]) -> list[tuple[Statement, frozenset[str]]]:
    """The statements, each with the buffers that it touches; what is made of an updated buffer stands beside its first reader.

    Nobody computes it again behind the update, so that a group of its own would store it. It moves past statements that do
    not read it, and past no update of what it reads; with the buffers of its reader it joins that one's group.
    """
    found: list[tuple[Statement, frozenset[str]]] = []
    for statement in reversed(statements):
        olds = {read.buffer.name for read in statement.reads if read.buffer.space is Space.INOUT}
        made = effect(statement).buffer
        place = 0
        if olds and made.space is Space.WORKSPACE and not statement.ordered and not statement.accumulations:
            stops = (k for k, (other, _) in enumerate(found) if made.name in other.touched or _updates(other, olds))
            place = next(stops, 0)
        reads_it = bool(found) and made.name in found[place][0].touched and bool(olds)
        near = statement.touched | found[place][0].touched if reads_it else statement.touched
        found.insert(place, (statement, frozenset(near)))
    return found


def _updates(statement: Statement, names: Collection[str]) -> bool:
    return any(write.buffer.name in names for write in statement.writes)


def effect(statement: Statement) -> Store | Accumulate:
    """The last store or accumulation of an ungrouped statement: the only one, but for ordered statements.

    Raises TypeError for one that ends with neither.
    """
    part = statement.body[-1]
    if isinstance(part, Let):
        raise TypeError("grouping starts from statements that end with a store or accumulation")
    return part


def producers_of(statements: Sequence[Statement]) -> Mapping[str, Statement]:
    """For each temporary or output that one statement stores point by point, that statement.

    In-place updates are no producers: nobody reads them back.
    """
    writers = Counter(access.buffer.name for s in statements for access in s.writes)
    return {
        part.buffer.name: s
        for s in statements
        if isinstance(part := effect(s), Store)
        and not s.ordered
        and part.buffer.space is not Space.INOUT
        and writers[part.buffer.name] == 1
        and is_identity(s, part.index)
    }


def box(statement: Statement) -> tuple[Dim, ...]:
    """The extents of the iterators."""
    return tuple(iterator.extent for iterator in statement.iterators)


def is_identity(statement: Statement, index: tuple[Index, ...]) -> bool:
    """Whether the index is just the iterators in order."""
    return index == tuple(Var(iterator.name) for iterator in statement.iterators)


def _behind(
    statement: Statement,
    writers: Mapping[str, list[Statement]],
    number: Mapping[str, int],
    again: Mapping[str, int],
) -> int:
    """The first group that may compute the statement's value at any place: ``again`` says so of values that it reads."""
    stored = (w for r in statement.reads if r.buffer.name not in again for w in writers.get(r.buffer.name, ()))
    return max((0, *again.values(), *(number[writer.name] + 1 for writer in stored)))


def _after_writers(
    statement: Statement,
    writers: Mapping[str, list[Statement]],
    number: Mapping[str, int],
    again: Mapping[str, int],
) -> int:
    """A statement follows all that wrote what it reads or writes; point by point it may run together with them.

    What it computes ``again`` it does from a group on.

    The parts of one buffer that several statements store, a concatenation, do not overlap and have no order.
    """
    earliest = 0
    for read in statement.reads:
        if read.buffer.space is Space.INOUT:
            continue  # updates come last and nobody reads them back
        for writer in writers.get(read.buffer.name, ()):
            made = effect(writer)
            pointwise = isinstance(made, Store) and not writer.ordered and is_identity(writer, made.index)
            pointwise = pointwise and is_identity(statement, read.index) and box(writer) == box(statement)
            first = number[writer.name] + (0 if pointwise else 1)
            earliest = max(earliest, min(first, again.get(read.buffer.name, first)))
    for target in statement.accumulations:
        for writer in writers.get(target.buffer.name, ()):
            earliest = max(earliest, number[writer.name] + 1)
    return earliest


def _after_readers(statement: Statement, readers: Mapping[str, list[Statement]], number: Mapping[str, int]) -> int:
    """An in-place update follows everything that reads the old content."""
    target = effect(statement)
    if target.buffer.space is not Space.INOUT:
        return 0
    earliest = 0
    for reader in readers.get(target.buffer.name, ()):
        for read in (read for read in reader.reads if read.buffer == target.buffer):
            same_point = is_identity(reader, read.index) and is_identity(statement, target.index)
            same_point = same_point and box(reader) == box(statement)
            earliest = max(earliest, number[reader.name] + (0 if same_point else 1))
    return earliest


def _kept_dims(statement: Statement) -> tuple[int, ...]:
    """The positions of the iterators that address the target."""
    index = effect(statement).index
    return tuple(k for k, it in enumerate(statement.iterators) if any(it.name in variables(i) for i in index))
