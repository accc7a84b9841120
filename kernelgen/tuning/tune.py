"""Looks for a faster plan of one kernel by measuring neighbours of its plan: hill climbing, one choice at a time.

    found = tune(kernel, inputs)                          measures; nothing else in this package ever does
    found = tune(kernel, (), compare=by_model("H200"))    without a device: what the GPU's model says of both
    found.kernel, found.kernel.plan.to_json()             the fastest that was seen

A neighbour differs in one tile, loop order, parallel loop, number of lanes or copies, square, or in threads. What the
proofs or the printer refuse is left out; the others are tried in the order of the cost model. Times are compared in turns,
so that what else the machine does hits both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from kernelgen import options
from kernelgen.driver import compile
from kernelgen.errors import ArgumentError, KernelgenError, UnsupportedError
from kernelgen.kernel import Kernel
from kernelgen.nest.marks import PARALLEL, UNMARKED, Mark, thread
from kernelgen.nest.nodes import LoopKind
from kernelgen.plan import BandPlan, CodePlan, LoopPlan, PiecePlan, Plan, TileChoice, VectorChoice
from kernelgen.tuning.comparison import compared
from kernelgen.tuning.cost_order import estimated

GAIN = 0.05
"""A neighbour must be faster by this part to be taken: less is within what timings vary."""

LEAST_SECONDS = 1e-9
LEAST_THREADS, MOST_THREADS = 4, 1024

TURNS = 9

Compare = Callable[[Kernel, Kernel], float]
"""The time of the second kernel as a multiple of the first one's."""


@dataclass(frozen=True)
class Trial:
    """One neighbour: what was changed, and its time as a multiple of the best one's; None where it was refused."""

    change: str
    ratio: float | None


@dataclass(frozen=True)
class Tuned:
    """The fastest kernel that was seen, and all that was tried."""

    kernel: Kernel
    trials: tuple[Trial, ...]


def tune(kernel: Kernel, inputs: Sequence[Any], most: int = 100, compare: Compare | None = None) -> Tuned:
    """Climbs from the kernel's own plan until no neighbour is faster, or ``most`` were measured. Inputs are not changed."""
    compare = compare or interleaved(inputs)
    trials: list[Trial] = []
    seen = {kernel.source}
    found: Kernel | None = kernel
    best = kernel
    while found is not None:
        best, found = found, _better(found, most, compare, trials, seen)
    return Tuned(best, tuple(trials))


def _better(best: Kernel, most: int, compare: Compare, trials: list[Trial], seen: set[str]) -> Kernel | None:
    """The first neighbour that is faster twice; what is tried is added to ``trials`` and ``seen``."""
    for change, neighbour in _candidates(best, trials, seen):
        if sum(trial.ratio is not None for trial in trials) >= most:
            return None
        seen.add(neighbour.source)
        ratio = compare(best, neighbour)
        ratio = max(ratio, compare(best, neighbour)) if ratio < 1 - GAIN else ratio
        trials.append(Trial(change, ratio))
        if ratio < 1 - GAIN:
            return neighbour
    return None


def _candidates(best: Kernel, trials: list[Trial], seen: set[str]) -> list[tuple[str, Kernel]]:
    """Neighbours that nobody has measured, those first that the cost model thinks fastest; refused ones become trials."""
    found: dict[str, tuple[str, Kernel]] = {}
    for change, plan in neighbours(best.plan):
        neighbour = _compiled(best, plan)
        if neighbour is None:
            trials.append(Trial(change, None))
        elif neighbour.source not in seen:
            found.setdefault(neighbour.source, (change, neighbour))
    cores = options.thread_count()
    return sorted(found.values(), key=lambda each: estimated(each[1], cores))


def _compiled(kernel: Kernel, plan: Plan) -> Kernel | None:
    try:
        return compile(kernel.desc, kernel.target, plan, kernel.constants)
    except KernelgenError:
        return None


def interleaved(inputs: Sequence[Any]) -> Compare:
    """Compares two kernels on copies of these inputs, turn by turn; the median of the ratios."""
    arrays = [np.array(array) for array in inputs]
    return lambda first, second: compared(first, second, arrays, TURNS, 1 - GAIN).median


def by_model(machine: str, **sizes: int) -> Compare:
    """Compares the estimates of two kernels for a GPU; a kernel that the model cannot count takes for ever.

    ``sizes`` are those of the symbols. Nothing is measured: see :mod:`kernelgen.targets.gpu.launch.time_model`.
    """

    def seconds(kernel: Kernel) -> float:
        try:
            found = kernel.estimate(machine, **sizes)
        except UnsupportedError:
            return inf
        if found is None:
            raise ArgumentError(f"kernels for {kernel.target} have no estimate")
        return found.seconds

    return lambda first, second: seconds(second) / max(seconds(first), LEAST_SECONDS)


def neighbours(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Plans that differ in one choice, with the change in words. Where loops change, their printing is chosen anew."""
    yield from _thread_neighbours(plan)
    for number, band in enumerate(plan.bands or ()):
        for change, other in _band_neighbours(band):
            bands = _put(plan.bands or (), number, other)
            yield f"band {number}: {change}", replace(plan, bands=bands, code=None)
    for change, code in _code_neighbours(plan.code or CodePlan()):
        yield change, replace(plan, code=code)


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
