"""Elements at equal distances as whole vectors and shuffles: where the vectors lie, and where in them each lane finds its own.

    x[2 j]                n lanes of x[a : a + n] and x[a + n - 1 : a + 2 n - 1], which ends with the last of these elements
    x[2 j], x[2 j + 1]    both of x[a : a + n] and x[a + n : a + 2 n], since every element is wanted by one of them

So nothing is read that lies outside of the buffer: what is between the first and the last element is inside of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelgen.nest.congruence import polynomial
from kernelgen.nest.nodes import Index
from kernelgen.targets.cpu.text.scope import Line

FARTHEST = 4
"""The distance of neighbouring lanes up to which vectors are loaded and shuffled; farther ones are gathered."""

_MODULUS = 1 << 64


@dataclass(frozen=True)
class Spread:
    """``first`` is the place from which the vectors are counted, and ``starts`` are where they begin behind it.

    ``places`` say for each lane in which vector its element is and where in it; ``readers`` for each vector which lane has to
    run for a place in it to be read.
    """

    first: Index
    starts: tuple[int, ...]
    places: tuple[tuple[int, int], ...]
    readers: tuple[Mapping[int, int], ...]


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


def spread(flat: Index, constant: int, line: Mapping[int, Index], stride: int, count: int) -> Spread:
    """The vectors of ``count`` elements for as many lanes that are ``stride`` apart.

    ``flat`` is the place of the element, ``constant`` and ``line`` what :func:`line_of` makes of it and what else all
    iterations load there: where that covers a whole ``stride``, the vectors are those that the others take, too.
    """
    number = abs(stride)
    shared = [k for k in range(number) if constant - k in line and constant - k + number - 1 in line]
    shift, step = (shared[-1], count) if shared else (0, count - 1)
    owners = [min((lane * number + shift) // step, number - 1) for lane in range(count)]
    places = [(owner, lane * number + shift - owner * step) for lane, owner in enumerate(owners)]
    order = range(count) if stride > 0 else range(count)[::-1]
    return Spread(
        line[constant - shift] if shared else flat,
        tuple(owner * step for owner in range(number)),
        tuple(places[lane] for lane in order),
        tuple(_readers(owner, places, order, number if shared else 0) for owner in range(number)),
    )


def _readers(vector: int, places: Sequence[tuple[int, int]], order: Sequence[int], shared: int) -> Mapping[int, int]:
    """The lane that each place of a vector is read for; where lanes take ``shared`` elements together, all places have one."""
    count = len(places)
    if shared:
        return {place: order[(vector * count + place) // shared] for place in range(count)}
    return {place: order[lane] for lane, (owner, place) in enumerate(places) if owner == vector}
