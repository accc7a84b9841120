"""Storage rewrite: tiles get addresses, and share memory where their lives do not meet.

    a, b, c of 64 KB, b dead before c is written          own memory: 192 KB, does not fit
                                                    ->    a at 0, b at 64 KB, c at 64 KB

A tile lives from the first statement that touches it to the last; where it is touched both in a loop and outside of it, to
the loop's end. Three levels are tried, as AKG's storage rewrite does: everybody alone; tiles that only the vector unit
touches share with each other; all share. Sharing between pipes costs flags and overlap, so it comes last. Tiles of
different parts of a kernel (:func:`parts_of`) always share: a barrier of all pipes is between them.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kernelgen.ascendc.instructions import Call, For, If, Statement
from kernelgen.targets.ascend.lower.program.bank_alignment import PERIOD, halves
from kernelgen.targets.ascend.lower.program.effects import uses_of
from kernelgen.targets.ascend.lower.program.writer import Program, Tile

ALONE, VECTOR_ONLY, ALL = LEVELS = ("alone", "vector only", "all")


@dataclass(frozen=True)
class Life:
    """First and last statement, by position, whether copies touch the tile, and the part it is in; None for several."""

    first: int
    last: int
    copied: bool
    part: int | None = None


@dataclass(frozen=True)
class Layout:
    """Tile -> byte address, the bytes that are used, and the level that was needed."""

    addresses: Mapping[str, int]
    size: int
    level: str


@dataclass
class _Walk:
    """Positions of statements, and the loops that are open."""

    position: int
    touches: dict[str, list[tuple[int, tuple[tuple[int, int], ...], bool]]]

    def block(self, body: Sequence[Statement], loops: tuple[int, ...], ends: dict[int, int]) -> None:
        for statement in body:
            self.position += 1
            match statement:
                case For(body=inner):
                    identity = self.position
                    self.block(inner, (*loops, identity), ends)
                    ends[identity] = self.position
                case If(then=then, otherwise=otherwise):
                    self.block(then, loops, ends)
                    self.block(otherwise, loops, ends)
                case _:
                    copied = isinstance(statement, Call) and statement.operation.startswith("DataCopy")
                    for use in uses_of(statement):
                        place = tuple((loop, 0) for loop in loops)
                        self.touches.setdefault(use.tensor, []).append((self.position, place, copied))


def lives(program: Program) -> dict[str, Life]:
    """The life of every tile, by name; aliases count for the tile whose memory they are."""
    walk, ends = _Walk(0, {}), dict[int, int]()
    walk.block(program.body, (), ends)
    found: dict[str, list[tuple[int, tuple[tuple[int, int], ...], bool]]] = {}
    bases = {tile.name: tile.alias or tile.name for tile in program.tiles}
    for name, touches in walk.touches.items():
        if name in bases:
            found.setdefault(bases[name], []).extend(touches)
    spans = part_spans(program.body)
    return {name: _in_part(_life(touches, ends), spans) for name, touches in found.items()}


def parts_of(body: Sequence[Statement]) -> tuple[tuple[tuple[Statement, ...], tuple[Statement, ...]], ...]:
    """(flags between cores, statements) of what a core runs one after the other; each loop or branch ends a part."""
    parts: list[tuple[tuple[Statement, ...], tuple[Statement, ...]]] = []
    meeting: list[Statement] = []
    inside: list[Statement] = []
    for statement in body:
        crosses = isinstance(statement, Call) and statement.operation.startswith("CrossCore")
        (meeting if crosses else inside).append(statement)
        if isinstance(statement, For | If):
            parts.append((tuple(meeting), tuple(inside)))
            meeting, inside = [], []
    return (*parts, (tuple(meeting), tuple(inside))) if meeting or inside else tuple(parts)


def part_spans(body: Sequence[Statement]) -> tuple[tuple[int, int], ...]:
    """First and last position of every part."""
    spans: list[tuple[int, int]] = []
    position = 0
    for meeting, inside in parts_of(body):
        length = sum(_count(statement) for statement in (*meeting, *inside))
        spans.append((position + 1, position + length))
        position += length
    return tuple(spans)


def _count(statement: Statement) -> int:
    match statement:
        case For(body=inner):
            return 1 + sum(map(_count, inner))
        case If(then=then, otherwise=otherwise):
            return 1 + sum(map(_count, (*then, *otherwise)))
        case _:
            return 1


def _in_part(life: Life, spans: Sequence[tuple[int, int]]) -> Life:
    inside = [k for k, (low, high) in enumerate(spans) if low <= life.first and life.last <= high]
    return replace(life, part=inside[0]) if inside else life


def _life(touches: Sequence[tuple[int, tuple[tuple[int, int], ...], bool]], ends: Mapping[int, int]) -> Life:
    common = set(touches[0][1])
    for _, loops, _ in touches:
        common &= set(loops)
    first = min(_outer(position, loops, common, 0, ends) for position, loops, _ in touches)
    last = max(_outer(position, loops, common, 1, ends) for position, loops, _ in touches)
    return Life(first, last, any(copied for _, _, copied in touches))


def _outer(
    position: int, loops: tuple[tuple[int, int], ...], common: set[tuple[int, int]], side: int, ends: Mapping[int, int]
) -> int:
    """The start (0) or end (1) of the outermost loop around a touch that is not around all of them."""
    for loop in loops:
        if loop not in common:
            return ends[loop[0]] if side else loop[0]
    return position


def place(program: Program, capacity: int, levels: Sequence[str] = LEVELS) -> Layout | None:
    """Addresses of the tiles of a ``program`` in ``capacity`` bytes, by the first of ``levels`` that fits; None where
    none does.
    """
    known = lives(program)
    tiles = [tile for tile in program.tiles if not tile.alias and tile.name in known]
    wanted = halves(program)
    for level in levels:
        for begins in (wanted, {}) if _least(tiles, known, level) <= capacity else ():
            layout = _placed(tiles, known, level, begins)
            if layout.size <= capacity:
                return layout
    return None


def _least(tiles: Sequence[Tile], known: Mapping[str, Life], level: str) -> int:
    """What the tiles that share with nobody of their part need."""
    needs: dict[int | None, int] = {}
    for tile in tiles:
        life = known[tile.name]
        if level == ALONE or (level == VECTOR_ONLY and life.copied):
            needs[life.part] = needs.get(life.part, 0) + tile.size * tile.copies
    return needs.pop(None, 0) + max(needs.values(), default=0)


def _placed(tiles: Sequence[Tile], known: Mapping[str, Life], level: str, begins: Mapping[str, int]) -> Layout:
    """First fit, the largest first; ``begins`` says where in the banks a tile should begin (:mod:`banks`)."""
    sizes = {tile.name: tile.size * tile.copies for tile in tiles}
    taken: list[tuple[int, int, Life]] = []
    addresses: dict[str, int] = {}
    for tile in sorted(tiles, key=lambda one: (-sizes[one.name], known[one.name].first, one.name)):
        life, size = known[tile.name], sizes[tile.name]
        address = _gap(taken, life, level, size, begins.get(tile.name))
        insort(taken, (address, address + size, life), key=lambda place: place[:2])
        addresses[tile.name] = address
    return Layout(addresses, max((end for _, end, _ in taken), default=0), level)


def _meet(first: Life, second: Life, level: str) -> bool:
    """Whether two tiles must not share memory."""
    if first.part is not None and second.part is not None and first.part != second.part:
        return False
    if level == ALONE or (level == VECTOR_ONLY and (first.copied or second.copied)):
        return True
    return first.first <= second.last and second.first <= first.last


def _gap(taken: Sequence[tuple[int, int, Life]], life: Life, level: str, size: int, begin: int | None) -> int:
    """The lowest address with so many free bytes behind it, in its place of the banks where one is given."""
    start = _next(0, begin)
    for low, high, other in taken:
        if low - start >= size:
            break  # all others begin behind this one
        if high > start and _meet(life, other, level):
            start = _next(high, begin)
    return start


def _next(address: int, begin: int | None) -> int:
    """The first address from there on that is at its place of the banks."""
    return address if begin is None else address + (begin - address) % PERIOD
