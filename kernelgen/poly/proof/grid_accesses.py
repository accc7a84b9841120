"""Every access and every barrier of a grid as text for isl: who comes there, when, and what it touches.

    for turn { bind f = turn * 128 + tx; if f < 500: e[turn] = x[i, f] }

    domain  { A[bx, tx, ty, turn, f] : 0 <= tx < 128 and 0 <= turn < 4 and f = turn * 128 + tx and f < 500 ... }
    time    { A[...] -> [0, turn, 1, 0] }          the way to the statement: positions in blocks, variables of loops
    element { A[...] -> x[i, f] }

A bound or an index that is not affine, or that data decides, is left free: then more instances and more elements are
looked at than there are, never fewer. A barrier must not be there more often than it is, so a path knows which part of its
time makes sure of it (``Path.needs``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import prod

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import loads_of
from kernelgen.poly.model.relations import index_text
from kernelgen.poly.model.size_products import with_products

THREAD = (n.BLOCK_INDEX, *n.THREAD_INDICES)
"""The dims that say who runs an instance; they come first in every domain."""


ROW = 8
"""Numbers of a fragment that each lane points at."""

LANE = "lane"
"""Counts the neighbours that one statement touches."""


@dataclass(frozen=True)
class Condition:
    """A condition in isl's notation, and the variables in it.

    ``about`` are the variables that the condition only defines, or bounds as their definition does; none where it is a
    guard or the bound of a loop, so that it decides whether anybody comes along.
    """

    text: str
    names: frozenset[str]
    about: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Needs:
    """Why a barrier or access is known to run, although it stands under conditions that isl cannot express.

    An instance is there if another one is whose time begins with the same ``after`` steps; an instance before another one
    is there if that one's time begins with the same ``before`` steps: earlier turns of a loop were run as well.
    """

    before: int = 0
    after: int = 0


@dataclass(frozen=True)
class Radix:
    """A digit runs over ``start, start + step, ...``, ``trips`` of them; None is as far as the number goes."""

    trips: n.Index | None
    start: n.Index
    step: int


@dataclass(frozen=True)
class Digits:
    """The bindings ``names`` are the digits of the number ``whole`` to mixed radices, the last one the fastest.

    ``{ whole -> (d0, d1, d2) : whole = d0 * t1 * t2 + d1 * t2 + d2, 0 <= d1 < t1, 0 <= d2 < t2 }`` is injective both ways.
    Isl cannot say this where radices are symbols, which ``is_said`` tells: that equal digits mean equal numbers is added
    where pairs are compared.
    """

    whole: str
    names: tuple[str, ...]
    radices: tuple[Radix, ...]
    is_said: bool = False


@dataclass(frozen=True)
class Path:
    """The way to a place in a grid: variables in scope, what holds of them, the time, and who may come together."""

    dims: tuple[str, ...] = THREAD
    conditions: tuple[Condition, ...] = ()
    time: tuple[str, ...] = ()
    digits: tuple[Digits, ...] = ()
    free: frozenset[str] = frozenset()
    """The variables that may be anything in isl."""
    limits: Mapping[str, n.Index] = field(default_factory=dict[str, n.Index])
    """What a number stays below, also where isl cannot say it."""
    needs: Needs = Needs()
    sizes: Mapping[str, n.Index] = field(default_factory=dict[str, n.Index])
    """What symbols, and products of them, are called in isl."""
    varying: dict[str, frozenset[str]] = field(
        default_factory=lambda: {name: frozenset((name,)) for name in n.THREAD_INDICES}
    )
    divergence: frozenset[str] = frozenset()
    """The thread indices on which it depends whether, and how often, a thread comes here."""

    def depends(self, *indices: n.Index) -> frozenset[str]:
        """The thread indices that the values depend on; data may differ from thread to thread.

        ``tx/4`` stands for a value that four neighbours share.
        """
        return frozenset(name for index in indices for name in self._depends(index))

    def _depends(self, index: n.Index) -> frozenset[str]:
        match index:
            case n.Var(name):
                return self.varying.get(name, frozenset())
            case n.IndexBinary(n.IndexOp.DIV, n.Var(name), n.Num(width)) if name in n.THREAD_INDICES:
                return frozenset((f"{name}/{width}",))
            case n.IndexBinary(_, left, right):
                return self._depends(left) | self._depends(right)
            case n.ValueIndex():
                return frozenset(n.THREAD_INDICES)
            case _:
                return frozenset()

    def text(self, index: n.Index) -> str | None:
        """An index in isl's notation; None when it is not affine or data decides it."""
        index = with_products(index, self.sizes)
        return index_text(ix.substitute(index, self.sizes)) if ix.is_affine(index) else None

    def holds(self, operator: str, left: n.Index, right: n.Index, *about: str) -> Condition | None:
        """A comparison in isl's notation; None when a side cannot be said."""
        a, b = self.text(left), self.text(right)
        sign = "=" if operator == "==" else operator
        names = ix.variables(left) | ix.variables(right)
        return Condition(f"{a} {sign} {b}", names, frozenset(about)) if a is not None and b is not None else None

    def is_free(self, *conditions: Condition | None) -> bool:
        """Whether isl does not know one of them, or what it is about."""
        return any(condition is None or bool(condition.names & self.free) for condition in conditions)

    def where(self, *conditions: Condition | None) -> Path:
        """The path under conditions; None is one that isl cannot say."""
        return replace(self, conditions=(*self.conditions, *(each for each in conditions if each)))

    def at(self, *time: str) -> Path:
        """The path a step further."""
        return replace(self, time=(*self.time, *time))

    def stepped(self, name: str, start: n.Index, step: int, *about: str) -> Condition | None:
        """``name = start (mod step)``; None when that says nothing, or cannot be said."""
        text = self.text(start)
        names = ix.variables(start) | {name}
        return Condition(f"({name} - ({text})) mod {step} = 0", names, frozenset(about)) if text and step > 1 else None

    def naming(self, name: str, varies: frozenset[str]) -> Path:
        """The path with a variable in scope."""
        return replace(self, dims=(*self.dims, name), varying={**self.varying, name: varies})


