"""What happens while a nest runs: memories that know who touched them, loops that know what they promised.

A loop with a mark opens a frame. A frame remembers for every element which iteration touched it and how; two iterations
that meet at an element with a write break the loop's promise. A local is private to the iteration that allocates it, so
only the frames opened after its allocation watch it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from kernelgen.checker.faults import Fault, Found
from kernelgen.checker.terms import element, function
from kernelgen.nest.nodes import Buffer, Space

READ, WRITE = "read", "write"  # an accumulation is called by its function


class OutOfSteps(Exception):
    """The run would take more steps than it was given; never leaves this package."""


@dataclass
class Frame:
    """One run of a marked loop: element -> (the iteration that touched it, or None for several; how)."""

    kind: str
    touched: dict[tuple[int, int], tuple[int | None, str]] = field(default_factory=dict)
    iteration: int = 0

    def touch(self, place: tuple[int, int], how: str) -> str:
        """Notes an access; the reason when it breaks the loop's promise, else nothing."""
        before = self.touched.get(place)
        if before is None:
            self.touched[place] = (self.iteration, how)
            return ""
        iteration, earlier = before
        if iteration == self.iteration:
            if how != earlier:
                self.touched[place] = (iteration, how if earlier == READ else WRITE)
            return ""
        harmless = how == earlier and (how == READ or (self.kind == "vector" and how != WRITE))
        self.touched[place] = (None, how)
        return "" if harmless else f"meets a {earlier} of {'another iteration' if iteration is None else iteration}"


@dataclass
class Trace:
    """The state of a run. ``sample`` is the most iterations of a loop that run, None for all of them.

    ``ordered`` as in :mod:`kernelgen.checker.terms`.
    """

    steps: int
    texts: Sequence[str]
    sample: int | None = None
    ordered: bool = False
    frames: list[Frame] = field(default_factory=list[Frame])
    memories: int = 0
    accesses: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether all iterations run."""
        return self.sample is None

    def loop(self, lower: int, upper: int, step: int, kind: str) -> Iterator[int]:
        """The iterations of a loop; ``kind`` is empty for loops that promise nothing.

        Raises OutOfSteps when the run has taken as long as it may.
        """
        frame = Frame(kind) if kind else None
        if frame is not None:
            self.frames.append(frame)
        for value in self._chosen(range(lower, upper, step)):
            self.steps -= 1
            if self.steps < 0:
                raise OutOfSteps
            if frame is not None:
                frame.iteration = value
            yield value
        if frame is not None:
            self.frames.pop()

    def _chosen(self, values: range) -> Sequence[int]:
        """All, or the first ones, the last ones and one in the middle."""
        if self.sample is None or len(values) <= self.sample:
            return values
        first = (self.sample + 1) // 2
        last = self.sample - first
        middle = [values[len(values) // 2]] if self.sample > 2 else []
        return sorted({*values[:first], *middle, *values[len(values) - last :]})

    def fail(self, check: str, where: str, message: str, statement: int) -> Found:
        """The exception that ends the run."""
        return Found(Fault(check, where, message, self.texts[statement] if statement >= 0 else ""))


class Memory:
    """A buffer during a run: the numbers of its elements, by row-major number."""

    def __init__(
        self, trace: Trace, buffer: Buffer, shape: Sequence[int], position: int = -1, known: Sequence[int] = ()
    ) -> None:
        self.trace, self.name, self.kind, self.space = trace, buffer.name, buffer.dtype, buffer.space
        self.shape, self.position, self.known = tuple(shape), position, known
        self.number = trace.memories
        trace.memories += 1
        self.level = len(trace.frames)
        self.values: dict[int, int] = {}
        self.unread: set[int] = set()

    def load(self, index: tuple[int, ...], statement: int) -> int:
        """The number of an element."""
        offset = self._accessed(index, READ, statement)
        self.unread.discard(offset)
        found = self.values.get(offset)
        return self._value(offset, index, statement) if found is None else found

    def store(self, index: tuple[int, ...], value: int, statement: int) -> None:
        """Gives an element a number. Raises Found where that loses a number which nobody has read."""
        offset = self._accessed(index, WRITE, statement)
        if offset in self.unread and self.trace.is_whole:
            raise self.trace.fail("kept", self._place(index), "loses a value that nobody has read", statement)
        self.values[offset] = value
        self.unread.add(offset)

    def accumulate(self, index: tuple[int, ...], reduction: str, value: int, statement: int) -> None:
        """Combines the number of an element with another one."""
        offset = self._accessed(index, reduction, statement)
        combine = function(reduction, self.kind, self.trace.ordered)
        self.values[offset] = combine(self._value(offset, index, statement), value)
        self.unread.add(offset)

    def missing(self) -> int | None:
        """The first element that was never written, None when all were."""
        size = prod(self.shape)
        if len(self.values) >= size:
            return None
        return next(offset for offset in range(size) if offset not in self.values)

    def number_at(self, offset: int) -> int:
        """The number of an element at the end of the run."""
        found = self.values.get(offset)
        return self.given(offset) if found is None else found

    def given(self, offset: int) -> int:
        """The number of an element of an input."""
        return self.known[offset] if self.known else element(self.position, offset, self.trace.ordered)

    def place(self, offset: int) -> str:
        """An element as text, by its row-major number."""
        index: list[int] = []
        for extent in reversed(self.shape):
            offset, coordinate = divmod(offset, extent)
            index.append(coordinate)
        return self._place(tuple(reversed(index)))

    def _value(self, offset: int, index: tuple[int, ...], statement: int) -> int:
        found = self.values.get(offset)
        if found is not None:
            return found
        if self.space in (Space.INPUT, Space.INOUT):
            return self.given(offset)
        if self.trace.is_whole:
            raise self.trace.fail("initialised", self._place(index), "is used and was never stored", statement)
        return 0

    def _accessed(self, index: tuple[int, ...], how: str, statement: int) -> int:
        """The row-major number of an element that ``statement`` touches at ``index``, and ``how``: one call for every access
        of a run. Raises Found and OutOfSteps.
        """
        offset = 0
        for coordinate, extent in zip(index, self.shape, strict=True):
            if not 0 <= coordinate < extent:
                raise self.trace.fail("bounds", self._place(index), f"is outside of {list(self.shape)}", statement)
            offset = offset * extent + coordinate
        trace, place = self.trace, (self.number, offset)
        trace.accesses += 1
        trace.steps -= 1
        if trace.steps < 0:
            raise OutOfSteps
        for frame in trace.frames[self.level :] if self.level else trace.frames:
            clash = frame.touch(place, how)
            if clash:
                message = f"({how} of iteration {frame.iteration}) {clash}"
                raise trace.fail(frame.kind, self._place(index), message, statement)
        return offset

    def _place(self, index: tuple[int, ...]) -> str:
        return f"{self.name}[{', '.join(map(str, index))}]"
