"""Every access and every barrier of a grid as text for isl: who comes there, when, and what it touches.

    for turn { bind f = turn * 128 + tx; if f < 500: e[turn] = x[i, f] }

    domain  { A[bx, tx, ty, turn, f] : 0 <= tx < 128 and 0 <= turn < 4 and f = turn * 128 + tx and f < 500 ... }
    time    { A[...] -> [0, turn, 1, 0] }          the way to the statement: positions in blocks, variables of loops
    element { A[...] -> x[i, f] }

A bound or an index that is not affine, or that data decides, is left free: then more instances and more elements are
looked at than there are, never fewer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    BLOCK_INDEX,
    THREAD_INDICES,
    Accumulate,
    AsyncCopy,
    Bind,
    Block,
    Buffer,
    Combine,
    Copy,
    For,
    Grid,
    If,
    Index,
    IndexBinary,
    IndexOp,
    LoadFragments,
    MultiplyFragments,
    Num,
    Space,
    Statement,
    Store,
    Sync,
    Var,
)
from kernelgen.nest.walk import loads_of
from kernelgen.poly.relations import index_text

THREAD = (BLOCK_INDEX, *THREAD_INDICES)
"""The dims that say who runs an instance; they come first in every domain."""


ROW = 8
"""Numbers of a fragment that each lane points at."""


@dataclass(frozen=True)
class Radix:
    """A digit runs over ``start, start + step, ...``, ``trips`` of them; None is as far as the number goes."""

    trips: Index | None
    start: Index
    step: int


@dataclass(frozen=True)
class Digits:
    """The bindings ``names`` are the digits of the number ``whole`` to mixed radices, the last one the fastest.

    ``{ whole -> (d0, d1, d2) : whole = d0 * t1 * t2 + d1 * t2 + d2, 0 <= d1 < t1, 0 <= d2 < t2 }`` is injective both ways.
    Isl cannot say this where radices are symbols; that equal digits mean equal numbers is added where pairs are compared.
    """

    whole: str
    names: tuple[str, ...]
    radices: tuple[Radix, ...]


@dataclass(frozen=True)
class Path:
    """The way to a place in a grid: variables in scope, what holds of them, the time, and who may come together."""

    dims: tuple[str, ...] = THREAD
    conditions: tuple[str, ...] = ()
    time: tuple[str, ...] = ()
    digits: tuple[Digits, ...] = ()
    sizes: Mapping[str, Index] = field(default_factory=dict[str, Index])
    """What symbols are called in isl."""
    varying: dict[str, frozenset[str]] = field(
        default_factory=lambda: {name: frozenset((name,)) for name in THREAD_INDICES}
    )
    divergence: frozenset[str] = frozenset()
    """The thread indices on which it depends whether, and how often, a thread comes here."""

    def depends(self, *indices: Index) -> frozenset[str]:
        """The thread indices that the values depend on; data may differ from thread to thread."""
        found: frozenset[str] = frozenset()
        for index in indices:
            for name in ix.variables(index):
                found |= self.varying.get(name, frozenset())
            if any(True for _ in ix.values(index)):
                found |= frozenset(THREAD_INDICES)
        return found

    def text(self, index: Index) -> str | None:
        """An index in isl's notation; None when it is not affine or data decides it."""
        return index_text(ix.substitute(index, self.sizes)) if ix.is_affine(index) else None

    def holds(self, operator: str, left: Index, right: Index) -> str | None:
        """A comparison in isl's notation; None when a side cannot be said."""
        a, b = self.text(left), self.text(right)
        sign = "=" if operator == "==" else operator
        return f"{a} {sign} {b}" if a is not None and b is not None else None

    def where(self, *texts: str | None) -> Path:
        """The path under conditions; None is one that isl cannot say."""
        return replace(self, conditions=(*self.conditions, *(text for text in texts if text)))

    def at(self, *time: str) -> Path:
        """The path a step further."""
        return replace(self, time=(*self.time, *time))

    def naming(self, name: str, varies: frozenset[str]) -> Path:
        """The path with a variable in scope."""
        return replace(self, dims=(*self.dims, name), varying={**self.varying, name: varies})


@dataclass(frozen=True)
class Site:
    """An access: ``element`` has None for a dim that may be anything; or a barrier, without a buffer."""

    path: Path
    statement: Statement
    buffer: Buffer | None = None
    element: tuple[str | None, ...] = ()
    writes: bool = False


def sites(grid: Grid, parameters: Mapping[str, str]) -> Iterator[Site]:
    """Accesses of memory that threads share, barriers and combinations, in textual order.

    ``parameters`` says how the symbols of the nest are called in isl.
    """
    x, y = THREAD_INDICES
    path = Path(sizes={name: Var(parameter) for name, parameter in parameters.items()})
    blocks = path.holds("<", Var(BLOCK_INDEX), grid.blocks)
    whole = (f"0 <= {BLOCK_INDEX}", blocks, f"0 <= {x} < {grid.threads[0]}", f"0 <= {y} < {grid.threads[1]}")
    yield from _in_block(grid.body, path.where(*whole))


def _in_block(block: Block, path: Path) -> Iterator[Site]:
    position = 0
    while position < len(block.statements):
        part = block.statements[position]
        if isinstance(part, Bind):
            found = _digits(block.statements[position:])
            path = _named(part, path) if found is None else _split(found, block.statements[position:], path)
            position += 1 if found is None else len(found.names)
            continue
        yield from _in_statement(part, path.at(str(position)))
        position += 1


