"""Operator attributes: an immutable mapping with typed getters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast, overload

import numpy as np

from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.dims import Dim, Sym

AttrValue = None | bool | int | float | str | Sym | tuple["AttrValue", ...]

# The getters are named after the builtin types, which hides those names inside the class.
Integer: TypeAlias = int
Number: TypeAlias = float
Flag: TypeAlias = bool
Text: TypeAlias = str
T = TypeVar("T")

PLAIN: Final = frozenset({type(None), bool, int, float, str, Sym})
"""The types of most values and of their elements, which stay as they are."""


class Attrs(Mapping[str, AttrValue]):
    """Attributes sorted by name, so that equal attributes compare and hash equal.

    Values are bools, ints, floats, strings, symbolic dims and (nested) tuples of them. Lists become tuples.
    """

    def __init__(self, items_: tuple[tuple[Text, AttrValue], ...] = ()) -> None:
        self.items_: Final = items_

    def __eq__(self, other: object) -> Flag:
        return self.items_ == other.items_ if isinstance(other, Attrs) else NotImplemented

    @cached_property
    def _hash(self) -> Integer:
        return hash(self.items_)

    def __hash__(self) -> Integer:
        return self._hash  # attributes are in the keys of most tables

    def __reduce__(self) -> tuple[type[Attrs], tuple[tuple[tuple[Text, AttrValue], ...]]]:
        return Attrs, (self.items_,)  # hashes of texts are another process's own

    def __repr__(self) -> Text:
        return f"Attrs({self.items_!r})"

    @staticmethod
    def of(values: Mapping[str, object] | None = None, /, **more: object) -> Attrs:
        """Attributes from a mapping and keywords; lists are frozen to tuples."""
        merged = {**(values or {}), **more}
        if not merged:
            return NONE  # most operators have none, and what is computed of attributes stays with them
        return Attrs(tuple(sorted((name, freeze(value)) for name, value in merged.items())))

    @cached_property
    def text(self) -> Text:
        """What ``repr`` gives: unlike ``==`` it tells 1 from True and from 1.0, and 0.0 from -0.0."""
        return repr(self)

    def __getitem__(self, name: str) -> AttrValue:
        for key, value in self.items_:
            if key == name:
                return value
        raise KeyError(name)

    @overload
    def get(self, key: Text, default: None = None, /) -> AttrValue: ...
    @overload
    def get(self, key: Text, default: AttrValue | T, /) -> AttrValue | T: ...
    def get(self, key: Text, default: object = None, /) -> object:
        """The attribute, or ``default`` where it is missing; told without an exception, for most are."""
        for name, value in self.items_:
            if name == key:
                return value
        return default

    def __iter__(self) -> Iterator[Text]:
        return (key for key, _ in self.items_)

    def __len__(self) -> int:
        return len(self.items_)

    def int(self, name: Text, default: Integer | None = None) -> Integer:
        """An integer attribute."""
        return self._typed(name, default, Integer)

    def float(self, name: Text, default: Number | None = None) -> Number:
        """A number as float."""
        return float(self._typed(name, default, (Integer, Number)))

    def number(self, name: Text, default: Integer | Number | None = None) -> Integer | Number:
        """A number as it stands: a whole one stays exact."""
        return self._typed(name, default, (Integer, Number))

    def bool(self, name: Text, default: Flag | None = None) -> Flag:
        """A flag; the integers 0 and 1 count, as AKG writes them."""
        return bool(self._typed(name, default, Integer))

    def str(self, name: Text, default: Text | None = None) -> Text:
        """A text attribute."""
        return self._typed(name, default, Text)

    def ints(self, name: Text, default: tuple[Integer, ...] | None = None) -> tuple[Integer, ...]:
        """A tuple of integers; a single integer counts as a tuple of one."""
        value = self._typed(name, default, (Integer, tuple))
        return value if isinstance(value, tuple) else (value,)

    def dims(self, name: Text, default: tuple[Dim, ...] | None = None) -> tuple[Dim, ...]:
        """A tuple of dims (integers or symbols)."""
        value = self._typed(name, default, (Integer, Sym, tuple))
        return value if isinstance(value, tuple) else (value,)

    def with_(self, **changes: object) -> Attrs:
        """A copy in which the named attributes are set."""
        return Attrs.of(dict(self.items_), **changes)

    def without(self, *names: Text) -> Attrs:
        """A copy that lacks the named attributes."""
        return Attrs(tuple((key, value) for key, value in self.items_ if key not in names))

    def _typed(self, name: Text, default: Any, kinds: type | tuple[type, ...]) -> Any:
        value = default
        for key, found in self.items_:
            if key == name:
                value = found
                break
        if value is None:
            raise KeyError(f"attribute {name!r} is missing; present: {', '.join(self) or 'none'}")
        if not isinstance(value, kinds):
            raise TypeError(f"attribute {name!r} is {value!r}, expected {kinds}")
        return value


NONE: Final = Attrs()
"""No attributes."""


def freeze(value: object) -> AttrValue:
    """Lists (nested too) and numpy scalars to plain immutable values. Raises TypeError for values of other types."""
    if type(value) in PLAIN:
        return cast("AttrValue", value)
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        return tuple(cast("Sequence[AttrValue]", items) if PLAIN.issuperset(map(type, items)) else map(freeze, items))
    if isinstance(value, np.generic):
        return freeze(value.item())
    if value is None or isinstance(value, bool | int | float | str | Sym):
        return value
    raise TypeError(f"{type(value).__name__} cannot be an attribute value")


def symbols_in(values: Iterable[AttrValue]) -> Iterator[str]:
    """The symbols of the dims among attribute values, those of nested tuples too; some may come twice."""
    for value in values:
        if isinstance(value, Sym):
            yield from value.symbols
        elif isinstance(value, tuple):
            yield from symbols_in(value)


def with_dims(value: AttrValue, change: Callable[[Sym], Dim]) -> AttrValue:
    """The value whose symbolic dims, those of nested tuples too, are changed."""
    if isinstance(value, tuple):
        return tuple(with_dims(item, change) for item in value)
    return change(value) if isinstance(value, Sym) else value
