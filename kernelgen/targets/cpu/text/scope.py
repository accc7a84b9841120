"""What is known at a point of the function under construction: variables, bindings, buffers, lanes. Immutable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kernelgen.nest.congruence import Monomial
from kernelgen.nest.nodes import Buffer, Call, Expr, Index, Ref
from kernelgen.targets.cpu.text.builder import Function
from kernelgen.targets.cpu.text.host import Host
from kernelgen.targets.cpu.text.values import Value


@dataclass(frozen=True)
class Memory:
    """Where a buffer lies. ``lanes`` > 1: a rank-0 local of a vector loop, with one element per lane.

    ``block`` is the memory from the heap that it lies in, for whoever allocated it to free.
    """

    buffer: Buffer
    pointer: str
    lanes: int = 1
    block: str | None = None


@dataclass(frozen=True)
class Lanes:
    """The vector loop that is being printed: its variable runs over ``start + 0 .. start + count - 1``."""

    variable: str
    start: Value
    count: int

    @property
    def are_first(self) -> bool:
        """Whether they certainly begin at 0, so that each lane is what the variable is there."""
        return self.start.text == "0"


Line = tuple[str, frozenset[tuple[Monomial, int]]]
"""Elements whose places differ by constants: the buffer's name, and the terms that their places share."""


@dataclass(frozen=True)
class Known:
    """What was computed before the loop: values of invariant expressions, and pointers to invariant indices.

    ``loaded`` are the places that every iteration loads, where vectors are few elements apart: by line and constant.
    """

    values: Mapping[Expr, Value] = field(default_factory=dict)
    pointers: Mapping[tuple[str, Index], str] = field(default_factory=dict)
    loaded: Mapping[Line, Mapping[int, Index]] = field(default_factory=dict)


Target = tuple[str, tuple[Index, ...]]
"""What an accumulation goes to: the buffer's name and the index."""


@dataclass(frozen=True)
class Frame:
    """``accumulators``: stack slots that hold the partial results of a vector loop, one element per lane.

    ``streamed`` is the buffer to store past the caches, ``is_aligned`` says that its vectors are aligned here.
    ``mask`` holds the active lanes (None: all); ``guarded`` says that possibly none of them is.
    ``calls`` are the functions that bindings were computed by.
    """

    function: Function
    variables: Mapping[str, Value]
    bindings: Mapping[str, Value]
    memory: Mapping[str, Memory]
    calls: Mapping[str, Call] = field(default_factory=dict)
    nonnegative: frozenset[str] = frozenset()
    lanes: Lanes | None = None
    mask: Value | None = None
    guarded: bool = False
    known: Known = field(default_factory=Known)
    accumulators: Mapping[Target, str] = field(default_factory=dict)
    in_parallel: bool = False
    streamed: str | None = None
    is_aligned: bool = False

    @property
    def host(self) -> Host:
        """The processor that code is made for."""
        return self.function.module.host

    def with_variable(self, name: str, value: Value, is_nonnegative: bool) -> Frame:
        """A frame in which a loop variable has that value."""
        nonnegative = self.nonnegative | {name} if is_nonnegative else self.nonnegative - {name}
        return replace(self, variables={**self.variables, name: value}, nonnegative=nonnegative)

    def with_binding(self, name: str, value: Value, expr: Expr) -> Frame:
        """A frame in which a Let has been evaluated, whose value is that of ``expr``."""
        calls = {**self.calls, name: expr} if isinstance(expr, Call) else self.calls
        return replace(self, bindings={**self.bindings, name: value}, calls=calls)

    def call_of(self, expr: Expr) -> Call | None:
        """The function that ``expr`` is, or is bound to; None for others."""
        call = self.calls.get(expr.name) if isinstance(expr, Ref) else expr
        return call if isinstance(call, Call) else None

    def with_memory(self, memory: Memory) -> Frame:
        """A frame in which a buffer has its place."""
        return replace(self, memory={**self.memory, memory.buffer.name: memory})

    def masked(self, condition: Value) -> Frame:
        """A frame in which only the lanes of ``condition`` are active, possibly none."""
        mask = condition if self.mask is None else self.mask & condition
        return replace(self, mask=mask, guarded=True)
