"""What a nest does when it runs at given sizes, as words that do not depend on the sizes.

    serial loop of loads, f32 fma: several turns      copy of 4 f32, input to shared      guard before stores: no

Two sizes of one kernel with the same words run the same kinds of code. A grid is gone through for a few of its threads (the
first, one in the middle, the last, of such blocks), and of every loop for the first turns and the last: what only other
threads or turns do is not seen. What data decides counts as 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

from kernelgen.nest import nodes as n
from kernelgen.nest.extents import extent
from kernelgen.nest.walk import statements

FEW = 3
"""So many turns, blocks or threads are several: a pipeline of copies is full, a loop has a turn that is no end."""


def features_of(nest: n.Nest, sizes: Mapping[str, int]) -> frozenset[str]:
    """What the nest does with these values of its symbols."""
    walk = _Walk(dict(sizes))
    walk.through(nest.body)
    return frozenset(walk.found)


@dataclass
class _Walk:
    """Goes through statements as they run, and notes what it meets."""

    values: dict[str, int]
    found: set[str] = field(default_factory=set[str])

    def through(self, part: n.Statement) -> None:
        """A statement and what is in it."""
        match part:
            case n.Block(inner):
                for each in inner:
                    self.through(each)
            case n.Grid():
                self._launch(part)
            case n.For():
                self._loop(part)
            case n.If(conditions, body):
                holds = all(map(self._holds, conditions))
                self.found.add(f"guard before {_content(body)}: {'yes' if holds else 'no'}")
                if holds:
                    self.through(body)
            case n.Bind(name, index):
                self.values[name] = self._value(index)
            case _:
                self.found.update(_words(part))

    def _launch(self, grid: n.Grid) -> None:
        blocks = self._value(grid.blocks) if all(map(self._holds, grid.when)) else 0
        self.found.add(f"launch of {_content(grid.body)}: {_number(blocks)} blocks")
        numbers = (blocks, *grid.threads)
        for place in product(*({0, count // 2, count - 1} if blocks else () for count in numbers)):
            self.values |= dict(zip((n.BLOCK_INDEX, *n.THREAD_INDICES), place, strict=True))
            self.through(grid.body)

    def _loop(self, loop: n.For) -> None:
        turns = range(self._value(loop.lower), self._value(loop.upper), loop.step)
        self.found.add(f"{loop.kind.value} loop of {_content(loop.body)}: {_number(len(turns))} turns")
        for turn in sorted({*turns[:2], *turns[-1:]}):
            self.values[loop.var] = turn
            self.through(loop.body)

    def _holds(self, condition: n.Compare) -> bool:
        left, right = self._value(condition.left), self._value(condition.right)
        return {"<": left < right, "<=": left <= right, "==": left == right}[condition.op]

    def _value(self, index: n.Index) -> int:
        try:
            return extent(index, self.values)
        except KeyError:  # data decides it
            return 0


def _words(part: n.Statement) -> Iterator[str]:
    """A statement without parts in words."""
    match part:
        case n.Let(_, value):
            yield from _computed(value)
        case n.Store(buffer, _, value):
            yield f"store to {_place(buffer)}"
            yield from _computed(value)
        case n.Accumulate(buffer, _, function, value):
            yield f"{function} into {_place(buffer)}"
            yield from _computed(value)
        case n.Alloc(buffer):
            yield f"{_place(buffer)} array"
        case n.Copy(target, _, source, _, count) | n.AsyncCopy(target, _, source, _, count):
            yield f"{type(part).__name__} of {count}, {_place(source)} to {_place(target)}"
        case n.Combine(buffer, _, function, width):
            yield f"Combine {function} {_place(buffer)} of {width}"
        case n.LoadFragments(_, _, source, _, count, transposed):
            yield f"LoadFragments {count} {_place(source)}{' transposed' if transposed else ''}"
        case n.MultiplyFragments():
            yield f"MultiplyFragments {part.dtype.name}"
        case n.AwaitCopies(pending):
            yield f"AwaitCopies {pending}"
        case _:
            yield type(part).__name__


def _computed(value: n.Expr) -> Iterator[str]:
    match value:
        case n.Call(function, args, dtype):
            yield f"{function} {dtype.name}"
            for arg in args:
                yield from _computed(arg)
        case n.Load(buffer):
            yield f"load from {_place(buffer)}"
        case _:
            pass


def _place(buffer: n.Buffer) -> str:
    return f"{buffer.space.value} {buffer.dtype.name}"


def _content(body: n.Block) -> str:
    """The kinds of statements in a block, at any depth."""
    kinds = {
        type(part).__name__ for part in statements(body) if not isinstance(part, n.Block | n.Bind | n.Alloc | n.Let)
    }
    return " ".join(sorted(kinds)) or "nothing"


def _number(count: int) -> str:
    return str(count) if count < FEW else "several"
