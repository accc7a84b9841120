"""Shrinks temporaries to what is alive at a time, and makes the small ones local.

    workspace e[M, N]                         parallel for i:
    parallel for i:                             alloc e[N]
      for j: e[i, j] = exp(x[i, j])     ->      for j: e[j] = exp(x[i, j])
      for j: y[i, j] = e[i, j] / s[i]           for j: y[i, j] = e[j] / s

Let B be the innermost block that holds all accesses of a temporary. A dim that all of them address alike, by variables of
loops around B and moving with one of them, needs one element only: every access of an iteration of that loop has the same
index there, so no value passes between iterations. The temporary then belongs to an iteration of that loop and is
allocated in B. One that all of them address within a block that begins where an iteration of the loops around B says
needs the block.
Storage is decided here, after scheduling, because before it nobody knows which loops are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from kernelgen.machines.gpu.device import GpuMachine
from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.ranges import values_left
from kernelgen.nest.walk import Moved, Path, accesses_of, move
from kernelgen.tensor.dims import Sym, product
from kernelgen.transforms.common.addressed_blocks import Block, block_of

LOCAL_BYTES = 64 * 1024  # of one temporary on the stack of a thread
PRIVATE_BYTES = 1024  # of one temporary of a GPU's thread, most of which would be in memory

Room = Callable[["_Home"], int]

NOTHING: Mapping[str, n.Index] = {}


def contract(nest: n.Nest) -> n.Nest:
    """The nest with each temporary that then fits a stack as small as its accesses allow."""
    return _with_locals(nest, on_heap=False, room=lambda home: LOCAL_BYTES)


def contract_shared(nest: n.Nest, device: GpuMachine) -> n.Nest:
    """The same for what fits a block of threads: shared between them where thread loops use it, else one thread's own."""

    def room_of_grid(home: _Home) -> int:
        alone = any(loop.kind is n.LoopKind.THREAD for loop in home.loops)
        return device.array_bytes if n.LoopKind.THREAD in home.inside and not alone else PRIVATE_BYTES

    return _with_locals(nest, on_heap=False, room=room_of_grid)


def contract_large(nest: n.Nest) -> n.Nest:
    """The same for temporaries of any size, symbolic ones too: a target takes them from the heap.

    Only worth it when dims are dropped; a temporary that keeps its full size is better allocated once, as a workspace.
    """
    return _with_locals(nest, on_heap=True, room=lambda home: LOCAL_BYTES)


def is_contracted(nest: n.Nest) -> bool:
    """Whether no workspace is one element that one iteration alone uses: that is a local."""
    places = _Places()
    places.enter(nest.body, (), ())
    workspaces = (buffer for buffer in nest.buffers if buffer.space is n.Space.WORKSPACE)
    return all(_local_form(each, places.home(each.name), False, each.dtype.itemsize) is None for each in workspaces)


def _with_locals(nest: n.Nest, on_heap: bool, room: Room) -> n.Nest:
    places = _Places()
    places.enter(nest.body, (), ())
    kept: list[n.Buffer] = []
    locals_: dict[str, Moved] = {}
    allocations: dict[Path, list[n.Buffer]] = {}
    for buffer in nest.buffers:
        home = places.home(buffer.name)
        local = _local_form(buffer, home, on_heap, room(home)) if buffer.space is n.Space.WORKSPACE else None
        if local is None:
            kept.append(buffer)
        else:
            locals_[buffer.name] = local
            allocations.setdefault(home.path, []).insert(0, local.buffer)
    body = _allocate(move(nest.body, locals_), (), allocations) if locals_ else nest.body
    return replace(nest, buffers=tuple(kept), body=body)


@dataclass(frozen=True)
class _Home:
    """The innermost block that holds all accesses: the way to it, the loops around it, the kinds of those inside it."""

    path: Path
    loops: tuple[n.For, ...]
    inside: frozenset[n.LoopKind]
    indices: tuple[tuple[n.Index, ...], ...]
    rooms: tuple[tuple[tuple[n.For, ...], Mapping[str, n.Index]], ...]
    """For each index the loops between the block and the access, and what conditions there say variables are."""


