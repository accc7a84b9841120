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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kernelgen.errors import NestError
from kernelgen.nest.index import from_dim, variables
from kernelgen.nest.neutral import neutral_element
from kernelgen.nest.nodes import Accumulate, Block, Compare, For, If, Index, Nest, Statement, Store, Var
from kernelgen.nest.ranges import Range, range_of, values_in, values_left
from kernelgen.nest.walk import loads_of, statements
from kernelgen.tensor.dims import Sym


def initialize(nest: Nest) -> Nest:
    """The nest with all accumulators initialised."""
    started = frozenset(s.buffer.name for s in statements(nest.body) if isinstance(s, Store))
    found = [each for part in nest.body.statements for each in _accumulations(part, (), started)]
    return replace(nest, body=_block(nest.body, _Around((), (), started, frozenset(_reduced(found)))))


@dataclass(frozen=True)
class _Around:
    """What stands around a block: its loops and conditions.

    ``running`` names the buffers that have their first values, ``reduced`` with the names of buffers the loops in which an
    element of them meets several terms.
    """

    loops: tuple[For, ...]
    guards: tuple[Compare, ...]
    running: frozenset[str]
    reduced: frozenset[tuple[str, str]]

    def starts_outside(self, path: tuple[For, ...], accumulation: Accumulate, guards: tuple[Compare, ...] = ()) -> bool:
        """Whether a loop further out already belongs to the reduction."""
        loops = (*self.loops, *path)
        addressing = _addressing(loops, accumulation.index) | self.single((*self.guards, *guards), loops, accumulation)
        return any(loop.var not in addressing for loop in self.loops)

    def single(self, guards: Sequence[Compare], loops: Sequence[For], accumulation: Accumulate) -> frozenset[str]:
        """The loops of which conditions leave the only turn in which the accumulation's target has terms."""
        found = values_left(guards, loops)
        return frozenset(name for name in found if (accumulation.buffer.name, name) not in self.reduced)


def _reduced(found: Sequence[_Found]) -> Iterator[tuple[str, str]]:
    """The loops in which an element of a buffer meets several terms, of all accumulations.

    In a loop that a condition leaves one turn these are terms of other accumulations: those that no condition leaves it to,
    and those that may meet the same element in that turn.
    """
    for path, accumulation, guards in found:
        addressing, left = _addressing(path, accumulation.index), values_left(guards, path)
        yield from ((accumulation.buffer.name, loop.var) for loop in path if loop.var not in {*addressing, *left})
        for other in found if left else ():
            name = other[1].buffer.name
            if name == accumulation.buffer.name and other[1].index != accumulation.index:
                yield from ((name, var) for var in left if _may_meet((path, accumulation, guards), other, var))


def _may_meet(one: _Found, other: _Found, var: str) -> bool:
    """Whether both may reach one element in the turn of a loop that the conditions of the first one leave."""
    turn = values_left(one[2], one[0])[var].value
    if var not in {loop.var for loop in other[0]}:
        return False
    if any(_is_never(guard, values_in(other[0], {var: Range(turn, turn)})) for guard in other[2]):
        return False
    places = [values_in(path, {var: Range(turn, turn)}) for path, *_ in (one, other)]
    return all(
        range_of(a, places[0]).meets(range_of(b, places[1])) for a, b in zip(one[1].index, other[1].index, strict=True)
    )


def _is_never(guard: Compare, known: Mapping[str, Range]) -> bool:
    left, right = range_of(guard.left, known), range_of(guard.right, known)
    if guard.op == "==":
        return not left.meets(right)
    if left.low is None or right.high is None:
        return False
    return left.low > right.high if guard.op == "<=" else left.low >= right.high


def _block(block: Block, around: _Around) -> Block:
    parts: list[Statement] = list(_read_first(block, around))
    started = {(part.buffer.name, part.index) for part in parts if isinstance(part, Store)}
    for part in block.statements:
        parts.extend(dict.fromkeys(_starts(part, around)))  # unrolled rows share a target: it starts once
        if isinstance(part, For):
            parts.append(replace(part, body=_block(part.body, replace(around, loops=(*around.loops, part)))))
        elif isinstance(part, If):
            inside = replace(around, guards=(*around.guards, *part.conditions))
            parts.append(replace(part, body=_block(part.body, inside)))
        elif isinstance(part, Accumulate) and part.buffer.name in around.running:
            parts.append(part)
        elif isinstance(part, Accumulate) and not around.starts_outside((), part):
            target = (part.buffer.name, part.index)
            parts.append(part if target in started else Store(part.buffer, part.index, part.value))
            started.add(target)
        else:
            parts.append(part)
    return Block(tuple(parts))


def _read_first(block: Block, around: _Around) -> Iterator[Store]:
    """Starts for the targets of unrolled reductions that are read before their first term: exclusive scans."""
    begun: set[tuple[str, tuple[Index, ...]]] = set()
    loaded: set[str] = set()
    for part in block.statements:
        loaded |= {load.buffer.name for inner in statements(part) for load in loads_of(inner)}
        if not isinstance(part, Accumulate) or part.buffer.name in around.running or around.starts_outside((), part):
            continue
        target = (part.buffer.name, part.index)
        if target not in begun and part.buffer.name in loaded:
            yield Store(part.buffer, part.index, neutral_element(part.function, part.buffer.dtype))
        begun.add(target)


def _starts(part: Statement, around: _Around) -> Iterator[Statement]:
    """The starting values of the reductions whose first loop is this statement."""
    if not isinstance(part, For):
        return
    for path, accumulation, guards in _accumulations(part, (), around.running):
        addressing = _addressing(path, accumulation.index) | around.single(guards, path, accumulation)
        if part.var not in addressing and not around.starts_outside(path, accumulation, guards):
            kept = tuple(guard for guard in guards if not _names_terms(guard, path, accumulation))
            if len(kept) < len(guards) and not _stays_inside((*around.loops, *path), accumulation):
                raise NestError("a reduction under a guard cannot be initialised")
            yield _store(path, accumulation, kept)


_Found = tuple[tuple[For, ...], Accumulate, tuple[Compare, ...]]


def _accumulations(
    part: Statement, path: tuple[For, ...], running: frozenset[str], guards: tuple[Compare, ...] = ()
) -> Iterator[_Found]:
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
    known = values_in(loops)
    upper = {loop.var: loop.upper for loop in loops}
    for index, extent in zip(accumulation.index, accumulation.buffer.shape, strict=True):
        place = range_of(index, known)
        if isinstance(extent, Sym):
            is_axis = isinstance(index, Var) and upper.get(index.name) == from_dim(extent) and place.is_nonnegative
            if not is_axis:
                return False
        elif not place.is_nonnegative or place.high is None or place.high >= extent:
            return False
    return True


def _addressing(path: tuple[For, ...], index: tuple[Index, ...]) -> frozenset[str]:
    """The variables that the index depends on, directly or through loop bounds."""
    found = frozenset(name for i in index for name in variables(i))
    for loop in reversed(path):
        if loop.var in found:
            found |= variables(loop.lower) | variables(loop.upper)
    return found


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
