"""A JSON value that knows where it stands, so that every complaint can name its JSON path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar, cast

from kernelgen.errors import DescError

T = TypeVar("T")


@dataclass(frozen=True)
class Cursor:
    """A value and its path, e.g. ``$.op_desc[3].input_desc[0][0].shape``. Every getter raises DescError on a misfit."""

    value: Any
    path: str = "$"

    def fail(self, expected: str) -> NoReturn:
        """Raises DescError: what was expected here and what was found."""
        found = repr(self.value)
        raise DescError(f"expected {expected}, found {found if len(found) <= 60 else found[:57] + '...'}", self.path)

    @property
    def missing(self) -> bool:
        """True for null, and for a key that is not there."""
        return self.value is None

    def key(self, name: str) -> Cursor:
        """The value under a key; :attr:`missing` when there is none."""
        return Cursor(self.table().get(name), f"{self.path}.{name}")

    def items(self) -> Iterator[Cursor]:
        """The elements of a list; none when missing."""
        if self.missing:
            return iter(())
        if not isinstance(self.value, list):
            self.fail("a list")
        elements = cast("list[Any]", self.value)
        return (Cursor(element, f"{self.path}[{i}]") for i, element in enumerate(elements))

    def table(self) -> dict[str, Any]:
        """An object."""
        if not isinstance(self.value, dict):
            self.fail("an object")
        return cast("dict[str, Any]", self.value)

    def text(self) -> str:
        """A string that is not empty."""
        if not isinstance(self.value, str) or not self.value:
            self.fail("a string")
        return self.value

    def integer(self) -> int:
        """An integer; a bool is none."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            self.fail("an integer")
        return self.value

    def number(self) -> bool | int | float:
        """A number or a bool."""
        if not isinstance(self.value, bool | int | float):
            self.fail("a number")
        return self.value

    def parsed(self, parse: Callable[[Any], T]) -> T:
        """The value put through ``parse``, whose ValueError or TypeError is raised as a DescError that names this place."""
        try:
            return parse(self.value)
        except (ValueError, TypeError, KeyError) as error:
            raise DescError(str(error), self.path) from error
