"""What the rule of an operator computes with: one rule yields numpy arrays, intervals, hashed terms, or a kernel's expressions.

A rule says what one element of a result is. That of an element-wise operator is given the elements that it is made of; that
of any other asks for those that it needs, by their places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import DType

T = TypeVar("T")
Place = TypeVar("Place")


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


class Elements(Algebra[T], Protocol[T, Place]):
    """An algebra that also knows the operands of an operator, and the places of their elements, one for each dim."""

    def at(self, operand: int, *places: Place) -> T:
        """The element of an operand at the places, which lie inside of it; 0 of an operand that has no elements."""
        ...

    def extent(self, operand: int, dim: int) -> Dim:
        """The length of an operand's dim."""
        ...

    def number(self, place: Place) -> T:
        """A place as an int64."""
        ...

    def nearest(self, number: T, extent: Dim) -> Place:
        """The place in a dim that is nearest to an integer: 0 for what is below, the last one for what is above."""
        ...

    def inside(self, number: T, extent: Dim) -> T:
        """Whether an integer is a place of a dim, as a bool."""
        ...


ElementRule = Callable[..., Any]
"""``rule(elements, *places, attrs=attrs) -> value``: the element of the result at these places, one for each of its dims."""

ScalarRule = Callable[..., Any]
"""``rule(algebra, *operands, attrs=attrs) -> value``: one element of the result from one element of each operand. Halves
arrive in float32 and the value is rounded to the result's data type, once."""
