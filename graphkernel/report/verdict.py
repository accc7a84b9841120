"""Whether two results are the same but for rounding: where they are apart, float64 is the judge.

Two runs in float32 may differ by more than any fixed tolerance and both be right: a long chain of operators, a result
that is the small difference of large numbers. So where results are further apart than the tolerance, the graph is
evaluated once in float64 and once, by numpy, in its own types. How far these two are apart is what rounding does to this
graph on these inputs; a result that is no more than some times as far from float64 is as good as any. Of results that
somebody else computed from the same file more is forgiven, since they need not be ours to be right: the functions of
onnxruntime round more coarsely, most of all next to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphkernel.report.difference import largest_difference
from kernelgen.tensor.boxes import is_text, pairs
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.evaluation.widened import evaluate_wide
from kernelgen.tensor.graph import Graph

Array = np.ndarray[Any, np.dtype[Any]]
MARGIN = 8.0  # times what rounding does to numpy: other orders of summation, and other functions, round otherwise
PEERS_MARGIN = 64.0  # times the same: how far somebody else's results may be
NEXT_TO_ZERO = 1e-6  # what they may be apart whatever the largest value is


@dataclass(frozen=True)
class Judge:
    """How far from float64 each output may be, and what it would be there."""

    exact: tuple[Array, ...]
    rounding: tuple[float, ...]

    @staticmethod
    def of(graph: Graph, arrays: Sequence[Array]) -> Judge:
        """Evaluates the graph twice."""
        exact = evaluate_wide(graph, arrays)
        own = evaluate(graph, arrays)
        return Judge(exact, tuple(_error(*pair) for pair in zip(own, exact, strict=True)))


@dataclass(frozen=True)
class Verdict:
    """Of one output: how far ``found`` and ``expected`` are apart, of the largest value; where that is too far also how
    far each is from float64, and what rounding does to numpy."""

    apart: float
    is_good: bool
    found: float | None = None
    expected: float | None = None
    rounding: float | None = None


def verdicts(
    found: Sequence[Array],
    expected: Sequence[Array],
    judge: Callable[[], Judge],
    tolerance: float,
    is_independent: bool = False,
) -> list[Verdict]:
    """A verdict on each output found; ``judge`` is asked only when some are further apart than the tolerance.

    ``is_independent``: what is expected was not computed from the graph that is the judge. Then it has to be near float64
    as well, or the graph is not what was meant.
    """
    apart = [largest_difference(*pair) for pair in zip(found, expected, strict=True)]
    if all(each <= tolerance for each in apart):
        return [Verdict(each, is_good=True) for each in apart]
    asked = judge()
    results = zip(apart, found, expected, asked.exact, asked.rounding, strict=True)
    return [_judged(*each, tolerance, is_independent) for each in results]


def _judged(
    apart: float, found: Array, expected: Array, exact: Array, rounding: float, tolerance: float, is_independent: bool
) -> Verdict:
    if apart <= tolerance:
        return Verdict(apart, is_good=True)
    of_found, of_expected = _error(found, exact), _error(expected, exact)
    matches = pairs(found, expected)
    noise = rounding if np.isfinite(rounding) else 0.0
    is_good = (
        matches is not None
        and all((one.shape, one.dtype) == (other.shape, other.dtype) for one, other in matches)
        and of_found <= max(tolerance, MARGIN * noise)
        and (not is_independent or of_expected <= max(tolerance, PEERS_MARGIN * noise, _next_to_zero(exact)))
    )
    return Verdict(apart, is_good, of_found, of_expected, rounding)


def _next_to_zero(exact: Array) -> float:
    """The smallest difference that counts, of the largest value."""
    floats = [array[np.isfinite(array)] for array, _ in pairs(exact, exact) or () if array.dtype.kind == "f"]
    largest = max((float(np.abs(array).max(initial=0.0)) for array in floats), default=0.0)
    return NEXT_TO_ZERO / largest if largest else 0.0


def _error(array: Array, exact: Array) -> float:
    """How far an array is from float64, of the largest value there."""
    found = pairs(array, exact)
    if found is None:
        return float("inf")
    return max((largest_difference(_like(*pair), pair[1]) for pair in found), default=0.0)


def _like(array: Array, exact: Array) -> Array:
    return array if is_text(array) else array.astype(exact.dtype)
