"""Forms of nests: what a pass relies on in the nest that it is given, and promises of the one that it makes.

Stages name the forms they need and give (:mod:`kernelgen.stages`). A form is decided by looking at a nest, so that tests can
run the stages with every form checked; compiling checks none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kernelgen.nest.nodes import Accumulate, Alloc, Block, For, Grid, If, LoopKind, Nest, Space, Statement, Store
from kernelgen.nest.walk import statements


@dataclass(frozen=True)
class NestForm:
    """``holds`` says whether a nest has the form."""

    name: str
    holds: Callable[[Nest], bool]


def _is_uncut(nest: Nest) -> bool:
    return not any(isinstance(part, Grid) for part in statements(nest.body))


def _is_without_storage(nest: Nest) -> bool:
    return not any(isinstance(part, Alloc) for part in statements(nest.body))


def _is_initialized(nest: Nest) -> bool:
    stored = {part.buffer.name for part in statements(nest.body) if isinstance(part, Store)}
    sums = (part.buffer for part in statements(nest.body) if isinstance(part, Accumulate))
    return all(buffer.name in stored or buffer.space is Space.INOUT for buffer in sums)


def _is_cut(nest: Nest) -> bool:
    top = nest.body.statements
    return all(isinstance(part, Grid) for part in top) and _is_uncut_below(top)


def _is_uncut_below(grids: tuple[Statement, ...]) -> bool:
    inside = (part for grid in grids if isinstance(grid, Grid) for part in statements(grid.body))
    return not any(isinstance(part, Grid) for part in inside)


def _has_chains(nest: Nest) -> bool:
    grids = [part for part in nest.body.statements if isinstance(part, Grid)]
    return _is_regular(nest.body, ()) and all(_widest(grid) == grid.threads[0] for grid in grids)


def _widest(grid: Grid) -> int:
    loops = (part for part in statements(grid) if isinstance(part, For) and part.kind is LoopKind.THREAD)
    return max((loop.threads for loop in loops), default=1)


def _is_regular(block: Block, around: tuple[LoopKind | None, ...]) -> bool:
    """``around`` are the kinds of the loops around the block, None for a guard."""
    alone = len(block.statements) == 1
    for part in block.statements:
        if isinstance(part, For):
            if part.kind is LoopKind.BLOCK and around and not (alone and set(around) == {LoopKind.BLOCK}):
                return False
            if part.kind is LoopKind.THREAD in around and not (alone and around[-1] is LoopKind.THREAD):
                return False
        inner = (*around, part.kind if isinstance(part, For) else None)
        if isinstance(part, For | If | Grid) and not _is_regular(part.body, () if isinstance(part, Grid) else inner):
            return False
    return True


def _has_spaces(nest: Nest) -> bool:
    return not any(isinstance(part, Alloc) and part.buffer.space is Space.LOCAL for part in statements(nest.body))


def _is_dealt(nest: Nest) -> bool:
    loops = (part for part in statements(nest.body) if isinstance(part, For))
    return not any(loop.kind in (LoopKind.BLOCK, LoopKind.THREAD) for loop in loops)


UNCUT = NestForm("not cut into grids", _is_uncut)
WITHOUT_STORAGE = NestForm("temporaries are workspaces of full size", _is_without_storage)
INITIALIZED = NestForm("accumulators start from a stored value", _is_initialized)
GRIDS = NestForm("cut into grids", _is_cut)
CHAINS_JOINED = NestForm("thread loops in each other are one chain, as wide as the grid", _has_chains)
SPACES_DECIDED = NestForm("arrays of grids are private or shared", _has_spaces)
DISTRIBUTED = NestForm("grids are the program of one thread", _is_dealt)
