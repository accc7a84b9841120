"""Constants that are computed from others, within bounds: a text of a hundred bytes can ask for terabytes of them.

grows(operands, results)      one result is far more than what it is computed from: it is not computed
Allowance.beside(own)         all that is computed for one model: what its own constants take, and some more
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kernelgen.system.limits import LIMITS
from kernelgen.tensor.types import TensorType


def grows(operands: Iterable[TensorType], results: Iterable[TensorType]) -> bool:
    """Whether a result has more elements than ``LIMITS.constant_elements``, and than all operands together."""
    given = sum(type_.size for type_ in operands if isinstance(type_.size, int))
    return any(isinstance(type_.size, int) and type_.size > max(given, LIMITS.constant_elements) for type_ in results)


@dataclass
class Allowance:
    """The bytes that may still be computed; below 0 nothing more is."""

    left: int

    @staticmethod
    def beside(own: Iterable[int]) -> Allowance:
        """For a model whose own constants take so many bytes each."""
        return Allowance(LIMITS.folded_bytes + sum(own))

    @property
    def is_spent(self) -> bool:
        """Whether what is known has to stay an operator from now on."""
        return self.left < 0

    def take(self, sizes: Iterable[int]) -> None:
        """Counts the bytes of what was computed."""
        self.left -= sum(sizes)
