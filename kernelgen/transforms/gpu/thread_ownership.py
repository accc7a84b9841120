"""Which thread touches which element: nested thread loops as one loop, and the arrays that are split among threads.

A chain of thread loops ``thread i in 0..I { thread j in 0..J`` deals iteration ``f = i * J + j`` to thread ``f mod T``.
Two chains with the same extents and width deal alike, so an array that is addressed by the variables of such chains
alone is split among the threads: each element is touched by one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Block, For, Index, LoopKind, Num, Statement, Var


@dataclass(frozen=True)
class Chain:
    """Thread loops directly inside each other, outermost first."""

    loops: tuple[For, ...]

    @property
    def body(self) -> Block:
        """What the innermost loop holds."""
        return self.loops[-1].body

    @property
    def threads(self) -> int:
        """The number of threads that share the iterations."""
        return self.loops[-1].threads

    @property
    def extents(self) -> tuple[Index, ...]:
        """The number of iterations of each loop."""
        return tuple(ix.subtract(loop.upper, loop.lower) for loop in self.loops)

    @property
    def length(self) -> Index:
        """The number of iterations of all loops."""
        total: Index = Num(1)
        for extent in self.extents:
            total = ix.multiply(total, extent)
        return total

    @property
    def deal(self) -> tuple[object, ...]:
        """Equal for chains that deal iterations of the same numbers to the same threads."""
        return (self.threads, tuple((loop.lower, loop.upper) for loop in self.loops))

    def owned_dims(self, index: Sequence[Index]) -> tuple[int, ...] | None:
        """The dims that the loops' variables address, in the order of the loops, one each; None where it is not so."""
        dims: list[int] = []
        for loop in self.loops:
            places = [d for d, i in enumerate(index) if loop.var in ix.variables(i)]
            if len(places) != 1 or index[places[0]] != Var(loop.var):
                return None
            dims.append(places[0])
        return tuple(dims)


def is_thread_loop(part: Statement) -> TypeGuard[For]:
    """Whether threads share its iterations."""
    return isinstance(part, For) and part.kind is LoopKind.THREAD


def chain_at(loop: For) -> Chain:
    """The chain that starts with a thread loop."""
    loops = [loop]
    while True:
        inner = loops[-1].body.statements
        if len(inner) != 1 or not isinstance(inner[0], For) or inner[0].kind is not LoopKind.THREAD:
            return Chain(tuple(loops))
        loops.append(inner[0])


def is_rectangle(loop: For, outer: Collection[str]) -> bool:
    """Whether the loop steps by one between bounds that no variable of the outer ones moves."""
    return loop.step == 1 and not (ix.variables(loop.lower) | ix.variables(loop.upper)) & frozenset(outer)