@dataclass(frozen=True)
class Site:
    """An access and the element that it touches; or a barrier and the like, without a buffer."""

    path: Path
    statement: n.Statement
    buffer: n.Buffer | None = None
    element: tuple[n.Index, ...] = ()
    writes: bool = False


def sites(grid: n.Grid, parameters: Mapping[str, str]) -> Iterator[Site]:
    """Accesses of memory that threads share, barriers and combinations, in textual order.

    ``parameters`` says how the symbols of the nest, and products of them, are called in isl.
    """
    x, y = n.THREAD_INDICES
    path = Path(sizes={name: n.Var(parameter) for name, parameter in parameters.items()})
    sizes = ((n.BLOCK_INDEX, grid.blocks), (x, n.Num(grid.threads[0])), (y, n.Num(grid.threads[1])))
    starts = (path.holds("<=", n.Num(0), n.Var(name), name) for name, _ in sizes)
    ends = (path.holds("<", n.Var(name), size, name) for name, size in sizes)
    yield from _in_block(grid.body, replace(path.where(*starts, *ends), limits=dict(sizes)))


def _in_block(block: n.Block, path: Path) -> Iterator[Site]:
    position, parts = 0, _constants_first(block.statements)
    while position < len(parts):
        part = parts[position]
        if isinstance(part, n.Bind):
            found = _digits(parts[position:])
            path = _named(part, path) if found is None else _split(found, parts[position:], path)
            position += 1 if found is None else len(found.names)
            continue
        yield from _in_statement(part, path.at(str(position)))
        position += 1


def _constants_first(parts: Sequence[n.Statement]) -> Sequence[n.Statement]:
    """Bindings of constants in front of those beside them: a digit that is always 0 stands between others of its number."""
    groups = (list(run) for _, run in groupby(parts, lambda part: isinstance(part, n.Bind)))
    return [part for run in groups for part in sorted(run, key=_is_variable)]


def _is_variable(part: n.Statement) -> bool:
    return isinstance(part, n.Bind) and not isinstance(part.index, n.Num)


