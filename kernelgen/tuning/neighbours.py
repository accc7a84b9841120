"""Plans that differ from one in a single choice: what a search may try next.

Near ones change how the marked loops of the same nest are printed, or a size that the mapping starts from, so that all that
follows from it changes with it. Far ones change the loops of one band and leave the others as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from kernelgen.nest.marks import PARALLEL, UNMARKED, Mark, thread
from kernelgen.nest.nodes import LoopKind
from kernelgen.plan import (
    BandPlan,
    CodePlan,
    CpuPlan,
    LoopPlan,
    MatrixChoice,
    PiecePlan,
    Plan,
    TileChoice,
    VectorChoice,
)

LEAST_THREADS, MOST_THREADS = 4, 1024

Neighbours = Iterator[tuple[str, Plan]]
"""Plans, each with what was changed in words."""


def neighbours(plan: Plan) -> Neighbours:
    """All neighbours of a ``plan``."""
    yield from near(plan)
    yield from far(plan)


def near(plan: Plan) -> Neighbours:
    """Neighbours of a ``plan`` with the same loops, and those of other sizes, from which all loops are chosen anew."""
    yield from _thread_neighbours(plan)
    for change, code in _code_neighbours(plan.code or CodePlan()):
        yield change, replace(plan, code=code)
    if plan.code is not None:  # a target that chooses how loops are printed starts from these sizes
        for change, cpu in _size_neighbours(plan.cpu):
            yield change, replace(plan, cpu=cpu, bands=None, code=None)


def far(plan: Plan) -> Neighbours:
    """Neighbours of a ``plan`` whose loops differ in one band. How they are printed is chosen anew."""
    for number, band in enumerate(plan.bands or ()):
        for change, other in _band_neighbours(band):
            bands = _put(plan.bands or (), number, other)
            yield f"band {number}: {change}", replace(plan, bands=bands, code=None)


def _size_neighbours(sizes: CpuPlan) -> Iterator[tuple[str, CpuPlan]]:
    """Twice and half of each size; of what the processor has only less than there is."""
    for field in fields(sizes):
        value = getattr(sizes, field.name)
        for other in _others(value) if isinstance(value, int | tuple) else ():
            yield f"{field.name} {other} in place of {value}", replace(sizes, **{field.name: other})
    for name in ("registers", "lanes"):
        other = getattr(sizes.unit, name) // 2
        yield f"{name} {other}", replace(sizes, unit=replace(sizes.unit, **{name: other}))


def _others(value: Any) -> Iterator[Any]:
    """Of a number, or of a tuple of numbers each."""
    if isinstance(value, tuple):
        yield from (_put(value, k, other) for k in range(len(value)) for other in _others(value[k]))
    else:
        yield from (other for other in (value * 2, value // 2) if other > 0)


def _thread_neighbours(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Twice and half the threads that share a row, in all bands that share them."""
    marks = (loop.mark for band in plan.bands or () for piece in band.pieces for loop in piece.loops)
    for mark in dict.fromkeys(mark for mark in marks if mark.kind is LoopKind.THREAD):
        threads = mark.width
        for other in (threads * 2, threads // 2):
            if LEAST_THREADS <= other <= MOST_THREADS:
                bands = tuple(_remarked(band, mark, thread(other)) for band in plan.bands or ())
                yield f"{other} threads in place of {threads}", replace(plan, bands=bands, code=None)


def _remarked(band: BandPlan, mark: Mark, other: Mark) -> BandPlan:
    pieces = [
        replace(piece, loops=tuple(replace(o, mark=other) if o.mark == mark else o for o in piece.loops))
        for piece in band.pieces
    ]
    return replace(band, pieces=tuple(pieces), why=f"{other.width} threads, as tuned")


def _band_neighbours(band: BandPlan) -> Iterator[tuple[str, BandPlan]]:
    tiles = [(loop.member, loop.tile) for piece in band.pieces for loop in piece.loops if loop.tile is not None]
    for member, size in dict.fromkeys(tiles):
        for other in (size * 2, size // 2):
            if other > 0:
                yield f"{band.members[member]} by {other} in place of {size}", _resized(band, member, size, other)
    for number, piece in enumerate(band.pieces):
        for change, loops in _loop_neighbours(piece.loops, band.members):
            yield (
                f"piece {number}: {change}",
                replace(band, pieces=_put(band.pieces, number, replace(piece, loops=loops))),
            )


def _resized(band: BandPlan, member: int, size: int, other: int) -> BandPlan:
    """Tiles of another size, and whole tiles with them."""

    def resized(piece: PiecePlan) -> PiecePlan:
        loops = [replace(o, tile=other) if (o.member, o.tile) == (member, size) else o for o in piece.loops]
        whole = [replace(o, size=other) if (o.member, o.size) == (member, size) else o for o in piece.whole]
        return PiecePlan(tuple(loops), tuple(whole))

    return replace(band, pieces=tuple(map(resized, band.pieces)))


def _loop_neighbours(loops: tuple[LoopPlan, ...], names: tuple[str, ...]) -> Iterator[tuple[str, tuple[LoopPlan, ...]]]:
    for k in range(len(loops) - 1):
        swapped = (*loops[:k], loops[k + 1], loops[k], *loops[k + 2 :])
        yield f"{names[loops[k + 1].member]} around {names[loops[k].member]}", swapped
    for k, loop in enumerate(loops):
        if loop.mark == PARALLEL:
            yield "one thread", _put(loops, k, replace(loop, mark=UNMARKED))
            for other in range(len(loops)):
                if loops[other].mark == UNMARKED and not loops[other].unroll:
                    moved = _put(
                        _put(loops, k, replace(loop, mark=UNMARKED)), other, replace(loops[other], mark=PARALLEL)
                    )
                    yield f"{names[loops[other].member]} parallel", moved


def _code_neighbours(code: CodePlan) -> Iterator[tuple[str, CodePlan]]:
    for k, vector in enumerate(code.vectors):
        for each in _vector_neighbours(vector):
            yield (
                f"vector {k}: lanes {each.lanes}, copies {each.copies}",
                replace(code, vectors=_put(code.vectors, k, each)),
            )
    for k, tile in enumerate(code.tiles):
        if tile.size > 1:
            yield f"interleave {k}: no squares", replace(code, tiles=_put(code.tiles, k, TileChoice(1)))
    for k, parallel in enumerate(code.parallels):
        turned = replace(parallel, threads=not parallel.threads)
        change = "threads" if turned.threads else "one thread"
        yield f"parallel {k}: {change}", replace(code, parallels=_put(code.parallels, k, turned))
    for k, matrix in enumerate(code.matrices):
        if matrix.registers:
            yield f"rows {k}: row by row", replace(code, matrices=_put(code.matrices, k, MatrixChoice(False)))
    if code.streamed is not None:
        yield f"{code.streamed} through the caches", replace(code, streamed=None)


def _vector_neighbours(vector: VectorChoice) -> Iterator[VectorChoice]:
    if vector.lanes == 1:
        return
    for lanes, copies in ((1, 2), (1, 0.5), (0.5, 1), (2, 1)):
        other = int(vector.lanes * lanes), int(vector.copies * copies)
        if 2 <= other[0] <= 32 and 1 <= other[1] <= 8:
            yield replace(vector, lanes=other[0], copies=other[1])


def _put(items: tuple[Any, ...], position: int, item: Any) -> tuple[Any, ...]:
    return (*items[:position], item, *items[position + 1 :])
