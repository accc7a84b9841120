"""A tensor of a random kernel with bounds of its size and error, and a kernel with its inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.composite.link import unlinked
from kernelgen.tensor.dims import Shape
from kernelgen.tensor.dtypes import (
    BFLOAT16,
    BOOL,
    COMPLEX64,
    COMPLEX128,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Category,
    DType,
)

Array = np.ndarray[Any, Any]

DTYPES = (
    FLOAT32, FLOAT32, FLOAT16, BFLOAT16, FLOAT64, BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64,
)  # fmt: skip
LARGEST = 8.0
"""Floats beyond are clipped before they go on."""
SIGNIFICANT = 3.0
"""The largest magnitude of an input."""
ROUNDING = {
    FLOAT16: 2.0**-10, BFLOAT16: 2.0**-7, **dict.fromkeys((FLOAT32, FLOAT64, COMPLEX64, COMPLEX128), 2.0**-20),
}  # fmt: skip
MOST_ERROR = 0.05
"""Values of less certainty are not used again."""


@dataclass(frozen=True)
class Value:
    """A tensor, the largest magnitude of its elements, and how far they may be from those of another evaluation."""

    tensor: Tensor
    bound: float
    error: float = 0.0

    @property
    def shape(self) -> Shape:
        return self.tensor.shape

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    @property
    def is_number(self) -> bool:
        """Neither a truth value nor complex."""
        return self.dtype.is_float or self.dtype.is_integer

    @property
    def is_complex(self) -> bool:
        return self.dtype.category is Category.COMPLEX

    @property
    def is_exact(self) -> bool:
        """Every evaluation gives the same bits, so that a comparison or a rounding of it may follow."""
        return self.error == 0

    @property
    def rounding(self) -> float:
        """Enough for an inexact operator on a float or a complex number; 0 for integers."""
        return ROUNDING[self.dtype] * max(self.bound, 1) if self.dtype in ROUNDING else 0.0


@dataclass(frozen=True)
class Sample:
    """A kernel, inputs for it, and how far each named tensor may be from the reference.

    ``others`` are inputs of other sizes of the symbols: one compiled kernel must serve them all.
    """

    desc: KernelDesc
    inputs: tuple[Array, ...]
    errors: dict[str, float]
    others: tuple[tuple[Array, ...], ...] = ()

    def __repr__(self) -> str:
        """One line per operator, for the report of a failure."""
        lines = [
            f"{', '.join(f'{t.name}: {_text(t)}' for t in op.outs)} = "
            f"{op.name}({', '.join(map(_operand_text, op.args))}) {dict(op.attrs) or ''}".rstrip()
            for op in unlinked(self.desc).ops
        ]
        inputs = ", ".join(
            f"{t.name}: {_text(t)} of {list(x.shape)}" for t, x in zip(self.desc.inputs, self.inputs, strict=True)
        )
        return "\n".join([f"({inputs})", *lines, f"-> {', '.join(t.name for t in self.desc.outputs)}"])


def _text(tensor: Tensor) -> str:
    return f"{tensor.dtype}{list(tensor.shape)}"


def _operand_text(tensor: Tensor) -> str:
    return tensor.name if tensor.value is None else f"{tensor.value}: {_text(tensor)}"


def wrapped(bound: float, dtype: DType, signed: bool = False) -> float:
    """Integers wrap around: what may leave the range has the range as its bound; below 0 an unsigned type is left at once."""
    if not dtype.is_integer:
        return bound
    limit = float(np.iinfo(dtype.numpy).max) + 1
    return limit if bound >= limit or (signed and dtype.category is Category.UINT) else bound


def mixed_numbers(kind: DType, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Both signs, magnitudes up to :data:`SIGNIFICANT`, half of them spread over ten powers of two; some zeros.

    Half of the integer arrays have small numbers, the others all that there are.
    """
    if kind == BOOL:
        return random.integers(0, 2, shape).astype(bool)
    if kind.is_integer:
        info = np.iinfo(kind.numpy)
        low, high = (max(int(info.min), -3), 4) if random.random() < 0.5 else (int(info.min), int(info.max))
        return np.asarray(random.integers(low, high, shape, kind.numpy, endpoint=True))
    if kind.category is Category.COMPLEX:
        return (_reals(shape, random) + 1j * _reals(shape, random)).astype(kind.numpy)
    return _reals(shape, random).astype(kind.numpy)


def special_numbers(kind: DType, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """:func:`mixed_numbers` with a tenth of NaN, infinities, subnormal numbers and zeros of either sign among the floats."""
    drawn = mixed_numbers(kind, shape, random)
    if not kind.is_float:
        return drawn
    tiny = 2.0**-24 if kind == FLOAT16 else 2.0**-130
    special = random.choice(np.asarray([np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny]), shape)
    return np.where(random.random(shape) < 0.1, special.astype(kind.numpy), drawn)


def _reals(shape: tuple[int, ...], random: np.random.Generator) -> Array:
    even = random.uniform(-SIGNIFICANT, SIGNIFICANT, shape)
    spread = np.exp2(random.uniform(-10, 0, shape))
    return np.asarray(np.where(random.random(shape) < 0.5, even, even * spread) * (random.random(shape) > 0.02))
