"""Which block of a dim a group of accesses addresses, as seen from loops outside.

for b:
  for i in 64*b .. min(N, 64*b + 64) step 8: x[i], x[i + 7]
  if b == 3: x[197]                                                ->     64 elements from 64*b on
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.tensor.dims import Dim

Place = tuple[n.Index, Sequence[n.For], Mapping[str, n.Index]]
"""An index, the loops inside around it, and the values that conditions there leave variables."""


Block = tuple[n.Index, Dim]
"""Where the elements begin, and how many they are."""


def block_of(places: Iterable[Place], outside: Sequence[n.For]) -> tuple[n.Index, int] | None:
    """The block that holds all of the places in an iteration of one of the loops ``outside``, and no place of another one.

    None where none is seen.
    """
    waiting = [(_span(index, loops), pinned) for index, loops, pinned in places]
    spans = [(span, pinned) for span, pinned in waiting if span is not None]
    bases = {span.base for span, _ in spans if ix.variables(span.base)}
    if len(spans) < len(waiting) or len(bases) != 1:
        return None
    (base,) = bases
    offsets = [_offset(span, base, pinned) for span, pinned in spans]
    ends = [None if at is None else at + span.length for at, (span, _) in zip(offsets, spans, strict=True)]
    length = max((end for end in ends if end is not None), default=0)
    apart = _distance(base, outside)
    if apart is None or length > apart or any(at is None or at < 0 for at in offsets):
        return None
    return base, length


def _distance(base: n.Index, outside: Sequence[n.For]) -> int | None:
    """How far apart the bases of two iterations are, at least, of the only loop that moves it."""
    moving = [loop for loop in outside if loop.var in ix.variables(base)]
    if len(moving) != 1 or len(ix.variables(base)) != 1:
        return None
    step = ix.stride(base, moving[0].var)
    return None if step is None else step * moving[0].step


@dataclass(frozen=True)
class _Span:
    """``base + low .. base + low + length``."""

    base: n.Index
    low: int
    length: int


def _offset(span: _Span, base: n.Index, pinned: Mapping[str, n.Index]) -> int | None:
    """Where a span begins in the block from ``base`` on."""
    if span.base == base:
        return span.low
    there, here = (_simple(ix.substitute(each, pinned)) for each in (base, span.base))
    return here.value + span.low - there.value if isinstance(here, n.Num) and isinstance(there, n.Num) else None


def _span(index: n.Index, loops: Sequence[n.For]) -> _Span | None:
    """What an index addresses while the loops run."""
    rest, low = _parts(index)
    names = [loop.var for loop in loops]
    if not ix.variables(rest) & set(names):
        return _Span(rest, low, 1)
    if not isinstance(rest, n.Var):
        return None
    place = names.index(rest.name)
    loop = loops[place]
    first, trips = _span(loop.lower, loops[:place]), _most(loop)
    if first is None or trips is None:
        return None
    return _Span(first.base, first.low + low, first.length + (trips - 1) // loop.step * loop.step)


def _most(loop: n.For) -> int | None:
    """The distance of the ends of a loop, at most."""
    base, low = _parts(loop.lower)
    ends = (_parts(end) for end in _ends(loop.upper))
    return min((high - low for rest, high in ends if rest == base), default=None)


def _ends(upper: n.Index) -> Iterable[n.Index]:
    if isinstance(upper, n.IndexBinary) and upper.op is n.IndexOp.MIN:
        yield from _ends(upper.left)
        yield from _ends(upper.right)
    else:
        yield upper


def _parts(index: n.Index) -> tuple[n.Index, int]:
    """A sum as what varies and a number."""
    if isinstance(index, n.Num):
        return n.Num(0), index.value
    if isinstance(index, n.IndexBinary) and index.op is n.IndexOp.ADD and isinstance(index.right, n.Num):
        rest, number = _parts(index.left)
        return rest, number + index.right.value
    return index, 0


def _simple(index: n.Index) -> n.Index:
    """The index with its operations on numbers done."""
    if not isinstance(index, n.IndexBinary):
        return index
    left, right = _simple(index.left), _simple(index.right)
    if not isinstance(left, n.Num) or not isinstance(right, n.Num):
        return index
    makers = {n.IndexOp.ADD: ix.add, n.IndexOp.SUB: ix.subtract, n.IndexOp.MUL: ix.multiply, n.IndexOp.MIN: ix.minimum}
    maker = makers.get(index.op)
    return index if maker is None else maker(left, right)
