"""Keeps rows that several thread loops read: those of known length in registers, others in shared memory where they fit.

    grid { block i:                             grid where 4 * N <= limit { block i:
      thread j: m max= x[i, j]                    alloc shared row[N]
      thread j: y[i, j] = exp(x[i, j] - m)  ->    thread j: row[j] = x[i, j]; m max= x[i, j]
                s += y[i, j]                      thread j: row[j] = exp(row[j] - m); s += row[j]
      thread j: y[i, j] = y[i, j] / s             thread j: y[i, j] = row[j] / s
                                                grid where limit < 4 * N { as it was

The array of a row of known length is local: :mod:`places` deals it to the threads. Of others nobody knows how many elements
a thread would have, but a launch knows how long they are: it is one of two.

Legality. All thread loops of a row deal alike, and each access of the row has the loop's variable in one dim and what the
block decides in the others: an element is touched by one thread, in one iteration of each loop. The row is filled where
its element is first loaded or stored, in every iteration. An output's last store stays; nothing loads the element behind
it, and no other thread did before. Two rows share memory where in each iteration the one is dead when the other is filled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kernelgen.machines.gpu.device import GpuMachine
from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.substitute import renamed
from kernelgen.nest.walk import Place, accesses_by_buffer, accesses_of, nested, redirect, replace_buffers, statements
from kernelgen.tensor.dims import Shape, product
from kernelgen.transforms.gpu.assign_memory_spaces import UNROLLED
from kernelgen.transforms.gpu.delinearise import block_loops
from kernelgen.transforms.gpu.thread_ownership import Chain, chain_at, is_thread_loop

REGISTER_BYTES = 128
"""Of the rows of a thread: a quarter of what it may have, as what is computed of them lives beside them."""

ALIGNMENT = 16
"""Bytes that each array in shared memory starts at a multiple of, for the widest access of a thread."""
LONG = "_long"


def rows(nest: n.Nest, device: GpuMachine) -> n.Nest:
    """The nest, cut into grids, with such rows, and a second form of each grid that has some of unknown length."""
    users = Counter(name for part in nest.body.statements for name in accesses_by_buffer(part))
    several = {name for name, count in users.items() if count > 1}
    parts: list[n.Statement] = []
    for part in nest.body.statements:
        parts += _forms(part, several, device.array_bytes) if isinstance(part, n.Grid) else [part]
    body = n.Block(tuple(parts))
    used = accesses_by_buffer(body)
    buffers = tuple(b for b in nest.buffers if b.space is not n.Space.WORKSPACE or b.name in used)
    return replace(nest, buffers=buffers, body=body)


def _forms(grid: n.Grid, elsewhere: set[str], limit: int) -> list[n.Grid]:
    """The grid with all rows and the one without those of unknown length, or one; several grids use ``elsewhere``."""
    loops, inner = block_loops(grid.body)
    known = list(_few(_held(inner, elsewhere, is_known=True)))
    inner, _ = _led(inner, known, n.Space.LOCAL)
    held = list(_held(inner, elsewhere, is_known=False))
    long = replace(grid, body=nested(loops, inner))
    if not held:
        return [long]
    inner, made = _led(inner, held, n.Space.SHARED)
    total: n.Index = n.Num(0)
    for buffer in made:
        total = ix.add(total, padded_bytes(buffer))
    fits, exceeds = n.Compare("<=", total, n.Num(limit)), n.Compare("<", n.Num(limit), total)
    short = replace(grid, body=nested(loops, inner), when=(fits,))
    return [short, replace(_renamed(long), name=f"{grid.name}{LONG}", when=(exceeds,))]


def _held(inner: n.Block, elsewhere: set[str], is_known: bool) -> Iterator[_Row]:
    """The rows of a block, of thread loops whose length is known or not."""
    for chains in _alike(inner):
        if isinstance(_first(chains).length, n.Num) == is_known:
            yield from _rows_of(inner, chains, elsewhere)


def _few(rows: Iterable[_Row]) -> Iterator[_Row]:
    """As many rows of known length as registers hold."""
    left = REGISTER_BYTES
    for row in rows:
        chain = _first(row.chains)
        length = chain.length
        assert isinstance(length, n.Num)
        share = -(-length.value // chain.threads)
        left -= share * row.buffer.dtype.itemsize
        if left >= 0 and share <= UNROLLED:
            yield row


def _led(inner: n.Block, held: Sequence[_Row], space: n.Space) -> tuple[n.Block, list[n.Buffer]]:
    """The block with these rows, and their arrays."""
    stored = _stored(held, space)
    made = list(dict.fromkeys(stored.values()))
    return n.Block((*map(n.Alloc, made), *_Leader(held, stored).block(inner).statements)), made


def padded_bytes(buffer: n.Buffer) -> n.Index:
    """The bytes of an array, rounded up to where the next one may start."""
    size = ix.multiply(ix.from_dim(product(buffer.shape)), n.Num(buffer.dtype.itemsize))
    return ix.multiply(ix.floor_divide(ix.add(size, n.Num(ALIGNMENT - 1)), n.Num(ALIGNMENT)), n.Num(ALIGNMENT))


# ---------------------------------------------------------------- which rows


Point = tuple[int, int]
"""A statement that the iterations of a thread loop run: the positions of the loop in its block and of the statement in it."""

Alike = Mapping[int, Chain]
"""Thread loops that deal alike, by their position in a block."""


@dataclass(frozen=True)
class _Access:
    """An access in an iteration; ``plain`` where every iteration makes it, and it is all that its statement loads or stores."""

    buffer: n.Buffer
    index: tuple[n.Index, ...]
    point: Point
    dims: tuple[int, ...] | None
    writes: bool
    plain: bool
    sums: bool


@dataclass(frozen=True)
class _Row:
    """The accesses of a buffer that go to a row, in order; ``fill`` loads the element first, where a load comes first."""

    chains: Alike
    buffer: n.Buffer
    key: tuple[n.Index, ...]
    shape: Shape
    first: Point
    last: Point
    fill: Point | None
    kept: Point | None
    """The store that stays where it is."""


def _first(chains: Alike) -> Chain:
    return next(iter(chains.values()))


def _alike(inner: n.Block) -> list[Alike]:
    """The thread loops of a block that deal alike and are counted from 0."""
    found: dict[object, dict[int, Chain]] = {}
    for position, part in enumerate(inner.statements):
        if is_thread_loop(part):
            chain = chain_at(part)
            if all(loop.lower == n.Num(0) for loop in chain.loops):
                found.setdefault(chain.deal, {})[position] = chain
    return [chains for chains in found.values() if len(chains) > 1]


def _rows_of(inner: n.Block, chains: Alike, elsewhere: set[str]) -> Iterator[_Row]:
    own = [access for place, chain in chains.items() for access in _accesses(place, chain)]
    around = [part for place, part in enumerate(inner.statements) if place not in chains]
    outside = {buffer.name for part in around for s in statements(part) for buffer, _ in accesses_of(s)}
    written = {access.buffer.name for access in own if access.writes}
    groups: dict[tuple[str, tuple[n.Index, ...]], list[_Access]] = {}
    for access in own:
        groups.setdefault((access.buffer.name, access.index), []).append(access)
    for (name, key), found in groups.items():
        alone = all(access in found for access in own if access.buffer.name == name) and name not in outside
        if found[0].buffer.space in (n.Space.PRIVATE, n.Space.SHARED, n.Space.LOCAL) or (name in written and not alone):
            continue
        row = _row(chains, key, found, elsewhere)
        if row is not None:
            yield row


def _row(chains: Alike, key: tuple[n.Index, ...], found: list[_Access], elsewhere: set[str]) -> _Row | None:
    """The row of these accesses, if they are such ones and a load is saved."""
    buffer, first, last, dims = found[0].buffer, found[0], found[-1], found[0].dims
    stores = [access for access in found if access.writes]
    stays = bool(stores) and (buffer.space is not n.Space.WORKSPACE or buffer.name in elsewhere)
    loads = len(found) - len(stores) - (0 if first.writes else 1)
    if any(access.sums for access in found):
        return None
    if dims is None or not first.plain or loads < 1:
        return None
    if stays and not (last.writes and last.plain):
        return None
    shape = tuple(buffer.shape[dim] for dim in dims)
    end = found[-2] if stays else last
    fill, kept = (None if first.writes else first.point), (last.point if stays else None)
    return _Row(chains, buffer, key, shape, first.point, end.point, fill, kept)


def _accesses(place: int, chain: Chain) -> Iterator[_Access]:
    """What an iteration touches, in textual order; loop variables go by their place in the chain."""
    places = _places(chain)
    for position, part in enumerate(chain.body.statements):
        for inner in statements(part):
            touched = list(accesses_of(inner))
            for k, (buffer, index) in enumerate(touched):
                writes = isinstance(inner, n.Store | n.Accumulate) and k == len(touched) - 1
                whole = (
                    isinstance(inner, n.Store)
                    if writes
                    else isinstance(inner, n.Let) and isinstance(inner.value, n.Load)
                )
                dims = chain.owned_dims(index)
                named = tuple(ix.substitute(i, places) for i in index)
                yield _Access(
                    buffer, named, (place, position), dims, writes, inner is part and whole, writes and not whole
                )


def _places(chain: Chain) -> Mapping[str, n.Index]:
    return {loop.var: n.Var(f"#{place}") for place, loop in enumerate(chain.loops)}


def _stored(held: Sequence[_Row], space: n.Space) -> dict[int, n.Buffer]:
    """The array of each row, by its position; a later row takes the memory of one that is dead by then."""
    found: dict[int, n.Buffer] = {}
    ends: dict[n.Buffer, tuple[object, Point]] = {}
    for position, row in sorted(enumerate(held), key=lambda pair: pair[1].first):
        deal = _first(row.chains).deal
        free = (
            buffer
            for buffer, (other, end) in ends.items()
            if (buffer.dtype, buffer.shape, other) == (row.buffer.dtype, row.shape, deal) and end <= row.first
        )
        place = next(free, None) or n.Buffer(f"{row.buffer.name}_row{position}", row.buffer.dtype, row.shape, space)
        ends[place] = (deal, row.last)
        found[position] = place
    return found


# ---------------------------------------------------------------- the grid with rows


@dataclass(frozen=True)
class _Leader:
    """Leads the accesses of rows to their arrays."""

    held: Sequence[_Row]
    stored: Mapping[int, n.Buffer]

    def block(self, inner: n.Block) -> n.Block:
        """What a block of threads runs."""
        parts = enumerate(inner.statements)
        return n.Block(tuple(self.loop(place, part) if is_thread_loop(part) else part for place, part in parts))

    def loop(self, place: int, loop: n.For) -> n.Statement:
        """A thread loop at a position of the block, with the accesses of its rows led to them."""
        own = {
            (row.buffer.name, row.key): (row, self.stored[number])
            for number, row in enumerate(self.held)
            if place in row.chains
        }
        return _Iteration(chain_at(loop), place, own).loop if own else loop


@dataclass(frozen=True)
class _Iteration:
    """The iteration of a chain, which is at position ``number`` of its block, and its rows by what addresses them."""

    chain: Chain
    number: int
    rows: Mapping[tuple[str, tuple[n.Index, ...]], tuple[_Row, n.Buffer]]

    @property
    def loop(self) -> n.Statement:
        """The loop with the iteration led."""
        parts: list[n.Statement] = []
        for position, part in enumerate(self.chain.body.statements):
            point = (self.number, position)
            parts.append(self.led(part, point))
            filled = [place for row, place in self.rows.values() if row.fill == point]
            if isinstance(part, n.Let):
                parts += [n.Store(place, self.place, n.Ref(part.name, part.value.dtype)) for place in filled]
        (found,) = nested(self.chain.loops, n.Block(tuple(parts))).statements
        return found

    @property
    def place(self) -> tuple[n.Index, ...]:
        """Where the iteration's element is in each row."""
        return tuple(n.Var(loop.var) for loop in self.chain.loops)

    def row(self, buffer: n.Buffer, index: tuple[n.Index, ...]) -> tuple[_Row, n.Buffer] | None:
        """The row that an access goes to."""
        places = _places(self.chain)
        return self.rows.get((buffer.name, tuple(ix.substitute(i, places) for i in index)))

    def led(self, part: n.Statement, point: Point) -> n.Statement:
        """A statement of the iteration."""

        def loaded(buffer: n.Buffer, index: tuple[n.Index, ...]) -> Place | None:
            found = self.row(buffer, index)
            return (found[1], self.place) if found and found[0].fill != point else None

        def stored(buffer: n.Buffer, index: tuple[n.Index, ...]) -> Place | None:
            found = self.row(buffer, index)
            return (found[1], self.place) if found and found[0].kept != point else None

        (led,) = redirect(n.Block((part,)), loaded, stored).statements
        return led


def _renamed(grid: n.Grid) -> n.Grid:
    """The grid with names of its own for what it binds and allocates."""
    buffers = [part.buffer for part in statements(grid) if isinstance(part, n.Alloc)]
    own = {buffer.name: replace(buffer, name=buffer.name + LONG) for buffer in buffers}
    return replace(grid, body=renamed(replace_buffers(grid.body, own), LONG))
