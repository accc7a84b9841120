"""What is chosen about a nest's marked loops for a processor before anything is printed, and loops that carry it.

``choose`` looks at the nest alone; ``with_choices`` takes what it returned, or what somebody made of that.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, fields, replace
from typing import TypeVar

from kernelgen.errors import ArgumentError
from kernelgen.nest.nodes import Block, For, If, LoopKind, Nest, Statement
from kernelgen.nest.walk import statements
from kernelgen.plan import CodePlan, MatrixChoice, ThreadChoice, TileChoice, VectorChoice
from kernelgen.targets.cpu.loops.matrix_plan import choose_matrices, planned_matrices
from kernelgen.targets.cpu.loops.planned_loops import ChosenLoop
from kernelgen.targets.cpu.loops.streaming import may_stream, streamed_buffer
from kernelgen.targets.cpu.loops.thread_plan import choose_threads
from kernelgen.targets.cpu.loops.tile_plan import choose_tiles, planned_tiles
from kernelgen.targets.cpu.loops.vector_plan import choose_vectors, planned_vectors
from kernelgen.targets.cpu.text.host import Host

ANEW = "a plan with code null has them chosen"
"""What to do with a plan that was made for other loops, by an earlier version perhaps."""

C = TypeVar("C", VectorChoice, TileChoice, ThreadChoice, MatrixChoice)


def choose(nest: Nest, host: Host) -> CodePlan:
    """The choices for a nest on a processor."""
    loops = [part for part in statements(nest.body) if isinstance(part, For)]
    return CodePlan(
        vectors=tuple(choose_vectors(loop, host) for loop in loops if loop.kind is LoopKind.VECTOR),
        tiles=tuple(choose_tiles(loop, host) for loop in loops if loop.kind is LoopKind.INTERLEAVE),
        parallels=tuple(choose_threads(loop) for loop in loops if loop.kind is LoopKind.PARALLEL),
        matrices=tuple(choose_matrices(loop, host) for loop in loops if loop.kind is LoopKind.ROWS),
        streamed=streamed_buffer(nest, host),
    )


def with_choices(nest: Nest, code: CodePlan, host: Host) -> Nest:
    """The ``nest`` whose marked loops carry their plans: those of ``code`` for the processor ``host``.

    Raises ArgumentError when the choices do not fit it.
    """
    if code.streamed is not None and not may_stream(nest, code.streamed, host):
        raise ArgumentError(f"{code.streamed} cannot be stored past the caches: no output that stays unread, or no way")
    carrier = _Carrier(host, deque(code.vectors), deque(code.tiles), deque(code.parallels), deque(code.matrices))
    body = carrier.block(nest.body)
    if left := carrier.left():
        raise ArgumentError(f"the plan has more {', '.join(left)} than the nest has such loops; {ANEW}")
    return replace(nest, body=body)


@dataclass(eq=False)
class _Carrier:
    """Hands out the choices one by one, in the order of the text, from queues that are empty when all loops have theirs."""

    host: Host
    vectors: deque[VectorChoice]
    tiles: deque[TileChoice]
    parallels: deque[ThreadChoice]
    matrices: deque[MatrixChoice]

    def block(self, block: Block) -> Block:
        return Block(tuple(map(self.statement, block.statements)))

    def statement(self, statement: Statement) -> Statement:
        if isinstance(statement, For):
            return self.loop(statement)
        if isinstance(statement, Block):
            return self.block(statement)
        return replace(statement, body=self.block(statement.body)) if isinstance(statement, If) else statement

    def loop(self, loop: For) -> For:
        """Choices are taken before those of inner loops, plans are made when the inner loops have theirs."""
        match loop.kind:
            case LoopKind.VECTOR:
                choice = _next(self.vectors, "vectors")
                return _carrying(loop, planned_vectors(loop, choice, self.host))
            case LoopKind.INTERLEAVE:
                tiles = _next(self.tiles, "tiles")
                inner = replace(loop, body=self.block(loop.body))
                return _carrying(inner, planned_tiles(inner, tiles, self.host))
            case LoopKind.PARALLEL:
                threads = _next(self.parallels, "parallels")
                return _carrying(replace(loop, body=self.block(loop.body)), threads)
            case LoopKind.ROWS:
                matrices = _next(self.matrices, "matrices")
                inner = replace(loop, body=self.block(loop.body))
                return _carrying(inner, planned_matrices(inner, matrices, self.host))
            case _:
                return replace(loop, body=self.block(loop.body))

    def left(self) -> list[str]:
        """The kinds of which choices are left over."""
        waiting = {
            "vectors": self.vectors, "tiles": self.tiles, "parallels": self.parallels, "matrices": self.matrices
        }  # fmt: skip
        return [kind for kind, choices in waiting.items() if choices]


def _next(choices: deque[C], kind: str) -> C:
    if not choices:
        raise ArgumentError(f"the plan has fewer {kind} than the nest has such loops; {ANEW}")
    return choices.popleft()


def _carrying(loop: For, plan: object) -> For:
    return ChosenLoop(**{field.name: getattr(loop, field.name) for field in fields(loop)}, plan=plan)