@dataclass(frozen=True)
class _Places:
    """Where everything is: found in one walk, for all buffers."""

    loops: dict[Path, tuple[n.For, ...]] = field(default_factory=dict)
    pinned: dict[Path, Mapping[str, n.Index]] = field(default_factory=dict)
    accesses: dict[str, list[tuple[Path, tuple[n.Index, ...]]]] = field(default_factory=dict)
    inside: dict[Path, set[n.LoopKind]] = field(default_factory=dict)

    def enter(
        self, block: n.Block, path: Path, loops: tuple[n.For, ...], pinned: Mapping[str, n.Index] = NOTHING
    ) -> None:
        self.loops[path], self.pinned[path] = loops, pinned
        kinds = self.inside.setdefault(path, set())
        for k, part in enumerate(block.statements):
            below = (*path, k)
            if isinstance(part, n.For):
                self.enter(part.body, below, (*loops, part), pinned)
                kinds |= {part.kind, *self.inside[below]}
            elif isinstance(part, n.If | n.Block | n.Grid):
                known = {**pinned, **values_left(part.conditions, loops)} if isinstance(part, n.If) else pinned
                self.enter(part if isinstance(part, n.Block) else part.body, below, loops, known)
                kinds |= self.inside[below] | ({n.LoopKind.BLOCK} if isinstance(part, n.Grid) else set())
            else:
                for buffer, index in accesses_of(part):
                    self.accesses.setdefault(buffer.name, []).append((path, index))

    def home(self, name: str) -> _Home:
        found = self.accesses.get(name, [])
        path = _common_start([path for path, _ in found])
        around = self.loops[path]
        rooms = tuple((self.loops[place][len(around) :], self.pinned[place]) for place, _ in found)
        return _Home(path, around, frozenset(self.inside[path]), tuple(index for _, index in found), rooms)


def _common_start(paths: Sequence[Path]) -> Path:
    first, last = min(paths, default=()), max(paths, default=())
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False))
    return tuple(position for position, _ in same)


def _local_form(buffer: n.Buffer, home: _Home, on_heap: bool, room: int) -> Moved | None:
    """The local temporary without the dims that stay constant, and the dims that it keeps.

    None when it is too large for its place or shared between parallel iterations.
    """
    around = frozenset(loop.var for loop in home.loops)
    dims: list[int] = []
    for dim in range(len(buffer.shape)):
        first, *others = dict.fromkeys(index[dim] for index in home.indices) or (n.Num(0),)
        if others or not _follows(first, around):
            dims.append(dim)
    blocks = [_block_of(buffer, dim, home) for dim in dims]
    shape = tuple(length for _, length in blocks)
    size = product(shape)
    fits_stack = not isinstance(size, Sym) and size * buffer.dtype.itemsize <= room
    if not fits_stack and not (on_heap and shape != buffer.shape):
        return None
    if home.inside & {n.LoopKind.PARALLEL, n.LoopKind.BLOCK}:
        return None
    bases = {dim: base for dim, (base, _) in zip(dims, blocks, strict=True)}
    return Moved(n.Buffer(buffer.name, buffer.dtype, shape, n.Space.LOCAL), tuple(dims), bases=bases)


def _follows(index: n.Index, around: frozenset[str]) -> bool:
    """Whether an index is another one in every iteration of one of these loops, and stays the same within it."""
    names = ix.variables(index)
    return names <= around and any(ix.stride(index, name) for name in names)


def _block_of(buffer: n.Buffer, dim: int, home: _Home) -> Block:
    """What is addressed of a dim in an iteration of the loops around."""
    extent = buffer.shape[dim]
    places = [(index[dim], *room) for index, room in zip(home.indices, home.rooms, strict=True)]
    found = block_of(places, home.loops)
    shorter = found is not None and (isinstance(extent, Sym) or found[1] < extent)
    return found if found is not None and shorter else (n.Num(0), extent)


def _allocate(block: n.Block, path: Path, allocations: Mapping[Path, Sequence[n.Buffer]]) -> n.Block:
    parts: list[n.Statement] = [n.Alloc(buffer) for buffer in allocations.get(path, ())]
    for k, part in enumerate(block.statements):
        if isinstance(part, n.For | n.If | n.Grid):
            parts.append(replace(part, body=_allocate(part.body, (*path, k), allocations)))
        else:
            parts.append(_allocate(part, (*path, k), allocations) if isinstance(part, n.Block) else part)
    return n.Block(tuple(parts))
