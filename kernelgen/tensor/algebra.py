"""What the rule of an operator computes with: one rule yields numpy arrays, intervals, hashed terms, or a kernel's expressions.

A rule says what one element of a result is. That of an element-wise operator is given the elements that it is made of; that
of any other asks for those that it needs, by their places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from kernelgen.tensor.dtypes import DType

T = TypeVar("T")


class Algebra(Protocol[T]):
    """Values of one kind. Python numbers among ``args`` are constants of the other operands' data type."""

    def call(self, function: str, *args: T | float) -> T:
        """A scalar function of :mod:`kernelgen.nest.scalars`; operands of different data types are promoted as numpy does."""
        ...

    def cast(self, value: T, target: DType) -> T:
        """The value in another data type."""
        ...

    def literal(self, value: float, target: DType) -> T:
        """A constant."""
        ...

    def dtype(self, value: T) -> DType:
        """The value's data type."""
        ...


ScalarRule = Callable[..., Any]
"""``rule(algebra, *operands, attrs=attrs) -> value``: one element of the result from one element of each operand. Halves
arrive in float32 and the value is rounded to the result's data type, once."""
