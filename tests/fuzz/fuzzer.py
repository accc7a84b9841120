"""What a fuzzer is: samples from seeds, a check, a way to smaller samples, and a text form that can be kept."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.fuzz.outcome import PASSED, Kind, Outcome

Sample = Any
"""What the fuzzer draws: a text, bytes, a model with inputs."""
Document = Any
"""The sample as JSON can hold it."""
Check = Callable[[Sample, int], Outcome]
NAMES = ("onnx_models", "text_ir", "composite_json", "onnx_bytes", "flags", "plans")


def _as_it_is(sample: Sample) -> Document:
    return sample


def _no_smaller(sample: Sample) -> Iterator[Sample]:
    return iter(())


@dataclass(frozen=True)
class Fuzzer:
    """``draw(seed)`` gives a sample, ``check(sample, level)`` its outcome; both depend on nothing else.

    ``smaller(sample)`` gives samples with less in them, the smallest first. ``version`` grows when seeds change their
    meaning. ``levels`` says whether the level of optimization plays a part.
    """

    draw: Callable[[int], Sample]
    check: Check
    smaller: Callable[[Sample], Iterator[Sample]] = _no_smaller
    to_json: Callable[[Sample], Document] = _as_it_is
    from_json: Callable[[Document], Sample] = _as_it_is
    version: int = 1
    levels: bool = False


def fuzzer(name: str) -> Fuzzer:
    """The fuzzer of a name: ``tests.fuzz.NAME.FUZZER``, or its ``case(seed) -> str | None``."""
    module = importlib.import_module(name if "." in name else f"tests.fuzz.{name}")
    return module.FUZZER if hasattr(module, "FUZZER") else of_case(module.case)


def of_case(case: Callable[[int], str | None]) -> Fuzzer:
    """A fuzzer that is one function: what is wrong with a seed, or None."""

    def check(seed: int, level: int) -> Outcome:
        why = case(seed)
        return PASSED if why is None else Outcome(Kind.WRONG, why.partition("\n")[0][:200], why)

    return Fuzzer(draw=lambda seed: seed, check=check)


def smallest(of: Fuzzer, sample: Sample, level: int, outcome: Outcome, seconds: float) -> Sample:
    """The sample with less and less in it, as long as it comes to an end of the same class."""
    deadline = time.monotonic() + seconds
    while True:
        for candidate in of.smaller(sample):
            if time.monotonic() > deadline:
                return sample
            if of.check(candidate, level).resembles(outcome):
                sample = candidate
                break
        else:
            return sample
