"""The static control part: statements over boxes of integers, in program order, reading and writing buffers.

A statement is ``for all (i, j, ...) in box: body``, where the body is a sequence of scalar bindings, stores and
accumulations in the language of :mod:`kernelgen.nest.nodes` with the iterators as variables. The instances of one
statement have no order among themselves, but for an ordered statement (a scan), whose instances that touch one element
run in increasing order of the iterators. A buffer that is stored to by one statement and accumulated into by a later one
starts from what was stored; an accumulator that nobody stores to starts from its neutral element.
Building, folding, forwarding and grouping map Scop to Scop; :mod:`kernelgen.poly.model.relations` gives the isl view.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.nest.nodes import Accumulate, Buffer, Index, Let, Store
from kernelgen.nest.walk import loads_of
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.dims import Dim, Shape, Sym

BodyStatement = Let | Store | Accumulate


@dataclass(frozen=True)
class Blocks:
    """What an iterator ``b`` counts: blocks of ``length`` of the range ``0 <= i < extent``, as many as there are.

    With ``of``, the name of another iterator ``i``, it is ``b = floor(i / length)``; where the extent is a symbol blocks
    are dealt out in turn, ``b = floor(i / length) mod count``, with the iterator's own extent as the count.
    Blocks that overlap are ``overlapping``: a step and a start with ``step * b + start <= i < step * b + start + length``.
    """

    length: int
    extent: Dim
    of: str = ""
    overlapping: tuple[int, int] | None = None


@dataclass(frozen=True)
class Iterator:
    """``0 <= name < extent``; one that counts blocks takes those values only that its :class:`Blocks` allow."""

    name: str
    extent: Dim
    blocks: Blocks | None = None

    @property
    def trips(self) -> Dim:
        """How many values it takes; where a symbol decides how many blocks there are, the extent with that symbol."""
        is_open = self.blocks is not None and isinstance(self.blocks.extent, Sym)
        return self.blocks.extent if self.blocks is not None and is_open else self.extent


@dataclass(frozen=True)
class Access:
    """An element of a buffer, addressed over the iterators of its statement."""

    buffer: Buffer
    index: tuple[Index, ...]


@dataclass(frozen=True)
class Statement:
    """One box of instances of one body. ``Let`` names are unique in the whole scop."""

    name: str
    iterators: tuple[Iterator, ...]
    body: tuple[BodyStatement, ...]
    ordered: bool = False

    @cached_property
    def reads(self) -> tuple[Access, ...]:
        """What the body loads; the target of an accumulation counts as written only."""
        return tuple(Access(load.buffer, load.index) for part in self.body for load in loads_of(part))

    @cached_property
    def writes(self) -> tuple[Access, ...]:
        """What the body stores or accumulates into."""
        return tuple(Access(part.buffer, part.index) for part in self.body if not isinstance(part, Let))

    @cached_property
    def touched(self) -> frozenset[str]:
        """The names of the buffers that it reads or writes."""
        return frozenset(access.buffer.name for access in (*self.reads, *self.writes))

    @cached_property
    def accumulations(self) -> tuple[Accumulate, ...]:
        """The reductions in the body."""
        return tuple(part for part in self.body if isinstance(part, Accumulate))


@dataclass(frozen=True)
class Scop:
    """A kernel as statements in program order. ``buffers`` are arguments first (inputs, outputs), then temporaries.

    ``constants`` are the names of inputs that hold the same in every call, ``handing`` those of the products that share
    loops over batches and blocks of rows with what they hand results on to, ``columns`` those of the statements that share no
    loop inside of one that they reduce over.
    """

    name: str
    symbols: tuple[str, ...]
    buffers: tuple[Buffer, ...]
    statements: tuple[Statement, ...]
    argument_shapes: tuple[Shape, ...]
    constants: frozenset[str] = frozenset()
    handing: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()
