"""Operator attributes: an immutable mapping with typed getters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelgen.dims import Dim, Sym

AttrValue = None | bool | int | float | str | Sym | tuple["AttrValue", ...]


@dataclass(frozen=True)
class Attrs(Mapping[str, AttrValue]):
    """Attributes sorted by name, so that equal attributes compare and hash equal.

    Values are bools, ints, floats, strings, symbolic dims and (nested) tuples of them. Lists become tuples.
    """

    items_: tuple[tuple[str, AttrValue], ...] = ()

    @staticmethod
    def of(values: Mapping[str, object] | None = None, /, **more: object) -> Attrs:
        """Attributes from a mapping and keywords; lists are frozen to tuples."""
        merged = {**(values or {}), **more}
        return Attrs(tuple(sorted((name, freeze(value)) for name, value in merged.items())))

    def __getitem__(self, name: str) -> AttrValue:
        for key, value in self.items_:
            if key == name:
                return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self.items_)

    def __len__(self) -> int:
        return len(self.items_)

    def int(self, name: str, default: int | None = None) -> int:
        """An integer attribute."""
        return self._typed(name, default, int)

    def float(self, name: str, default: float | None = None) -> float:
        """A number as float."""
        return float(self._typed(name, default, (int, float)))

    def bool(self, name: str, default: bool | None = None) -> bool:
        """A flag; the integers 0 and 1 count, as AKG writes them."""
        return bool(self._typed(name, default, int))

    def str(self, name: str, default: str | None = None) -> str:
        """A text attribute."""
        return self._typed(name, default, str)

    def ints(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """A tuple of integers; a single integer counts as a tuple of one."""
        value = self._typed(name, default, (int, tuple))
        return value if isinstance(value, tuple) else (value,)

    def dims(self, name: str, default: tuple[Dim, ...] | None = None) -> tuple[Dim, ...]:
        """A tuple of dims (integers or symbols)."""
        value = self._typed(name, default, (int, Sym, tuple))
        return value if isinstance(value, tuple) else (value,)

    def with_(self, **changes: object) -> Attrs:
        """A copy in which the named attributes are set."""
        return Attrs.of(self, **changes)

    def without(self, *names: str) -> Attrs:
        """A copy that lacks the named attributes."""
        return Attrs(tuple((key, value) for key, value in self.items_ if key not in names))

    def _typed(self, name, default, kinds):  # noqa: ANN001, ANN202  # the public getters carry the types
        value = self.get(name, default)
        if value is None:
            raise KeyError(f"attribute {name!r} is missing; present: {', '.join(self) or 'none'}")
        if not isinstance(value, kinds):
            raise TypeError(f"attribute {name!r} is {value!r}, expected {kinds}")
        return value


def freeze(value: object) -> AttrValue:
    """Lists (nested too) and numpy scalars to plain immutable values."""
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    if hasattr(value, "item") and not isinstance(value, Sym):
        return freeze(value.item())  # type: ignore[attr-defined]
    if value is None or isinstance(value, bool | int | float | str | Sym):
        return value
    raise TypeError(f"{type(value).__name__} cannot be an attribute value")