def _in_statement(part: n.Statement, path: Path) -> Iterator[Site]:
    match part:
        case n.Block():
            yield from _in_block(part, path)
        case n.For():
            yield from _in_block(part.body, _in_loop(part, path))
        case n.If(conditions, body):
            depends = path.depends(*(side for c in conditions for side in (c.left, c.right)))
            found = [path.holds(c.op, c.left, c.right) for c in conditions]
            steps = len(path.time)
            needs = Needs(steps, steps) if path.is_free(*found) else path.needs
            inner = replace(path.where(*found), divergence=path.divergence | depends, needs=needs)
            below = {c.left.name: c.right for c in conditions if c.op == "<" and isinstance(c.left, n.Var)}
            yield from _in_block(body, replace(inner, limits={**path.limits, **below}))
        case n.Sync() | n.Combine() | n.MultiplyFragments() | n.CommitCopies() | n.AwaitCopies():
            yield Site(path, part)
        case n.LoadFragments(_, _, source, start):
            yield Site(path, part)
            yield from _access(path, part, source, start, False, ROW)
        case n.Copy(target, to, source, start, count) | n.AsyncCopy(target, to, source, start, count):
            yield from _access(path, part, source, start, False, count)
            yield from _access(path, part, target, to, True, count)
        case _:
            for load in loads_of(part):
                yield from _access(path, part, load.buffer, load.index, False)
            if isinstance(part, n.Store | n.Accumulate):
                yield from _access(path, part, part.buffer, part.index, True)


def _in_loop(loop: n.For, path: Path) -> Path:
    """``{ lower <= var < upper, var = lower (mod step) }``."""
    depends = path.depends(loop.lower, loop.upper)
    inner = path.naming(loop.var, depends).at(loop.var)
    start, end = inner.holds("<=", loop.lower, n.Var(loop.var)), inner.holds("<", n.Var(loop.var), loop.upper)
    inner = inner.where(start, end, inner.stepped(loop.var, loop.lower, loop.step))
    inner = replace(inner, limits={**path.limits, loop.var: loop.upper})
    steps = len(inner.time)
    needs = path.needs
    if path.is_free(start):
        needs = Needs(steps, steps)
    elif path.is_free(end):
        needs = Needs(steps - 1, steps)
    return replace(inner, divergence=path.divergence | depends, needs=needs)


def _access(
    path: Path, part: n.Statement, buffer: n.Buffer, index: Sequence[n.Index], writes: bool, count: int = 1
) -> Iterator[Site]:
    """The access as a site, unless no other thread can see the buffer."""
    if buffer.space in (n.Space.PRIVATE, n.Space.LOCAL):
        return
    element = list(index)
    if count > 1:
        path = path.naming(LANE, frozenset())
        path = path.where(
            path.holds("<=", n.Num(0), n.Var(LANE), LANE), path.holds("<", n.Var(LANE), n.Num(count), LANE)
        )
        element[-1] = ix.add(element[-1], n.Var(LANE))
    yield Site(path, part, buffer, tuple(element), writes)


# ---------------------------------------------------------------- bindings


def _named(bind: n.Bind, path: Path) -> Path:
    named = path.naming(bind.var, path.depends(bind.index))
    if isinstance(bind.index, n.Var) and bind.index.name in path.limits:
        named = replace(named, limits={**path.limits, bind.var: path.limits[bind.index.name]})
    value = named.holds("==", n.Var(bind.var), bind.index, bind.var)
    return replace(named.where(value), free=named.free | {bind.var}) if path.is_free(value) else named.where(value)


