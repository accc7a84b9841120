"""Which of two loops around a vector loop is the inner one, where what no cache holds is written in another order than read.

    for h: for s: vector d: y[h, s, d] = x[s, h, d]   ->   for s: for h: vector d: y[h, s, d] = x[s, h, d]

A loop along ``s`` jumps in ``x`` over what ``h`` reads: it touches a page for each row or nearly so, and all of them again for
each ``h``. Along ``h`` these rows lie in one page, and ``y`` is written in as many streams as there are ``h``, row behind row.
So the inner loop is the one that touches fewer pages. Arrays that a cache holds keep their order: such streams lie powers of
two apart, and meet in its sets.

Legality: the band is permutable, so that its members may change places.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from kernelgen.plan import LoopPlan
from kernelgen.poly.mapping.axis import Axis, element_stride
from kernelgen.transforms.cpu.prefetching.hints import PAGE_BYTES, is_large


def by_pages(axes: Sequence[Axis], loops: tuple[LoopPlan, ...]) -> tuple[tuple[LoopPlan, ...], tuple[str, ...]]:
    """The ``loops`` over these ``axes``, the last one over vectors, with the better of the two before it inside; and why."""
    if len(loops) < 3:
        return loops, ()
    *others, outer, inner, vector = loops
    one, other = axes[outer.member], axes[inner.member]
    if [statement for statement, _ in one.follows] != [statement for statement, _ in other.follows]:
        return loops, ()
    here, there = _steps(one), _steps(other)
    jumps = any(across > along > 0 for along, across in zip(here, there, strict=True))
    fewer, more = _pages(one, here), _pages(other, there)
    if not jumps or not fewer < more:
        return loops, ()
    return (*others, inner, outer, vector), (f"{fewer:.0f} pages along {one.name}, {more:.0f} along {other.name}",)


def _steps(axis: Axis) -> list[float]:
    """By how many bytes each access to an array that no cache holds moves; infinite where that varies."""
    found: list[float] = []
    for statement, name in axis.follows:
        for access in (*statement.reads, *statement.writes):
            if is_large(access.buffer):
                step = element_stride(access, name)
                found.append(inf if step is None else abs(step) * access.buffer.dtype.itemsize)
    return found


def _pages(axis: Axis, steps: Sequence[float]) -> float:
    """How many pages these accesses touch: one that moves less than a page in each iteration shares them among several."""
    if axis.extent is None:
        return inf
    return sum(min(axis.extent, 1 + axis.extent * step // PAGE_BYTES) for step in steps)
