"""Merges each group of statements into one, and decides which values are stored between groups.

    A[i]: t[i] = exp(x[i])                       G0[i]: v0 = x[i]; v1 = exp(v0); t[i] = v1; s[] += v1
    B[i]: s[] += t[i]                      ->
    C[i]: y[i] = t[i] / s[]                      G1[i]: v2 = t[i]; v3 = s[]; v4 = v2 / v3; y[i] = v4

A value that a later group needs is computed again there when that is cheaper than memory, else it is stored in a
temporary; :mod:`kernelgen.transforms.common.array_contraction` later shrinks the temporary to what is alive at a time.
Values of a group are bound on demand, so what nobody needs is never computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import TypeVar

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.cost import arithmetic_cost
from kernelgen.nest.walk import loads
from kernelgen.plan import USUAL_PARTIALS, Partials
from kernelgen.poly.grouping.fusion_groups import box, effect, is_identity, partition, producers_of
from kernelgen.poly.model.scop import BodyStatement, Scop, Statement
from kernelgen.tensor.dims import Dim, Sym, product

T = TypeVar("T")

RECOMPUTE_LIMIT = 0.16  # ns per element; about what storing a float to cache and loading it back costs
RECOMPUTE_PER_POINT_LIMIT = 0.05  # the same when the consumer has more points than the producer: casts and copies


def group(scop: Scop, partials: Partials = USUAL_PARTIALS) -> Scop:
    """One statement per group. Every statement of the operand must hold one store or accumulation, or be ordered."""
    producers = producers_of(scop.statements)
    once = _read_once(scop.statements, producers, _recompute_costs(scop.statements))
    costs = _recompute_costs(scop.statements, once)
    anywhere = frozenset(name for name in producers if costs.get(name, 1.0) <= RECOMPUTE_PER_POINT_LIMIT)
    groups = partition(scop.statements, partials, anywhere)
    stored = {b.name for b in scop.buffers if b.space is not n.Space.WORKSPACE}
    stored |= {part.buffer.name for s in scop.statements for part in s.accumulations}
    for members in reversed(groups):  # a group loads what earlier ones must store, for which those may load more
        stored |= _Emitter(producers, costs, stored, once).merge("", members).touched
    emitter = _Emitter(producers, costs, stored, once)
    statements = tuple(emitter.merge(f"G{number}", members) for number, members in enumerate(groups))
    alive = {name for s in statements for name in s.touched}
    buffers = tuple(b for b in scop.buffers if b.space is not n.Space.WORKSPACE or b.name in alive)
    return replace(scop, buffers=buffers, statements=tuple(s for s in statements if s.body))


def _read_once(
    statements: Sequence[Statement], producers: Mapping[str, Statement], costs: Mapping[str, float]
) -> frozenset[str]:
    """The values of which several reads together take no more elements than there are: pooled squares, halves, every other row.

    Where they are read they are computed as often as where they are made. Who is computed where it is read reads as often as
    its own readers do.
    """
    taken: dict[str, Dim] = {}
    reads: Counter[str] = Counter()
    found: set[str] = set()
    for statement in reversed(statements):
        buffer = effect(statement).buffer
        often = taken.get(buffer.name, 0)
        if buffer.name in producers and reads[buffer.name] > 1 and _at_most(often, product(box(statement))):
            found.add(buffer.name)
        is_again = buffer.name in found or buffer.name in costs
        if not is_again or buffer.space is not n.Space.WORKSPACE:
            often = product(box(statement)) + (often if is_again else 0)
        for name, _ in {(read.buffer.name, read.index) for read in statement.reads}:
            taken[name] = taken.get(name, 0) + often
            reads[name] += reads[buffer.name] if is_again else 1
    return frozenset(found)


def _at_most(left: Dim, right: Dim) -> bool:
    """Whether the number is known to be no greater than the other."""
    return isinstance(left, int) and isinstance(right, int) and left <= right


def _recompute_costs(statements: Sequence[Statement], once: AbstractSet[str] = frozenset()) -> Mapping[str, float]:
    """For every value that is cheap enough, or read ``once``, to be computed where it is needed: the cost in ns per element."""
    costs: dict[str, float] = {}
    for statement in statements:
        part = effect(statement)
        if not isinstance(part, n.Store) or statement.ordered or not is_identity(statement, part.index):
            continue
        sources = list(loads(part.value))
        if any(load.buffer.space is n.Space.INOUT for load in sources):
            continue  # the buffer may have been overwritten when the consumer runs
        cost = arithmetic_cost(part.value) + sum(costs.get(load.buffer.name, 0.0) for load in sources)
        if cost <= RECOMPUTE_LIMIT or part.buffer.name in once:
            costs[part.buffer.name] = cost
    return costs


def _has_more_points(left: tuple[Dim, ...], right: tuple[Dim, ...]) -> bool:
    a, b = product(left), product(right)
    return a != b if isinstance(a, Sym) or isinstance(b, Sym) else a > b


Steps = Generator["Steps", None, T]
"""A computation that lets another one run before it goes on: chains of values are longer than Python recurses."""


def _finish(steps: Steps[object]) -> None:
    waiting = [steps]
    while waiting:
        first = next(waiting[-1], None)
        if first is None:
            waiting.pop()
        else:
            waiting.append(first)


@dataclass
class _Emitter:
    producers: Mapping[str, Statement]
    costs: Mapping[str, float]
    stored: AbstractSet[str]
    once: AbstractSet[str]
    counter: int = 0
    body: list[BodyStatement] = field(default_factory=list)
    updates: list[n.Store] = field(default_factory=list)
    bound: dict[tuple[str, tuple[n.Index, ...]], n.Expr] = field(default_factory=dict)
    point: tuple[n.Index, ...] = ()
    box: tuple[Dim, ...] = ()
    inside: frozenset[str] = frozenset()
    changing: frozenset[str] = frozenset()

    def merge(self, name: str, members: Sequence[Statement]) -> Statement:
        """The members as one statement over their common box. In-place updates come last: all reads see old content."""
        iterators = members[0].iterators
        self.body, self.updates, self.bound = [], [], {}
        self.point = tuple(n.Var(iterator.name) for iterator in iterators)
        self.box = box(members[0])
        self.inside = frozenset(effect(m).buffer.name for m in members)
        self.changing = frozenset(part.buffer.name for m in members for part in m.accumulations if m.ordered)
        for member in members:
            rename = dict(zip((it.name for it in member.iterators), self.point, strict=True))
            for part in member.body:
                if not isinstance(part, n.Let) and part.buffer.name in self.stored:
                    _finish(self.emit(part, rename))
        return Statement(name, iterators, (*self.body, *self.updates), members[0].ordered)

    def emit(self, part: n.Store | n.Accumulate, rename: Mapping[str, n.Index]) -> Steps[None]:
        """Appends a store or accumulation; an in-place update is kept for the end."""
        index = yield from self.place(part.index, rename)
        value = yield from self.value(part.value, rename)
        if isinstance(part, n.Accumulate):
            self.body.append(n.Accumulate(part.buffer, index, part.function, value))
        elif part.buffer.space is n.Space.INOUT:
            self.updates.append(n.Store(part.buffer, index, self.atom(value)))
        else:
            self.bound[part.buffer.name, index] = self.atom(value)
            self.body.append(n.Store(part.buffer, index, self.bound[part.buffer.name, index]))

    def place(self, index: tuple[n.Index, ...], rename: Mapping[str, n.Index]) -> Steps[tuple[n.Index, ...]]:
        """An index at a point of the group's box; what decides it is bound, or settled when it is constant."""
        found: list[n.Index] = []
        for each in (ix.substitute(i, rename) for i in index):
            atoms: list[n.Expr] = []
            for value in ix.values(each):
                atoms.append(self.atom((yield from self.value(value, {}))))
            following = iter(atoms)
            bound = ix.map_values(each, lambda _, following=following: next(following))
            found.append(ix.settle(bound, {v: n.Num(int(v.value)) for v in atoms if isinstance(v, n.Literal)}))
        return tuple(found)

    def value(self, expr: n.Expr, rename: Mapping[str, n.Index]) -> Steps[n.Expr]:
        """An expression at a point of the group's box; its loads become references to bound values."""
        if isinstance(expr, n.Call):
            args: list[n.Expr] = []
            for arg in expr.args:
                args.append((yield from self.value(arg, rename)))
            return n.Call(expr.function, tuple(args), expr.dtype)
        if isinstance(expr, n.IndexValue):
            return n.IndexValue(ix.substitute(expr.index, rename), expr.dtype)
        if not isinstance(expr, n.Load):
            return expr
        index = yield from self.place(expr.index, rename)
        if expr.buffer.name in self.changing:
            return self.atom(n.Load(expr.buffer, index))
        if (expr.buffer.name, index) not in self.bound:
            yield self.bind(expr.buffer, index)
        return self.bound[expr.buffer.name, index]

    def bind(self, buffer: n.Buffer, index: tuple[n.Index, ...]) -> Steps[None]:
        """Binds the element of a buffer: computed here when it belongs to this group or is cheap, else loaded."""
        producer = self.producers.get(buffer.name)
        if producer is not None and (self.is_own(buffer.name, index) or self.is_cheap(buffer.name, producer)):
            at = dict(zip((it.name for it in producer.iterators), index, strict=True))
            value = yield from self.value(effect(producer).value, at)
        else:
            value = n.Load(buffer, index)
        self.bound[buffer.name, index] = self.atom(value)

    def is_own(self, name: str, index: tuple[n.Index, ...]) -> bool:
        return name in self.inside and index == self.point

    def is_cheap(self, name: str, producer: Statement) -> bool:
        if name in self.once:
            return True
        limit = RECOMPUTE_PER_POINT_LIMIT if _has_more_points(self.box, box(producer)) else RECOMPUTE_LIMIT
        return self.costs.get(name, limit + 1) <= limit

    def atom(self, value: n.Expr) -> n.Expr:
        """A literal or a reference, binding the value when it is neither."""
        if isinstance(value, n.Literal | n.Ref):
            return value
        name = f"v{self.counter}"
        self.counter += 1
        self.body.append(n.Let(name, value))
        return n.Ref(name, value.dtype)
