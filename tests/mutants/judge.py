"""Is a mutant noticed? The kernel of the original runs once; its results are held against the meaning of each mutant.

That is as sharp as running the mutant's kernel against the meaning of the original, for it is the same question with the
sides exchanged: are these two results further apart than rounding explains?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any

import numpy as np

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.link import unlinked
from kernelgen.enclosure import Interval, agree, enclosed_values
from kernelgen.errors import KernelgenError
from kernelgen.samples import trials
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.graph import Value
from tests.mutants.mutant import Mutant
from tests.mutants.numbers import axes, constants, cut_short
from tests.mutants.operators import dropped, reversed_operands, swapped, unmoved

Array = np.ndarray[Any, Any]
Arrays = Sequence[Array]

MORE_SEEDS = range(1000, 1008)
"""Of inputs on which a mutant that was not noticed is evaluated once more."""


class Verdict(StrEnum):
    """What became of a mutant."""

    NOTICED = "noticed"
    EQUIVALENT = "equivalent"
    ROUNDING = "within rounding"
    MISSED = "missed"


@dataclass(frozen=True)
class Judged:
    """``reason`` is what was computed, for a mutant that was not noticed."""

    kind: str
    what: str
    verdict: Verdict
    reason: str = ""


def mutants(desc: KernelDesc) -> Iterator[Mutant]:
    """All faults that are put into a description, one at a time."""
    makers = (dropped, unmoved, swapped, reversed_operands, constants, axes, cut_short)
    document = unlinked(desc)
    return chain.from_iterable(maker(document) for maker in makers)


@dataclass(frozen=True)
class Draw:
    """Inputs, and the ranges of all tensors of the original on them."""

    desc: KernelDesc
    inputs: Arrays
    values: Mapping[Value, Interval]

    @staticmethod
    def of(desc: KernelDesc, inputs: Arrays) -> Draw:
        """Evaluates a description."""
        return Draw(desc, inputs, enclosed_values(desc, inputs))

    def results(self, desc: KernelDesc) -> list[Interval]:
        """Ranges of the results of the original or of a mutant."""
        values = self.values if desc is self.desc else enclosed_values(desc, self.inputs)
        return [values[value] for value in (*desc.results, *desc.updates.values())]


@dataclass(frozen=True)
class Run:
    """A draw, and what the kernel of the original made of it: its outputs, then the inputs that it updates."""

    draw: Draw
    found: Arrays

    def fault(self, desc: KernelDesc) -> str:
        """Why these results cannot be those of a description; empty where they can."""
        return _outside(self.found, self.draw.results(desc))


def _outside(found: Arrays, wanted: Sequence[Interval]) -> str:
    return agree([f"result {place}" for place in range(len(wanted))], found, wanted).fault


@dataclass(frozen=True)
class Judge:
    """Has the runs of a kernel, and many more draws for what they do not show."""

    desc: KernelDesc
    runs: Sequence[Run]

    def verdicts(self) -> Iterator[Judged]:
        """A verdict for every mutant."""
        for mutant in mutants(self.desc):
            try:
                noticed = any(run.fault(mutant.desc) for run in self.runs)
            except (ValueError, IndexError, KernelgenError):
                continue  # not every fault of shapes is caught by the check of descriptions: this one means nothing
            verdict, reason = (Verdict.NOTICED, "") if noticed else self.unnoticed(mutant.desc)
            yield Judged(mutant.kind, mutant.what, verdict, reason)
        for what, moved in MOVES.items():
            if any(found.dtype.kind not in "iub" for found in self.runs[0].found):
                yield self.moved(what, moved)

    @cached_property
    def more(self) -> list[tuple[str, Draw]]:
        """Draws on which a mutant that was not noticed is evaluated once more, with their names."""
        return [
            (f"draw {number} of seed {seed}", Draw.of(self.desc, inputs))
            for seed in MORE_SEEDS
            for number, inputs in enumerate(trials(self.desc, seed))
        ]

    def unnoticed(self, mutant: KernelDesc) -> tuple[Verdict, str]:
        """Whether a mutant that was not noticed differs from the original on any of many inputs, and how far."""
        largest, compared = 0.0, 0
        for name, draw in self.more:
            for one, other in zip(draw.results(self.desc), draw.results(mutant), strict=True):
                if _disjoint(one, other):
                    return Verdict.MISSED, f"{name} tells them apart"
                known = ~(one.unknown | other.unknown)
                compared += int(np.count_nonzero(known))
                largest = max(largest, _distance(one.middle[known], other.middle[known]))
        if not compared and self.desc.outputs:
            return Verdict.MISSED, "no draw has a known result"
        if not largest:
            return Verdict.EQUIVALENT, f"the same numbers on all draws of {len(MORE_SEEDS)} seeds"
        return Verdict.ROUNDING, f"{largest:.3g} apart at most, which roundings explain"

    def moved(self, what: str, moved: Callable[[Array], Array]) -> Judged:
        """The results of the kernel, a little off: noticed where any element leaves its range."""
        wanted = [run.draw.results(self.desc) for run in self.runs]
        pairs = list(zip(self.runs, wanted, strict=True))
        if any(_outside([moved(x) for x in run.found], ranges) for run, ranges in pairs):
            return Judged("outputs", what, Verdict.NOTICED)
        width = min(_narrowest(found, one) for run, all_ in pairs for found, one in zip(run.found, all_, strict=True))
        if np.isfinite(width):
            return Judged("outputs", what, Verdict.ROUNDING, f"the narrowest range is {width:.3g} units wide")
        for name, draw in self.more:
            if any(_is_number(each) for each in draw.results(self.desc)):
                return Judged("outputs", what, Verdict.MISSED, f"{name} gives numbers other than 0")
        return Judged("outputs", what, Verdict.EQUIVALENT, "no result is a number other than 0, on any draw")


def _is_number(value: Interval) -> bool:
    return value.low.dtype.kind not in "iub" and bool((np.isfinite(value.low) & (value.low != 0)).any())


def _disjoint(one: Interval, other: Interval) -> bool:
    """Whether some element cannot be both."""
    if one.low.dtype.kind == "c":
        return any(_disjoint(one.map(part), other.map(part)) for part in (np.real, np.imag))
    either = one.unknown | other.unknown
    if one.low.dtype.kind == "f":
        either |= np.isnan(one.low) & np.isnan(other.low)
    return bool((~((one.low <= other.high) & (other.low <= one.high)) & ~either).any())


def _distance(one: Array, other: Array) -> float:
    """The largest difference; infinite where only one is NaN or infinite."""
    differ = ~((one == other) | ((one != one) & (other != other)))
    if not differ.any():
        return 0.0
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        return float(np.nan_to_num(np.abs(one[differ].astype(wide) - other[differ].astype(wide)), nan=np.inf).max())


def _narrowest(found: Array, wanted: Interval) -> float:
    """The width of the narrowest range of a number other than 0, in units in the last place of the results."""
    if found.dtype.kind not in "fV":
        return np.inf
    width, known = wanted.high - wanted.low, np.isfinite(wanted.low) & np.isfinite(wanted.high) & (found != 0)
    return float(np.min(width / _spacing(found), initial=np.inf, where=known))


def _ulps(value: Array) -> Array:
    with np.errstate(all="ignore"):
        return (value + 4 * _spacing(value)).astype(value.dtype)


def _spacing(value: Array) -> Array:
    """A unit in the last place."""
    precision = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}[value.real.dtype.name]
    size = np.maximum(np.abs(value).astype(np.float64), 1e-37 if value.dtype.itemsize > 2 else 6e-5)
    return np.exp2(np.floor(np.log2(size)) - precision)


def _of_floats(change: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda value: value if value.dtype.kind in "iub" else change(value)


MOVES: Mapping[str, Callable[[Array], Array]] = {
    "4 ulp more": _of_floats(_ulps),
    "0.05 % more": _of_floats(lambda value: (value * 1.0005).astype(value.dtype)),
}
