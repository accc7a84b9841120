"""Frozen dataclasses and named tuples as JSON and back; those with a ``from_text``, the inverse of ``str``, as strings.

What is missing, unknown or of another type is an error that names its path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from itertools import repeat
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from kernelgen.errors import ArgumentError

T = TypeVar("T")


def to_json(value: object) -> Any:
    """Dataclasses and named tuples as objects, tuples as lists; numbers, strings, bools and None as they are."""
    if hasattr(value, "from_text"):
        return str(value)
    if not isinstance(value, type) and _is_record(value):
        return {name: to_json(getattr(value, name)) for name in _defaults(type(value))}
    return [to_json(item) for item in cast(tuple[object, ...], value)] if isinstance(value, tuple) else value


def from_json(kind: type[T], document: object, path: str = "$") -> T:
    """The inverse of :func:`to_json`; fields with a default may be left out. Raises ArgumentError with the path."""
    return cast(T, _reader(kind)(document, path))


Reader = Callable[[object, str], object]


@cache
def _reader(kind: Any) -> Reader:
    """What reads values of a type; it is looked at once, however many there are."""
    if get_origin(kind) is UnionType:
        (inner,) = (_reader(each) for each in get_args(kind) if each is not NoneType)
        return lambda document, path: None if document is None else inner(document, path)
    if get_origin(kind) is tuple:
        return _tuple_reader(get_args(kind))
    if hasattr(kind, "from_text"):
        return _text_reader(kind)
    return _fields_reader(kind) if _is_record(kind) else _plain_reader(kind)


def _plain_reader(kind: type) -> Reader:
    def read(document: object, path: str) -> object:
        if type(document) is not kind:
            raise ArgumentError(f"{path}: expected {kind.__name__}, found {_named(document)}")
        return document

    return read


def _text_reader(kind: Any) -> Reader:
    text = _plain_reader(str)

    def read(document: object, path: str) -> object:
        found = text(document, path)
        try:
            return kind.from_text(found)
        except ArgumentError as error:
            raise ArgumentError(f"{path}: {error}") from error

    return read


def _tuple_reader(kinds: tuple[Any, ...]) -> Reader:
    of_all = _reader(kinds[0]) if kinds[-1] is Ellipsis else None
    of_each = () if of_all else tuple(map(_reader, kinds))

    def read(document: object, path: str) -> object:
        if not isinstance(document, list):
            raise ArgumentError(f"{path}: expected a list, found {_named(document)}")
        items = cast(list[object], document)
        readers = repeat(of_all, len(items)) if of_all else of_each
        if not of_all and len(items) != len(of_each):
            raise ArgumentError(f"{path}: expected {len(of_each)} items, found {len(items)}")
        return tuple([one(item, f"{path}[{k}]") for k, (one, item) in enumerate(zip(readers, items, strict=True))])

    return read


def _fields_reader(kind: Any) -> Reader:
    hints = get_type_hints(kind)
    defaults = _defaults(kind)
    readers = {name: _reader(hints[name]) for name in defaults}
    needed = tuple(name for name, default in defaults.items() if default is MISSING)

    def read(document: object, path: str) -> object:
        if not isinstance(document, Mapping):
            raise ArgumentError(f"{path}: expected an object, found {_named(document)}")
        given = cast(Mapping[str, object], document)
        for name in given:
            if name not in readers:
                raise ArgumentError(f"{path}.{name}: unknown; known: {', '.join(readers)}")
        for name in needed:
            if name not in given:
                raise ArgumentError(f"{path}.{name}: missing")
        values = {name: readers[name](value, f"{path}.{name}") for name, value in given.items()}
        try:
            return kind(**values)
        except ArgumentError as error:
            raise ArgumentError(f"{path}: {error}") from error

    return read


def _is_record(kind: object) -> bool:
    return is_dataclass(kind) or hasattr(kind, "_field_defaults")


@cache
def _defaults(kind: Any) -> Mapping[str, object]:
    """The names of the fields with their defaults, where they have any."""
    if is_dataclass(kind):
        return {field.name: field.default for field in fields(kind)}
    return {name: kind._field_defaults.get(name, MISSING) for name in kind._fields}


def _named(document: object) -> str:
    return "null" if document is None else f"{type(document).__name__} {document!r}"[:60]
