"""Puts the neutral element into every accumulator just before its reduction starts.

    for i:                          for i:
      for k: s[i] += x[i, k]          s[i] = 0
                                      for k: s[i] += x[i, k]

    for k:                          for j: s[j] = 0
      for j: s[j] += x[k, j]        for k:
                                      for j: s[j] += x[k, j]

The reduction starts at the outermost loop around the accumulation that does not help to address the target: its
variable occurs neither in the index nor, transitively, in the bounds of a loop whose variable does. Inner loops that
do address the target are repeated around the store. Where no loop is left, because the reduction is unrolled as a whole,
its first term is stored instead of accumulated. A buffer that the nest stores to already starts from what is there.

A condition on variables that address the target says which targets there are, and stands around the store too. One on
a variable of the reduction says which terms there are: a target without terms is the neutral element. Without it the
store must stay in the buffer, which the ranges of the loops have to show. One that leaves a loop a single turn takes the
loop out of the reduction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kernelgen.errors import NestError
from kernelgen.nest.index import variables
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.nodes import Accumulate, Block, Compare, For, If, Index, Nest, Statement, Store
from kernelgen.nest.ranges import Range, range_of, values_left
from kernelgen.nest.walk import loads_of, statements
from kernelgen.tensor.dims import Sym


def initialize(nest: Nest) -> Nest:
    """The nest with all accumulators initialised."""
    started = frozenset(s.buffer.name for s in statements(nest.body) if isinstance(s, Store))
    return replace(nest, body=_block(nest.body, (), started))


def _block(block: Block, around: tuple[For, ...], running: frozenset[str]) -> Block:
    """``running`` names the buffers that have their first values."""
    parts: list[Statement] = list(_read_first(block, around, running))
    started = {(part.buffer.name, part.index) for part in parts if isinstance(part, Store)}
    for part in block.statements:
        parts.extend(dict.fromkeys(_starts(part, around, running)))  # unrolled rows share a target: it starts once
        if isinstance(part, For):
            parts.append(replace(part, body=_block(part.body, (*around, part), running)))
        elif isinstance(part, If):
            pinned = values_left(part.conditions, around)
            left = tuple(loop for loop in around if loop.var not in pinned)
            parts.append(replace(part, body=_block(part.body, left, running)))
        elif isinstance(part, Accumulate) and part.buffer.name in running:
            parts.append(part)
        elif isinstance(part, Accumulate) and not _starts_outside(around, (), part):
            target = (part.buffer.name, part.index)
            parts.append(part if target in started else Store(part.buffer, part.index, part.value))
            started.add(target)
        else:
            parts.append(part)
    return Block(tuple(parts))


def _read_first(block: Block, around: tuple[For, ...], running: frozenset[str]) -> Iterator[Store]:
    """Starts for the targets of unrolled reductions that are read before their first term: exclusive scans."""
    begun: set[tuple[str, tuple[Index, ...]]] = set()
    loaded: set[str] = set()
    for part in block.statements:
        loaded |= {load.buffer.name for inner in statements(part) for load in loads_of(inner)}
        if not isinstance(part, Accumulate) or part.buffer.name in running or _starts_outside(around, (), part):
            continue
        target = (part.buffer.name, part.index)
        if target not in begun and part.buffer.name in loaded:
            yield Store(part.buffer, part.index, neutral_element(part.function, part.buffer.dtype))
        begun.add(target)


def _starts(part: Statement, around: tuple[For, ...], running: frozenset[str]) -> Iterator[Statement]:
    """The starting values of the reductions whose first loop is this statement."""
    if not isinstance(part, For):
        return
    for path, accumulation, guards in _accumulations(part, (), running):
        if _start(path, accumulation, guards) == 0 and not _starts_outside(around, path, accumulation, guards):
            kept = tuple(guard for guard in guards if not _names_terms(guard, path, accumulation))
            if len(kept) < len(guards) and not _stays_inside((*around, *path), accumulation):
                raise NestError("a reduction under a guard cannot be initialised")
            yield _store(path, accumulation, kept)


def _accumulations(
    part: Statement, path: tuple[For, ...], running: frozenset[str], guards: tuple[Compare, ...] = ()
) -> Iterator[tuple[tuple[For, ...], Accumulate, tuple[Compare, ...]]]:
    """Each accumulation inside that must be started, with the loops and the conditions that lead to it."""
    if isinstance(part, Accumulate) and part.buffer.name not in running:
        yield path, part, guards
    elif isinstance(part, For):
        for inner in part.body.statements:
            yield from _accumulations(inner, (*path, part), running, guards)
    elif isinstance(part, If):
        for inner in part.body.statements:
            yield from _accumulations(inner, path, running, (*guards, *part.conditions))


def _names_terms(guard: Compare, path: tuple[For, ...], accumulation: Accumulate) -> bool:
    """Whether a variable of the reduction occurs in a condition."""
    reduced = {loop.var for loop in path} - _addressing(path, accumulation.index)
    return bool(reduced & (variables(guard.left) | variables(guard.right)))


def _stays_inside(loops: tuple[For, ...], accumulation: Accumulate) -> bool:
    """Whether the ranges of the loops alone keep the target in its buffer."""
    known: dict[str, Range] = {}
    for loop in loops:
        upper = range_of(loop.upper, known).high
        known[loop.var] = Range(range_of(loop.lower, known).low, None if upper is None else upper - 1)
    for index, extent in zip(accumulation.index, accumulation.buffer.shape, strict=True):
        place = range_of(index, known)
        if isinstance(extent, Sym) or not place.is_nonnegative or place.high is None or place.high >= extent:
            return False
    return True


def _addressing(path: tuple[For, ...], index: tuple[Index, ...]) -> frozenset[str]:
    """The variables that the index depends on, directly or through loop bounds."""
    found = frozenset(name for i in index for name in variables(i))
    for loop in reversed(path):
        if loop.var in found:
            found |= variables(loop.lower) | variables(loop.upper)
    return found


def _start(path: tuple[For, ...], accumulation: Accumulate, guards: Sequence[Compare]) -> int | None:
    """The position of the first loop that does not address the target, and that no condition leaves one turn."""
    addressing = _addressing(path, accumulation.index) | values_left(guards, path).keys()
    return next((k for k, loop in enumerate(path) if loop.var not in addressing), None)


def _starts_outside(
    around: tuple[For, ...], path: tuple[For, ...], accumulation: Accumulate, guards: Sequence[Compare] = ()
) -> bool:
    """Whether a loop further out already belongs to the reduction."""
    loops = (*around, *path)
    addressing = _addressing(loops, accumulation.index) | values_left(guards, loops).keys()
    return any(loop.var not in addressing for loop in around)


def _store(path: tuple[For, ...], accumulation: Accumulate, guards: tuple[Compare, ...]) -> Statement:
    value = neutral_element(accumulation.function, accumulation.buffer.dtype)
    body: Statement = Store(accumulation.buffer, accumulation.index, value)
    if guards:
        body = If(guards, Block((body,)))
    addressing = _addressing(path, accumulation.index)
    for loop in reversed(path):
        if loop.var in addressing:
            body = replace(loop, body=Block((body,)))
    return body
