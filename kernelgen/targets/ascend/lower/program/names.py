"""What a name of the nest stands for in a tile program."""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.ascendc.builder import Tensor
from kernelgen.ascendc.expressions import Expression, Number
from kernelgen.ascendc.instructions import TensorRef
from kernelgen.tensor.dtypes import DType

START = Number(0)


@dataclass(frozen=True)
class Constant:
    """A number of the nest."""

    value: bool | int | float
    dtype: DType


@dataclass(frozen=True)
class Held:
    """Elements in a tile from ``offset`` on: one for each iteration of the loops ``axes``, a single one for none.

    With two axes there is a row for each iteration of the first, each at a whole block (:mod:`lanes`).
    ``bits`` says that a bool is a bit of each lane; its tile is uint8 then. ``level`` is the depth of the loops that the
    value was made in: it is there for all that lies deeper. ``narrow`` is the int32 value that an int64 one was cast from.
    """

    tensor: Tensor
    dtype: DType
    axes: tuple[str, ...]
    offset: Expression = START
    bits: bool = False
    level: int = 0
    narrow: Held | None = None

    @property
    def ref(self) -> TensorRef:
        """The operand."""
        return self.tensor[self.offset]


Value = Constant | Held
