"""Places barriers between accesses of one buffer by different threads of a block, no more than needed.

    thread j: e[j] = exp(x[j])               thread j: e[j] = exp(x[j])
    thread j: y[j] = e[N - 1 - j]     ->     sync
                                             thread j: y[j] = e[N - 1 - j]

Two accesses conflict when one of them writes, unless both are by one and the same thread: each of the elements that a
chain of thread loops owns is touched by one thread, and what stands outside of thread loops is stored by the first one.
Flow, anti and output dependences all count; the body of a serial loop is looked at twice, for what meets its own past.
Iterations of a thread loop are independent, so that nothing inside needs a barrier; other blocks touch other elements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeGuard

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.walk import loads_of, statements
from kernelgen.transforms.gpu.assign_memory_spaces import Touch, touches
from kernelgen.transforms.gpu.thread_ownership import is_thread_loop

ONE, ALL, ANY = "the first thread", "all threads", "some thread"


@dataclass(frozen=True)
class Use:
    """That a buffer is touched, by whom: the threads that own its elements by a deal, ONE, ALL, or ANY."""

    buffer: str
    writes: bool
    who: object


def barriers(nest: n.Nest) -> n.Nest:
    """The nest, cut into grids, with the barriers that its blocks need."""
    grids = [
        replace(s, body=_synchronised(s.body, frozenset())[0]) if isinstance(s, n.Grid) and s.threads[0] > 1 else s
        for s in nest.body.statements
    ]
    return replace(nest, body=n.Block(tuple(grids)))


Pending = frozenset[Use]


def _synchronised(block: n.Block, pending: Pending) -> tuple[n.Block, Pending]:
    parts: list[n.Statement] = []
    for part in block.statements:
        if _is_passage(part):
            body, pending = _synchronised(part.body, pending)
            if isinstance(part, n.For) and part.kind is not n.LoopKind.BLOCK:
                body, pending = _synchronised(body, pending)
            parts.append(replace(part, body=body))
            continue
        uses = _uses(part)
        if isinstance(part, n.Sync) or _conflict(pending, uses):
            pending = frozenset[Use]()
            parts += [] if isinstance(part, n.Sync) else [n.Sync()]
        pending |= uses
        parts.append(part)
    return n.Block(tuple(parts)), pending


def _is_passage(part: n.Statement) -> TypeGuard[n.For | n.If]:
    """Whether all threads of a block go through its body together."""
    if isinstance(part, n.If):
        return not names_a_thread(part.conditions)
    return isinstance(part, n.For) and not is_thread_loop(part)


def names_a_thread(conditions: tuple[n.Compare, ...]) -> bool:
    """Whether threads of a block may differ in what they find."""
    names = frozenset(name for c in conditions for side in (c.left, c.right) for name in ix.variables(side))
    return bool(names & frozenset(n.THREAD_INDICES))


def _conflict(pending: Pending, uses: Pending) -> bool:
    return any(
        a.buffer == b.buffer and (a.writes or b.writes) and (a.who != b.who or a.who in (ANY, ALL))
        for a in pending
        for b in uses
    )


def _uses(part: n.Statement) -> Pending:
    """What a statement touches of that which threads share."""
    if is_thread_loop(part):
        return frozenset(
            Use(touch.buffer.name, touch.writes, _owner(touch))
            for touch in touches(part)
            if touch.buffer.space is not n.Space.PRIVATE
        )
    if isinstance(part, n.If):
        found = frozenset(use for inner in statements(part.body) for use in _uses(inner) if inner is not part.body)
        return frozenset(replace(use, who=ANY) for use in found)
    stores = isinstance(part, n.Store | n.Accumulate) and part.buffer.space is not n.Space.PRIVATE
    reader = ONE if stores else ALL
    found = {
        Use(load.buffer.name, False, reader) for load in loads_of(part) if load.buffer.space is not n.Space.PRIVATE
    }
    if stores and isinstance(part, n.Store | n.Accumulate):
        found.add(Use(part.buffer.name, True, ONE))
    return frozenset(found)


def _owner(touch: Touch) -> object:
    """The deal by which each element that the access reaches belongs to one thread, or ANY."""
    dims = touch.chain.owned_dims(touch.index) if touch.chain is not None else None
    return ANY if touch.chain is None or dims is None else (touch.chain.deal, dims)
