"""Operators that only move elements: both bounds go where the elements go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.composite.vocabulary import facts
from kernelgen.enclosure.interval import Array, Interval
from kernelgen.semantics.table import meaning_of
from kernelgen.tensor.operator import Application

MOVES = frozenset(facts(lambda word: word.traits.moves))


def moved(operands: Sequence[Interval], node: Application) -> Interval | tuple[Interval, ...]:
    """The operator on the lower and on the upper bounds; indices are exact."""
    low = _results(node, [x.low for x in operands])
    high = low if all(x.is_exact for x in operands) else _results(node, [x.high for x in operands])
    found = tuple(Interval(*bounds) for bounds in zip(low, high, strict=True))
    return found if len(node.outs) > 1 else found[0]


def _results(node: Application, bounds: Sequence[Array]) -> list[Array]:
    meaning = meaning_of(node)
    assert meaning is not None, f"{node.op.name} moves elements, so it has a meaning"
    found = meaning(bounds, node)
    return [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]
