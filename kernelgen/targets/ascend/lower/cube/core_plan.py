"""Which part of a nest runs on which cores, and where cores wait for each other.

    part 0: x16 = cast(x)             vector    all vector cores meet, each pair of them releases its cube core
    part 1: t = x16 @ w               cube      all cube cores meet, each releases its vector cores
    part 2: y = gelu(t + bias)        vector

Products that :mod:`product` recognises run on cube cores, everything else on vector cores; a kernel with both is a MIX
kernel, whose blocks are a cube core with two vector cores. Cores of one kind wait for those of a kind (their own or the
other) where one part writes what a later one touches, or reads what it writes. CrossCoreSetFlag mode 0 lets all cores of
a kind meet, mode 2 counts for the other kind of a block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelgen.ascendc.expressions import BLOCK_COUNT, Expression
from kernelgen.ascendc.instructions import AIC_ONLY, AIV_ONLY, MIX
from kernelgen.ascendc.types import FIX, MTE3
from kernelgen.machines.ascend.description import Machine
from kernelgen.nest.nodes import Block, For, LoopKind, Nest, Statement
from kernelgen.nest.walk import accesses_of, statements, stored_buffers
from kernelgen.targets.ascend.lower.cube.fixpipe_epilogue import finished
from kernelgen.targets.ascend.lower.cube.part_bindings import with_own_bindings
from kernelgen.targets.ascend.lower.cube.product import Product, product_of
from kernelgen.targets.ascend.lower.cube.tile_sizes import choose
from kernelgen.targets.ascend.lower.cube.vector_epilogue import follower
from kernelgen.targets.ascend.lower.program.writer import Writer

VECTOR, CUBE = "vector", "cube"
LAST_PIPE: Mapping[str, str] = {VECTOR: MTE3, CUBE: FIX}
"""Kind of core -> the pipe that writes GM."""
RELEASES = 2
"""Ids of flags between kinds begin here: two for each kind that waits, below them two for meetings of one kind."""
HANDSHAKES, MOST_HANDSHAKES = 6, 5
"""First id of the flags for tiles, and how many there are."""
FRACTAL_MACHINES = (2201,)
"""Architectures whose L0A, L0B and Fixpipe are those of :mod:`program`."""


@dataclass(frozen=True)
class Meeting:
    """Cores of kind ``waiter`` go on when all of kind ``setter`` are there; ``number`` counts meetings of that pair."""

    setter: str
    waiter: str
    number: int


@dataclass(frozen=True)
class Part:
    """A part of a nest: a product for cube cores, or a block of statements for vector cores; first the cores meet.

    ``handshake`` is the id of the flag that a product sets for every tile, and that the part behind it waits for.
    """

    block: Block
    product: Product | None
    meetings: tuple[Meeting, ...] = ()
    handshake: int | None = None

    @property
    def kind(self) -> str:
        """The cores that run it."""
        return VECTOR if self.product is None else CUBE


@dataclass(frozen=True)
class Plan:
    """The parts of a nest in order."""

    parts: tuple[Part, ...]

    @property
    def kind(self) -> str:
        """The type of the kernel."""
        kinds = {part.kind for part in self.parts}
        return AIV_ONLY if CUBE not in kinds else MIX if VECTOR in kinds else AIC_ONLY

    @property
    def products(self) -> tuple[Product, ...]:
        """What the cube cores do."""
        return tuple(part.product for part in self.parts if part.product is not None)


def vector_cores(plan: Plan) -> Expression:
    """The number of vector cores of a launch."""
    return BLOCK_COUNT * 2 if plan.kind == MIX else BLOCK_COUNT


def plan_of(nest: Nest, machine: Machine) -> Plan:
    """The parts of a nest for a machine; without products where its cube unit is another one."""
    blocks = with_own_bindings(grouped(nest.body))
    found: list[Part] = []
    while blocks:
        block = blocks.pop(0)
        product = product_of(block) if machine.architecture in FRACTAL_MACHINES else None
        if product is not None and blocks:
            whole = finished(product, blocks[0], [*(one.block for one in found), *blocks[1:]])
            if whole is not None:
                product = whole
                block = Block((*block.statements, *blocks.pop(0).statements))
        found.append(Part(block, product))
    names = frozenset(buffer.name for buffer in nest.buffers)
    return Plan(_with_meetings(_with_handshakes(found, machine), names))


def _with_handshakes(parts: Sequence[Part], machine: Machine) -> list[Part]:
    """The parts, with vector work in the order of tiles where it follows a product element by element."""
    found: list[Part] = []
    for part in parts:
        before = found[-1] if found else None
        product = before.product if before is not None else None
        block = None
        if before is not None and product is not None and part.product is None:
            block = follower(product, choose(product, machine), machine.cube_cores, part.block)
        if before is None or block is None:
            found.append(part)
            continue
        identity = HANDSHAKES + sum(one.product is not None for one in found) % MOST_HANDSHAKES
        found[-1] = replace(before, handshake=identity)
        found.append(replace(part, block=block, handshake=identity))
    return found


def grouped(body: Block) -> tuple[Block, ...]:
    """Loops that are dealt to the cores, each alone, and what is between them."""
    parts: list[list[Statement]] = []
    open_part = False
    for part in body.statements:
        dealt = isinstance(part, For) and part.kind is LoopKind.BLOCK
        if dealt or not open_part:
            parts.append([])
        parts[-1].append(part)
        open_part = not dealt
    return tuple(Block(tuple(part)) for part in parts)


@dataclass
class _Pending:
    """What a kind of cores touched since another kind knows that it is over."""

    written: set[str] = field(default_factory=set[str])
    read: set[str] = field(default_factory=set[str])


def _with_meetings(parts: Sequence[Part], shared: frozenset[str]) -> tuple[Part, ...]:
    """The parts with meetings where one of them touches what another wrote, or writes what another read."""
    pending = {(a, b): _Pending() for a in (VECTOR, CUBE) for b in (VECTOR, CUBE)}
    counts = dict.fromkeys(pending, 0)
    found: list[Part] = []
    for part in parts:
        kind = part.kind
        loads, stores = _touched(part.block, part.product, shared)
        waited = found[-1].product if part.handshake is not None and part.product is None else None
        handed = set[str]() if waited is None else {waited.result.name}
        meetings: list[Meeting] = []
        for setter in (VECTOR, CUBE):
            before = pending[setter, kind]
            apart = setter != kind and before.written & stores
            if (before.written & loads - (handed if setter == CUBE else set())) or (before.read & stores) or apart:
                meetings.append(Meeting(setter, kind, counts[setter, kind]))
                counts[setter, kind] += 1
                pending[setter, kind] = _Pending()
        for waiter in (VECTOR, CUBE):
            pending[kind, waiter].written |= stores
            pending[kind, waiter].read |= loads
        found.append(replace(part, meetings=tuple(meetings)))
    return tuple(found)


def _touched(block: Block, product: Product | None, shared: frozenset[str]) -> tuple[set[str], set[str]]:
    """The shared buffers that a part loads and those that it stores."""
    if product is not None:
        return {product.left.buffer.name, product.right.buffer.name}, {product.result.name}
    stores = {name for name in stored_buffers(block) if name in shared}
    return {b.name for s in statements(block) for b, _ in accesses_of(s) if b.name in shared}, stores


def meet(writer: Writer, meeting: Meeting, side: str) -> None:
    """The flags of a meeting that one kind of cores sets and waits for."""
    same = meeting.setter == meeting.waiter
    release = RELEASES + (2 if meeting.waiter == CUBE else 0) + meeting.number % 2
    if side == meeting.setter:
        identity = meeting.number % 2
        pipe = f"PIPE_{LAST_PIPE[side]}"
        writer.emit("CrossCoreSetFlag", ("0", pipe), id=identity)
        writer.emit("CrossCoreWaitFlag", id=identity)
        if not same:
            writer.emit("CrossCoreSetFlag", ("2", pipe), id=release)
    elif side == meeting.waiter:
        writer.emit("CrossCoreWaitFlag", id=release)
