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

from kernelgen.desc import KernelDesc
from kernelgen.enclosure import Interval, agree, enclose
from kernelgen.errors import KernelgenError
from kernelgen.trials import trials
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
    return chain.from_iterable(maker(desc) for maker in makers)


@dataclass(frozen=True)
class Run:
    """Inputs, and what the kernel of the original made of them: its outputs, then the inputs that it updates."""

    desc: KernelDesc
    inputs: Arrays
    found: Arrays

    def fault(self, desc: KernelDesc) -> str:
        """Why these results cannot be those of a description; empty where they can."""
        return _outside(self.found, enclose(desc, self.inputs))


def _outside(found: Arrays, wanted: Sequence[Interval]) -> str:
    return agree([f"result {place}" for place in range(len(wanted))], found, wanted).fault


def judged(runs: Sequence[Run]) -> Iterator[Judged]:
    """A verdict for every mutant of a kernel that ran."""
    desc = runs[0].desc
    for mutant in mutants(desc):
        if _is_sound(mutant.desc, runs[0].inputs):
            noticed = any(run.fault(mutant.desc) for run in runs)
            verdict, reason = (Verdict.NOTICED, "") if noticed else unnoticed(desc, mutant.desc)
            yield Judged(mutant.kind, mutant.what, verdict, reason)
    wanted = [enclose(desc, run.inputs) for run in runs]
    for what, moved in MOVES.items():
        if any(found.dtype.kind not in "iub" for found in runs[0].found):
            yield _moved(what, moved, runs, wanted)


def _is_sound(desc: KernelDesc, inputs: Arrays) -> bool:
    """Whether a description with a fault still means something: not every fault of shapes is caught by its check."""
    try:
        enclose(desc, inputs)
    except (ValueError, IndexError, KernelgenError):
        return False
    return True


def unnoticed(desc: KernelDesc, mutant: KernelDesc) -> tuple[Verdict, str]:
    """Whether a mutant that was not noticed differs from the original on any of many inputs, and how far."""
    largest, compared = 0.0, 0
    for seed in MORE_SEEDS:
        for number, inputs in enumerate(trials(desc, seed)):
            for one, other in zip(enclose(desc, inputs), enclose(mutant, inputs), strict=True):
                if _disjoint(one, other):
                    return Verdict.MISSED, f"draw {number} of seed {seed} tells them apart"
                known = ~(one.unknown | other.unknown)
                compared += int(np.count_nonzero(known))
                largest = max(largest, _distance(one.middle[known], other.middle[known]))
    if not compared and desc.outputs:
        return Verdict.MISSED, "no draw has a known result"
    if not largest:
        return Verdict.EQUIVALENT, f"the same numbers on all draws of {len(MORE_SEEDS)} seeds"
    return Verdict.ROUNDING, f"{largest:.3g} apart at most, which roundings explain"


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


# ---------------------------------------------------------------- results that are a little off


def _moved(
    what: str, moved: Callable[[Array], Array], runs: Sequence[Run], wanted: Sequence[Sequence[Interval]]
) -> Judged:
    """The results of the kernel, a little off: noticed where any element leaves its range."""
    pairs = list(zip(runs, wanted, strict=True))
    if any(_outside([moved(x) for x in run.found], ranges) for run, ranges in pairs):
        return Judged("outputs", what, Verdict.NOTICED)
    width = min(_narrowest(found, one) for run, ranges in pairs for found, one in zip(run.found, ranges, strict=True))
    if np.isinf(width):
        return _of_no_number(what, runs[0].desc)
    return Judged("outputs", what, Verdict.ROUNDING, f"the narrowest range is {width:.3g} units in the last place wide")


def _of_no_number(what: str, desc: KernelDesc) -> Judged:
    """Results that are all 0, infinite or NaN: such as they must be, or only on these inputs?"""
    for seed in MORE_SEEDS:
        ranges = [each for inputs in trials(desc, seed) for each in enclose(desc, inputs)]
        if any((np.isfinite(each.low) & (each.low != 0) & (each.low.dtype.kind not in "iub")).any() for each in ranges):
            return Judged("outputs", what, Verdict.MISSED, f"inputs of seed {seed} give numbers other than 0")
    return Judged("outputs", what, Verdict.EQUIVALENT, "no result is a number other than 0, on any inputs")


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
