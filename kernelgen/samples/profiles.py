"""How the numbers of one input are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelgen.tensor.dtypes import BOOL, Category, DType

Array = np.ndarray[Any, Any]
Random = np.random.Generator

GRID = np.asarray([-2.0, -1.0, -0.5, 0.0, -0.0, 0.5, 1.0, 2.0])
"""Numbers that several inputs share, so that some of their elements are equal."""


@dataclass(frozen=True)
class Profile:
    """A kind of numbers; ``centre`` is what those of kind ``near`` are drawn around."""

    kind: str
    centre: float = 0.0

    def draw(self, dtype: DType, shape: tuple[int, ...], random: Random) -> Array:
        """An array of this profile, also without dims; truth values and integers have their own."""
        return np.asarray(self._numbers(dtype, shape, random))

    def _numbers(self, dtype: DType, shape: tuple[int, ...], random: Random) -> Array | np.generic | bool:
        """The numbers, of which numpy makes no array where there is one without dims."""
        if dtype == BOOL:
            return random.random(shape) < (0.1 if self.kind in ("positive", "share") else 0.5)
        if dtype.is_integer:
            return _integers(self.kind, dtype, shape, random)
        if dtype.category is Category.COMPLEX:
            return (_signed(shape, random) + 1j * _signed(shape, random)).astype(dtype.numpy)
        numbers = _near(self.centre, shape, random) if self.kind == "near" else KINDS[self.kind](shape, random)
        with np.errstate(over="ignore"):  # a constant of float32 may be beyond half precision
            return numbers.astype(dtype.numpy)


def _powers(low: float, high: float, shape: tuple[int, ...], random: Random) -> Array:
    """Magnitudes spread over exponents of two."""
    return np.exp2(random.uniform(low, high, shape))


def _signed(shape: tuple[int, ...], random: Random) -> Array:
    """Seven of ten positive, so that long sums do not cancel."""
    numbers = np.where(random.random(shape) < 0.7, 1, -1) * _powers(-4, 3, shape, random)
    return np.where(random.random(shape) < 0.12, random.choice(GRID, shape), numbers)


def _near(centre: float, shape: tuple[int, ...], random: Random) -> Array:
    """A tenth of them the centre itself."""
    scale = max(abs(centre), 2.0**-10) if centre else 1.0
    apart = np.where(random.random(shape) < 0.5, 1, -1) * _powers(-7, 0, shape, random) * scale
    return np.where(random.random(shape) < 0.1, centre, centre + apart)


def _unit(shape: tuple[int, ...], random: Random) -> Array:
    numbers = random.uniform(-0.97, 0.97, shape)
    return np.where(random.random(shape) < 0.06, random.choice(GRID[2:6], shape), numbers)


KINDS: Mapping[str, Callable[[tuple[int, ...], Random], Array]] = {
    "signed": _signed,
    "positive": lambda shape, random: _powers(-4, 3, shape, random),
    "at least 0": lambda shape, random: _powers(-4, 3, shape, random) * (random.random(shape) < 0.93),
    "unit": _unit,
    "share": lambda shape, random: random.uniform(0.03, 0.97, shape),
    "above 1": lambda shape, random: 1 + _powers(-4, 2, shape, random),
    "big": lambda shape, random: _powers(4, 8, shape, random),
    "negative": lambda shape, random: -_powers(-4, 3, shape, random),
    "small": lambda shape, random: np.where(random.random(shape) < 0.7, 1, -1) * _powers(-16, -8, shape, random),
    "zero": lambda shape, random: np.zeros(shape),
    "flags": lambda shape, random: (random.random(shape) < 0.5).astype(np.float64),
    "large": lambda shape, random: np.where(random.random(shape) < 0.7, 1, -1) * _powers(5.5, 7, shape, random),
}  # fmt: skip
"""Kind -> its numbers."""

PLAIN = tuple(Profile(kind) for kind in KINDS)
"""One profile of every kind that needs no centre."""


def _integers(kind: str, dtype: DType, shape: tuple[int, ...], random: Random) -> Array:
    """Few different ones, so that some are equal; of any size where the profile is large."""
    info = np.iinfo(dtype.numpy)
    low, high = (int(info.min), int(info.max)) if kind == "large" else (max(int(info.min), -3), 5)
    low = max(low, 1) if kind in ("positive", "above 1", "big") else low
    return np.asarray(random.integers(low, high, shape, dtype.numpy, endpoint=True))