def _split(digits: Digits, binds: Sequence[n.Statement], path: Path) -> Path:
    """The path with the digits of a number in scope."""
    own = [bind for bind in binds[: len(digits.names)] if isinstance(bind, n.Bind)]
    if digits.is_said:
        for bind in own:
            path = path.naming(bind.var, path.depends(bind.index))
            path = replace(path, free=path.free | {bind.var}) if digits.whole in path.free else path
        path = path.where(path.holds("==", *_summed(digits), *digits.names))
    else:
        for bind in own:
            path = _named(bind, path)
    for name, radix in zip(digits.names, digits.radices, strict=True):
        end = None if radix.trips is None else ix.add(ix.multiply(radix.trips, n.Num(radix.step)), radix.start)
        path = path.where(
            None if end is None and digits.is_said else path.holds("<=", radix.start, n.Var(name), name),
            end and path.holds("<", n.Var(name), end, name),
            path.stepped(name, radix.start, radix.step, name),
        )
    first, name = digits.radices[0], digits.names[0]
    top = _top(digits, path.limits.get(digits.whole))
    end = top and ix.add(ix.multiply(top, n.Num(first.step)), first.start)
    return replace(path.where(end and path.holds("<", n.Var(name), end, name)), digits=(*path.digits, digits))


def _top(digits: Digits, limit: n.Index | None) -> n.Index | None:
    """What the first digit stays below: ``whole < t0 * t1 * t2`` means ``whole / (t1 * t2) < t0``."""
    for radix in reversed(digits.radices[1:]):
        if not (isinstance(limit, n.IndexBinary) and limit.op is n.IndexOp.MUL and limit.right == radix.trips):
            return None
        limit = limit.left
    return limit


def _summed(digits: Digits) -> tuple[n.Index, n.Index]:
    """Both sides of ``whole = d0 * t1 * t2 + d1 * t2 + d2``, times all steps: no division is left for isl."""
    steps = prod(radix.step for radix in digits.radices)
    total: n.Index = n.Num(0)
    scale = steps
    for name, radix in reversed(list(zip(digits.names, digits.radices, strict=True))):
        part = ix.multiply(ix.subtract(n.Var(name), radix.start), n.Num(scale // radix.step))
        total = ix.add(total, part)
        scale *= radix.trips.value if isinstance(radix.trips, n.Num) else 1
    return ix.multiply(n.Var(digits.whole), n.Num(steps)), total


def _digits(statements: Sequence[n.Statement]) -> Digits | None:
    """The most bindings at the head of the statements that are the digits of one number."""
    count = next((k for k, part in enumerate(statements) if not isinstance(part, n.Bind)), len(statements))
    for length in range(count, 1, -1):
        run = [part for part in statements[:length] if isinstance(part, n.Bind)]
        found = _digits_of(run)
        if found is not None:
            return replace(found, is_said=all(ix.is_affine(bind.index) for bind in run))
    return None


def _digits_of(run: Sequence[n.Bind]) -> Digits | None:
    """``d0 = whole / (t1 * t2)``, ``d1 = whole / t2 mod t1``, ``d2 = whole mod t2``, each times a step from a start on."""
    scale: n.Index = n.Num(1)
    radices: list[Radix] = []
    wholes: set[n.Index] = set()
    for bind in reversed(run):
        index, start, step = _unscaled(bind.index)
        trips: n.Index | None = None
        if bind is not run[0]:
            if not (isinstance(index, n.IndexBinary) and index.op is n.IndexOp.MOD):
                return None
            index, trips = index.left, index.right
        if scale != n.Num(1):
            if not (isinstance(index, n.IndexBinary) and index.op is n.IndexOp.DIV and index.right == scale):
                return None
            index = index.left
        wholes.add(index)
        radices.append(Radix(trips, start, step))
        scale = scale if trips is None else ix.multiply(scale, trips)
    whole = wholes.pop() if len(wholes) == 1 else None
    return (
        Digits(whole.name, tuple(bind.var for bind in run), tuple(radices[::-1])) if isinstance(whole, n.Var) else None
    )


def _unscaled(index: n.Index) -> tuple[n.Index, n.Index, int]:
    """``digit * step + start`` taken apart."""
    start: n.Index = n.Num(0)
    if isinstance(index, n.IndexBinary) and index.op is n.IndexOp.ADD:
        index, start = index.left, index.right
    if isinstance(index, n.IndexBinary) and index.op is n.IndexOp.MUL and isinstance(index.right, n.Num):
        return index.left, start, index.right.value
    return index, start, 1
