"""Launches that have nothing to do with each other become one, whose blocks are divided between them (block fusion).

    grid a of 4 blocks { bind item = bx*256 + tx; A }           grid a of 20 blocks {
    grid b of 16 blocks { bind item = bx*256 + tx; B }    ->      if bx < 4 { bind item = bx*256 + tx; A }
                                                                  if 4 <= bx { bind part1 = bx - 4; bind item = ...; B }

A launch costs some microseconds in which small ones leave the device idle. Launches of one level are joined: a level is
what waits for the same launches before. Legality: none of them writes what another one reads or writes, and blocks of one
launch run in no order. All threads of a block are in one part, so that barriers stay where they are; blocks of one part
may have fewer threads than the launch (:mod:`kernelgen.transforms.gpu.reshape_blocks`), of which the rest is idle.

Whether it pays: parts that nobody put together are joined where the idle threads are few. Those of a kernel that was made
to be one launch are joined as long as its blocks come and go in a few rounds; the gain was counted when it was made. Source:
AKG's parallel fusion, MindSpore's ``ParallelOpFusion`` (block fusion).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kernelgen.machines.gpu.device import JOINED_LIMIT, WARP, GpuMachine
from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.substitute import substituted
from kernelgen.nest.walk import loads_of, statements
from kernelgen.tensor.dims import product
from kernelgen.transforms.gpu.reshape_blocks import seated

FEW = 4
"""Blocks of a part for each multiprocessor, which may leave threads idle: they are done at once."""

ROUNDS = 4
"""How often a device is filled by a launch of parts that were put together, idle threads counted."""

MEETINGS = (n.Sync, n.Combine, n.LoadFragments, n.MultiplyFragments)
PART = "part"


def side_by_side(nest: n.Nest, device: GpuMachine) -> n.Nest:
    """The nest, cut into distributed grids, with fewer of them."""
    waves: dict[int, list[list[_Part]]] = {}
    levels: list[tuple[_Part, int]] = []
    for grid in nest.body.statements:
        if not isinstance(grid, n.Grid):
            return nest
        part = _Part.of(grid, device)
        level = max((before + 1 for earlier, before in levels if part.waits_for(earlier)), default=0)
        levels.append((part, level))
        launches = waves.setdefault(level, [])
        place = next((launch for launch in launches if _fit([*launch, part], device, nest.one_launch)), None)
        if place is None:
            launches.append([part])
        else:
            place.append(part)
    joined = [_joined(launch) for _, wave in sorted(waves.items()) for launch in wave]
    return replace(nest, body=n.Block(tuple(joined)))


@dataclass(frozen=True)
class _Part:
    """A grid and what decides with which ones it may be joined; buffers are those of the device's memory, by name."""

    grid: n.Grid
    read: frozenset[str]
    written: frozenset[str]
    shared: int  # bytes
    meets: bool
    plain: bool
    """Whether isl can count the blocks, and the device bears the meetings."""

    @staticmethod
    def of(grid: n.Grid, device: GpuMachine) -> _Part:
        inside = list(statements(grid.body))
        read = {load.buffer for part in inside for load in loads_of(part)}
        read |= {part.source for part in inside if isinstance(part, n.Copy | n.AsyncCopy)}
        written = {part.buffer for part in inside if isinstance(part, n.Store | n.Accumulate)}
        written |= {part.target for part in inside if isinstance(part, n.Copy | n.AsyncCopy)}
        meets = any(isinstance(part, MEETINGS) for part in inside)
        return _Part(
            grid,
            _seen(read),
            _seen(written),
            sum(_shared_bytes(part) for part in inside),
            meets,
            not grid.when and ix.is_affine(grid.blocks) and (device.divided_meetings or not meets),
        )

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.grid.threads[0] * self.grid.threads[1]

    def waits_for(self, earlier: _Part) -> bool:
        """Whether one of them writes what the other one touches."""
        return bool(earlier.written & (self.read | self.written) or self.written & earlier.read)

    def may_be_idle(self, shape: tuple[int, int], most_blocks: int | None) -> bool:
        """Whether it runs in blocks of another shape, of which the device holds so many at once; None: it is asked to."""
        blocks = self.grid.blocks
        few = most_blocks is None or (isinstance(blocks, n.Num) and blocks.value <= most_blocks)
        return self.grid.threads == shape or few

    def may_have_others(self, shape: tuple[int, int]) -> bool:
        """Whether threads beyond its own may do what one of its own does: read again, which what is updated does not bear."""
        return not (self.meets and self.read & self.written) or self.threads == shape[0] * shape[1]


