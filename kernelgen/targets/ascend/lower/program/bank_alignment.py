"""Alignment: what one instruction reads together begins in different halves of the banks.

    x at 0, y at 32768: both in bank group 0                 x at 0, y at 33024
    Add(z, x, y, 8192)    a repeat reads 16 blocks   ->      Add(z, x, y, 8192)    16 blocks of 16 groups: 1 cycle
                          of 8 groups: 2 cycles

The unified buffer has 16 groups of banks, block b of 32 bytes lies in group b modulo 16, and a group delivers one block a
cycle. A repeat of two sources reads 8 blocks of each, so that tiles which begin 256 bytes apart modulo 512 share no group
(measured: spec/gpu-ascend.md 4, rows 3 and 4 of the additions). Tiles are given one of two halves, in the order of
their use, each the one that separates it from most of those that it was read with before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kernelgen.ascendc.instructions import Call, For, If, Statement, TensorRef
from kernelgen.ascendc.intrinsics import READ, VECTOR_GROUPS, form_of
from kernelgen.ascendc.types import BLOCK
from kernelgen.targets.ascend.lower.program.writer import Program

PERIOD = 16 * BLOCK
"""Bytes from a bank group to the same one again."""
HALF_PERIOD = PERIOD // 2


def halves(program: Program) -> Mapping[str, int]:
    """Tile -> the byte modulo :data:`PERIOD` where it should begin; tiles of less than a period have none."""
    bases = {tile.name: tile.alias or tile.name for tile in program.tiles}
    sizes = {tile.name: tile.size for tile in program.tiles}
    near: dict[str, list[str]] = {}
    for names in _together(program.body):
        tiles = list(dict.fromkeys(bases[name] for name in names if name in bases and sizes[bases[name]] >= PERIOD))
        for tile in tiles:
            near.setdefault(tile, []).extend(other for other in tiles if other != tile)
    found: dict[str, int] = {}
    for tile, others in near.items():
        low = sum(1 for other in others if found.get(other) == 0)
        high = sum(1 for other in others if found.get(other) == HALF_PERIOD)
        found[tile] = HALF_PERIOD if low > high else 0
    return found


def _together(body: Sequence[Statement]) -> Iterator[tuple[str, ...]]:
    """The tensors that each vector instruction reads."""
    for statement in body:
        match statement:
            case For(body=inner):
                yield from _together(inner)
            case If(then=then, otherwise=otherwise):
                yield from _together((*then, *otherwise))
            case Call():
                form = form_of(statement)
                if form.group in VECTOR_GROUPS:
                    pairs = zip(form.slots, statement.arguments, strict=True)
                    yield tuple(a.tensor for slot, a in pairs if isinstance(a, TensorRef) and slot.role == READ)
            case _:
                pass
