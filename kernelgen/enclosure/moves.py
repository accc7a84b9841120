"""Operators that only move elements: both bounds go where the elements go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.composite.description import OpDesc
from kernelgen.composite.vocabulary import facts
from kernelgen.enclosure.interval import Array, Interval
from kernelgen.semantics.table import meaning_of

MOVES = frozenset(facts(lambda op: op.traits.moves))


def moved(operands: Sequence[Interval], op: OpDesc) -> Interval | tuple[Interval, ...]:
    """The operator on the lower and on the upper bounds; indices are exact."""
    low = _results(op, [x.low for x in operands])
    high = low if all(x.is_exact for x in operands) else _results(op, [x.high for x in operands])
    found = tuple(Interval(*bounds) for bounds in zip(low, high, strict=True))
    return found if len(op.outputs) > 1 else found[0]


def _results(op: OpDesc, bounds: Sequence[Array]) -> list[Array]:
    meaning = meaning_of(op)
    assert meaning is not None, f"{op.name} moves elements, so it has a meaning"
    found = meaning(bounds, op)
    return [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]
