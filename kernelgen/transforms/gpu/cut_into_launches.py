"""Cuts the top level of a nest into grids: what one launch runs.

    block i: A                    grid k0 { block i: A }
    s = 0                 ->      grid k1 { s = 0; thread j: s += x[j] }
    thread j: s += x[j]           grid k2 { block i: B }
    block i: B

A loop over blocks is a grid of its own; what stands between two of them runs in one block of threads. The order between
grids is kept by the device.

Later, when bindings have moved out of loops: those between thread loops that are directly inside each other move into the
inner one, so that the two are one loop over all their iterations; a thread loop that is not directly inside another one,
but in it, is serial, as are loops over blocks that others surround.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernelgen.nest.nodes import Block, For, Grid, If, Let, LoopKind, Nest, Num, Statement
from kernelgen.nest.walk import statements
from kernelgen.system.identifiers import identifier
from kernelgen.transforms.gpu.thread_ownership import is_rectangle, is_thread_loop


def to_grids(nest: Nest) -> Nest:
    """The nest with grids at its top level."""
    groups: list[list[Statement]] = []
    for part in nest.body.statements:
        is_alone = isinstance(part, For) and part.kind is LoopKind.BLOCK
        if is_alone or not groups or _is_launch(groups[-1]):
            groups.append([part])
        else:
            groups[-1].append(part)
    name = identifier(nest.name)
    grids = [Grid(f"{name}_{number}", Num(1), (1, 1), Block(tuple(group))) for number, group in enumerate(groups)]
    return replace(nest, body=Block(tuple(grids)))


def chains(nest: Nest) -> Nest:
    """The nest, cut into grids, with regular loops; a grid's threads are those of its widest thread loop."""
    grids = [_regular_grid(s) if isinstance(s, Grid) else s for s in nest.body.statements]
    return replace(nest, body=Block(tuple(grids)))


def _is_launch(group: Sequence[Statement]) -> bool:
    return isinstance(group[0], For) and group[0].kind is LoopKind.BLOCK


def _regular_grid(grid: Grid) -> Grid:
    body = Block(tuple(_below_blocks(part) for part in grid.body.statements))
    widths = [s.threads for s in statements(body) if is_thread_loop(s)]
    return replace(grid, threads=(max(widths, default=1), 1), body=body)


def _below_blocks(part: Statement) -> Statement:
    """The loops over blocks that are directly inside each other stay; below them there are none."""
    inner = part.body.statements if isinstance(part, For) and part.kind is LoopKind.BLOCK else ()
    if isinstance(part, For) and len(inner) == 1 and _is_launch(inner):
        return replace(part, body=Block((_below_blocks(inner[0]),)))
    if isinstance(part, For) and part.kind is LoopKind.BLOCK:
        return replace(part, body=_regular(part.body))
    return _regular_part(part)


def _regular(block: Block) -> Block:
    return Block(tuple(map(_regular_part, block.statements)))


def _regular_part(part: Statement) -> Statement:
    if is_thread_loop(part):
        return _chained(part)
    if isinstance(part, For) and part.kind is LoopKind.BLOCK:
        return replace(part, kind=LoopKind.SERIAL, body=_regular(part.body))
    return replace(part, body=_regular(part.body)) if isinstance(part, For | If) else part


def _chained(loop: For, around: frozenset[str] = frozenset()) -> For:
    """A thread loop with the thread loop that it holds beside bindings directly inside; all others are serial."""
    outer = around | {loop.var}
    *before, last = loop.body.statements
    if is_thread_loop(last) and is_rectangle(last, outer) and all(isinstance(s, Let) for s in before):
        return replace(
            loop, body=Block((_chained(replace(last, body=Block((*before, *last.body.statements))), outer),))
        )
    return replace(loop, body=_serial(loop.body))


def _serial(block: Block) -> Block:
    """The block without thread loops."""
    parts: list[Statement] = []
    for part in block.statements:
        if isinstance(part, For):
            kind = LoopKind.SERIAL if part.kind in (LoopKind.THREAD, LoopKind.BLOCK) else part.kind
            parts.append(replace(part, kind=kind, threads=1, body=_serial(part.body)))
        else:
            parts.append(replace(part, body=_serial(part.body)) if isinstance(part, If) else part)
    return Block(tuple(parts))