def _seen(buffers: Iterable[n.Buffer]) -> frozenset[str]:
    return frozenset(buffer.name for buffer in buffers if buffer.space not in (n.Space.PRIVATE, n.Space.SHARED))


def _shared_bytes(part: n.Statement) -> int:
    if not isinstance(part, n.Alloc) or part.buffer.space is not n.Space.SHARED:
        return 0
    size = product(part.buffer.shape)
    return size * part.buffer.dtype.itemsize if isinstance(size, int) else JOINED_LIMIT + 1


def _shape(parts: Sequence[_Part]) -> tuple[int, int]:
    """The blocks of a launch of all parts: as those are, if they are alike, else rows of whole warps."""
    shapes = {part.grid.threads for part in parts}
    widest = max(part.threads for part in parts)
    return shapes.pop() if len(shapes) == 1 else (-(-widest // WARP) * WARP, 1)


def _fit(parts: Sequence[_Part], device: GpuMachine, asked: bool) -> bool:
    """Whether such grids may be one launch."""
    shape = _shape(parts)
    shared = sum(part.shared for part in parts)
    if asked and not _is_brief(parts, shape, device):
        return False
    few = None if asked else FEW * device.processors
    fits = shared <= (device.array_bytes if asked else device.joined_bytes)
    return fits and all(part.plain and part.may_be_idle(shape, few) and part.may_have_others(shape) for part in parts)


def _is_brief(parts: Sequence[_Part], shape: tuple[int, int], device: GpuMachine) -> bool:
    """Whether all blocks, with their idle threads, fill the device a few times only."""
    counts = [part.grid.blocks.value if isinstance(part.grid.blocks, n.Num) else None for part in parts]
    alike = all(part.grid.threads == shape for part in parts)
    known = [count for count in counts if count is not None]
    fitting = ROUNDS * device.processors * device.resident
    return alike or (len(known) == len(counts) and sum(known) * shape[0] * shape[1] <= fitting)


def _joined(parts: Sequence[_Part]) -> n.Grid:
    """One launch for all parts, each with blocks of its own."""
    if len(parts) == 1:
        return parts[0].grid
    shape = _shape(parts)
    start: n.Index = n.Num(0)
    found: list[n.Statement] = []
    for number, part in enumerate(parts):
        end = ix.add(start, part.grid.blocks)
        conditions = [n.Compare("<=", start, n.Var(n.BLOCK_INDEX))] if number else []
        conditions += [n.Compare("<", n.Var(n.BLOCK_INDEX), end)] if number < len(parts) - 1 else []
        grid = part.grid
        body = grid.body if grid.threads == shape else seated(grid, shape[0], part.meets)
        found.append(n.If(tuple(conditions), _with_block(body, start, f"{PART}{number}") if number else body))
        start = end
    return replace(parts[0].grid, blocks=start, threads=shape, body=n.Block(tuple(found)))


def _with_block(body: n.Block, start: n.Index, name: str) -> n.Block:
    """The body with the number of its block counted from the part's first one."""
    own = ix.subtract(n.Var(n.BLOCK_INDEX), start)
    known = isinstance(start, n.Num)  # else the printer does not see that the number is never below 0
    inner = substituted(body, {n.BLOCK_INDEX: n.Var(name)})
    return n.Block((n.Bind(name, own if known else ix.maximum(own, n.Num(0))), *inner.statements))