def _in_statement(part: Statement, path: Path) -> Iterator[Site]:
    match part:
        case Block():
            yield from _in_block(part, path)
        case For():
            yield from _in_block(part.body, _in_loop(part, path))
        case If(conditions, body):
            depends = path.depends(*(side for c in conditions for side in (c.left, c.right)))
            inner = path.where(*(path.holds(c.op, c.left, c.right) for c in conditions))
            yield from _in_block(body, replace(inner, divergence=path.divergence | depends))
        case Sync() | Combine() | MultiplyFragments():
            yield Site(path, part)
        case LoadFragments(_, _, source, start):
            yield Site(path, part)
            yield from _access(path, part, source, start, False, ROW)
        case Copy(target, to, source, start, count) | AsyncCopy(target, to, source, start, count):
            yield from _access(path, part, source, start, False, count)
            yield from _access(path, part, target, to, True, count)
        case _:
            for load in loads_of(part):
                yield from _access(path, part, load.buffer, load.index, False)
            if isinstance(part, Store | Accumulate):
                yield from _access(path, part, part.buffer, part.index, True)


def _in_loop(loop: For, path: Path) -> Path:
    """``{ lower <= var < upper, var = lower (mod step) }``."""
    depends = path.depends(loop.lower, loop.upper)
    lower, variable = path.text(loop.lower), Var(loop.var)
    inner = path.naming(loop.var, depends).at(loop.var)
    steps = f"({loop.var} - ({lower})) mod {loop.step} = 0" if lower and loop.step > 1 else None
    inner = inner.where(path.holds("<=", loop.lower, variable), path.holds("<", variable, loop.upper), steps)
    return replace(inner, divergence=path.divergence | depends)


def _access(
    path: Path, part: Statement, buffer: Buffer, index: Sequence[Index], writes: bool, count: int = 1
) -> Iterator[Site]:
    """The access as a site, unless no other thread can see the buffer."""
    if buffer.space in (Space.PRIVATE, Space.LOCAL):
        return
    element = [path.text(i) for i in index]
    if count > 1:
        path = path.naming("lane", frozenset()).where(f"0 <= lane < {count}")
        element[-1] = f"({element[-1]}) + lane" if element[-1] else None
    yield Site(path, part, buffer, tuple(element), writes)


# ---------------------------------------------------------------- bindings


def _named(bind: Bind, path: Path) -> Path:
    text = path.text(bind.index)
    named = path.naming(bind.var, path.depends(bind.index))
    return named.where(f"{bind.var} = {text}" if text else None)


def _split(digits: Digits, binds: Sequence[Statement], path: Path) -> Path:
    """The path with the digits of a number in scope."""
    for bind in binds[: len(digits.names)]:
        path = _named(bind, path) if isinstance(bind, Bind) else path
    for name, radix in zip(digits.names, digits.radices, strict=True):
        end = None if radix.trips is None else ix.add(ix.multiply(radix.trips, Num(radix.step)), radix.start)
        start = path.text(radix.start)
        steps = f"({name} - ({start})) mod {radix.step} = 0" if start and radix.step > 1 else None
        path = path.where(path.holds("<=", radix.start, Var(name)), end and path.holds("<", Var(name), end), steps)
    return replace(path, digits=(*path.digits, digits))


def _digits(statements: Sequence[Statement]) -> Digits | None:
    """The most bindings at the head of the statements that are the digits of one number, if isl cannot say so itself."""
    count = next((k for k, part in enumerate(statements) if not isinstance(part, Bind)), len(statements))
    for length in range(count, 1, -1):
        run = [part for part in statements[:length] if isinstance(part, Bind)]
        found = _digits_of(run)
        if found is not None:
            return None if all(ix.is_affine(bind.index) for bind in run) else found
    return None


def _digits_of(run: Sequence[Bind]) -> Digits | None:
    """``d0 = whole / (t1 * t2)``, ``d1 = whole / t2 mod t1``, ``d2 = whole mod t2``, each times a step from a start on."""
    scale: Index = Num(1)
    radices: list[Radix] = []
    wholes: set[Index] = set()
    for bind in reversed(run):
        index, start, step = _unscaled(bind.index)
        trips: Index | None = None
        if bind is not run[0]:
            if not (isinstance(index, IndexBinary) and index.op is IndexOp.MOD):
                return None
            index, trips = index.left, index.right
        if scale != Num(1):
            if not (isinstance(index, IndexBinary) and index.op is IndexOp.DIV and index.right == scale):
                return None
            index = index.left
        wholes.add(index)
        radices.append(Radix(trips, start, step))
        scale = scale if trips is None else ix.multiply(scale, trips)
    whole = wholes.pop() if len(wholes) == 1 else None
    return Digits(whole.name, tuple(bind.var for bind in run), tuple(radices[::-1])) if isinstance(whole, Var) else None


def _unscaled(index: Index) -> tuple[Index, Index, int]:
    """``digit * step + start`` taken apart."""
    start: Index = Num(0)
    if isinstance(index, IndexBinary) and index.op is IndexOp.ADD:
        index, start = index.left, index.right
    if isinstance(index, IndexBinary) and index.op is IndexOp.MUL and isinstance(index.right, Num):
        return index.left, start, index.right.value
    return index, start, 1
