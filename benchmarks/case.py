"""What one benchmark declares: shapes, the graph in our operators, the same in numpy and in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from types import ModuleType
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Function = Callable[..., Any]
FLOAT_BYTES = 4


@dataclass(frozen=True)
class Case:
    """One float32 computation with one output.

    ``ours`` takes traced tensors, ``numpy`` arrays (its float64 result is the truth), ``torch`` is given the module and
    returns the peer's function. ``tiny`` are the shapes that keep a benchmark alive in a test.
    """

    name: str
    shapes: Mapping[str, Shape]
    tiny: Mapping[str, Shape]
    ours: Function
    numpy: Function
    torch: Callable[[ModuleType], Function]

    def at(self, tiny: bool) -> Problem:
        """The case with its inputs drawn."""
        return Problem(self, self.tiny if tiny else self.shapes)


@dataclass(frozen=True)
class Problem:
    """A case at given shapes, with its inputs, its true answer and the bytes that it must move."""

    case: Case
    shapes: Mapping[str, Shape]

    @cached_property
    def inputs(self) -> tuple[np.ndarray, ...]:
        """Uniform values in [-1, 1); in [0.5, 1.5) for inputs named ``variance``. The same in every process."""
        generator = np.random.default_rng(0)
        drawn = [generator.random(shape, dtype=np.float32) for shape in self.shapes.values()]
        return tuple(
            values + np.float32(0.5) if name == "variance" else values * np.float32(2) - np.float32(1)
            for name, values in zip(self.shapes, drawn, strict=True)
        )

    @cached_property
    def truth(self) -> np.ndarray:
        """The answer in float64."""
        return np.asarray(self.case.numpy(*(values.astype(np.float64) for values in self.inputs)))

    @cached_property
    def bytes(self) -> int:
        """Every input read once and the output written once."""
        return FLOAT_BYTES * (sum(prod(shape) for shape in self.shapes.values()) + self.truth.size)

    def error(self, answer: np.ndarray) -> float:
        """The largest difference from the truth, relative to the largest value of the truth."""
        scale = max(float(np.max(np.abs(self.truth))), np.finfo(np.float64).tiny)
        return float(np.max(np.abs(answer.reshape(self.truth.shape) - self.truth))) / scale


def channel(values: np.ndarray, rank: int = 4) -> np.ndarray:
    """A vector along axis 1 of a tensor of the given rank."""
    return values.reshape(1, -1, *(1 for _ in range(rank - 2)))


def named(cases: Sequence[Case], names: Sequence[str]) -> tuple[Case, ...]:
    """The cases of those names, in declared order; all when no name is given. An unknown name raises ValueError."""
    unknown = set(names) - {case.name for case in cases}
    if unknown:
        raise ValueError(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(c.name for c in cases)}")
    return tuple(case for case in cases if case.name in names or not names)
