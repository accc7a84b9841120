"""What a name of the nest stands for in a tile program."""

from __future__ import annotations

from dataclasses import dataclass

from kernelgen.dtypes import DType
from kernelgen.targets.ascend.build import Tensor
from kernelgen.targets.ascend.expressions import Expression, Number
from kernelgen.targets.ascend.instructions import TensorRef

ONE, LANES = "one", "lanes"
START = Number(0)


@dataclass(frozen=True)
class Constant:
    """A number of the nest."""

    value: bool | int | float
    dtype: DType


@dataclass(frozen=True)
class Held:
    """Elements in a tile from ``offset`` on: one in the first lane, or a lane for each iteration of the vector loop.

    ``bits`` says that a bool is a bit of each lane; its tile is uint8 then.
    """

    tensor: Tensor
    dtype: DType
    reach: str = LANES
    offset: Expression = START
    bits: bool = False

    @property
    def ref(self) -> TensorRef:
        """The operand."""
        return self.tensor[self.offset]


Value = Constant | Held
