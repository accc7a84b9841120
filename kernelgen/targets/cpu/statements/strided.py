"""Elements at equal distances as whole vectors and shuffles: where the vectors lie, and where in them each lane finds its own.

    x[2 j]                n lanes of x[a : a + n] and x[a + n - 1 : a + 2 n - 1], which ends with the last of these elements
    x[2 j], x[2 j + 1]    both of x[a : a + n] and x[a + n : a + 2 n], since every element is wanted by one of them
    x[4 (j / 4)]          x[a : a + n], of which no lane is read but each fourth one

So nothing is read that lies outside of the buffer: what is between the first and the last element is inside of it, and of
what lies behind groups of lanes nothing is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelgen.nest.congruence import Monomial, polynomial
from kernelgen.nest.index import stride, variables
from kernelgen.nest.nodes import Index, IndexBinary, IndexOp, Num, Var
from kernelgen.targets.cpu.text.scope import Line

FARTHEST = 4
"""The distance of neighbouring lanes up to which vectors are loaded and shuffled; farther ones are gathered. Of groups of
lanes, that for each of its lanes.
"""

_MODULUS = 1 << 64


@dataclass(frozen=True)
class Step:
    """Groups of ``width`` lanes read an element each, ``distance`` apart."""

    distance: int
    width: int = 1

    @property
    def vectors(self) -> int:
        """How many vectors hold what one of lanes reads, with all that lies between."""
        return abs(self.distance) // self.width

    def offset(self, lane: int) -> int:
        """How far a lane's element is behind that of lane 0."""
        return lane // self.width * abs(self.distance)


def step_of(flat: Index, variable: str, count: int) -> Step | None:
    """How the place ``flat`` moves along ``count`` lanes of a loop over the ``variable``, if vectors hold what all read."""
    distance = stride(flat, variable)
    if distance is not None:
        return Step(distance) if distance not in (0, 1) and abs(distance) <= FARTHEST else None
    match [(term, factor) for term, factor in polynomial(flat, _MODULUS).items() if variable in _variables(term)]:
        case [((IndexBinary(IndexOp.DIV, Var(), Num(width)),), factor)] if factor % width == count % width == 0:
            return Step(factor, width) if factor // width <= FARTHEST else None
        case _:
            return None


def _variables(term: Monomial) -> frozenset[str]:
    return frozenset[str]().union(*map(variables, term))


@dataclass(frozen=True)
class Spread:
    """``first`` is the place from which the vectors are counted, and ``starts`` are where they begin behind it.

    ``places`` say for each lane in which vector its element is and where in it; ``readers`` for each vector which lane has to
    run for a place in it to be read. ``is_shared`` says that other loads read the places between.
    """

    first: Index
    starts: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    readers: tuple[Mapping[int, int], ...]
    is_shared: bool


def line_of(buffer: str, flat: Index) -> tuple[Line, int]:
    """The element ``flat`` of ``buffer`` without the constant of its place, and that constant."""
    terms = polynomial(flat, _MODULUS)
    constant = terms.pop((), 0)
    return (buffer, frozenset(terms.items())), constant - (constant >> 63) * _MODULUS


def by_line(accessed: Iterable[tuple[str, Index]]) -> Mapping[Line, Mapping[int, Index]]:
    """Elements of buffers, for each line by their constants."""
    lines: dict[Line, dict[int, Index]] = {}
    for buffer, flat in accessed:
        line, constant = line_of(buffer, flat)
        lines.setdefault(line, {})[constant] = flat
    return lines


def spread(flat: Index, constant: int, line: Mapping[int, Index], step: Step, count: int) -> Spread:
    """The vectors of ``count`` elements for as many lanes that move by a ``step``.

    ``flat`` is the place of the element, ``constant`` and ``line`` what :func:`line_of` makes of it and what else all
    iterations load there: where that covers a whole ``step``, the vectors are those that the others take, too.
    """
    distance = abs(step.distance)
    shared = [k for k in range(distance) if constant - k in line and constant - k + distance - 1 in line]
    shift, each = (shared[-1], count) if shared else (0, count - 1)
    owners = [min((step.offset(lane) + shift) // each, step.vectors - 1) for lane in range(count)]
    places = [(owner, step.offset(lane) + shift - owner * each) for lane, owner in enumerate(owners)]
    order = range(count) if step.distance > 0 else range(count)[::-1]
    return Spread(
        line[constant - shift] if shared else flat,
        tuple(owner * each for owner in range(step.vectors)),
        tuple(places[lane] for lane in order),
        tuple(_readers(owner, places, order, distance if shared else 0) for owner in range(step.vectors)),
        bool(shared),
    )


def _readers(vector: int, places: Sequence[tuple[int, int]], order: Sequence[int], shared: int) -> Mapping[int, int]:
    """The lane that each place of a vector is read for; where lanes take ``shared`` elements together, all places have one."""
    count = len(places)
    if shared:
        return {place: order[(vector * count + place) // shared] for place in range(count)}
    return {place: order[lane] for lane, (owner, place) in enumerate(places) if owner == vector}
