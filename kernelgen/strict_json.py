"""Frozen dataclasses as JSON and back. What is missing, unknown or of another type is an error that names its path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from kernelgen.errors import ArgumentError

T = TypeVar("T")


def to_json(value: object) -> Any:
    """Dataclasses as objects, tuples as lists; numbers, strings, bools and None as they are."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    return [to_json(item) for item in cast(tuple[object, ...], value)] if isinstance(value, tuple) else value


def from_json(kind: type[T], document: object, path: str = "$") -> T:
    """The inverse of :func:`to_json`; fields with a default may be left out. Raises ArgumentError with the path."""
    return cast(T, _read(kind, document, path))


def _read(kind: Any, document: object, path: str) -> object:
    if get_origin(kind) is UnionType:
        (inner,) = (each for each in get_args(kind) if each is not NoneType)
        return None if document is None else _read(inner, document, path)
    if get_origin(kind) is tuple:
        return _read_tuple(get_args(kind), document, path)
    if is_dataclass(kind):
        return _read_fields(kind, document, path)
    if type(document) is not kind:
        raise ArgumentError(f"{path}: expected {kind.__name__}, found {_named(document)}")
    return document


def _read_tuple(kinds: tuple[Any, ...], document: object, path: str) -> tuple[object, ...]:
    if not isinstance(document, list):
        raise ArgumentError(f"{path}: expected a list, found {_named(document)}")
    items = cast(list[object], document)
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(items)
    if len(items) != len(kinds):
        raise ArgumentError(f"{path}: expected {len(kinds)} items, found {len(items)}")
    return tuple(_read(kind, item, f"{path}[{k}]") for k, (kind, item) in enumerate(zip(kinds, items, strict=True)))


def _read_fields(kind: Any, document: object, path: str) -> object:
    if not isinstance(document, Mapping):
        raise ArgumentError(f"{path}: expected an object, found {_named(document)}")
    given, hints = cast(Mapping[str, object], document), _hints(kind)
    known = {field.name: field for field in fields(kind)}
    for name in given:
        if name not in known:
            raise ArgumentError(f"{path}.{name}: unknown; known: {', '.join(known)}")
    for name, field in known.items():
        if name not in given and field.default is MISSING:
            raise ArgumentError(f"{path}.{name}: missing")
    values = {name: _read(hints[name], value, f"{path}.{name}") for name, value in given.items()}
    try:
        return kind(**values)
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error}") from error


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _named(document: object) -> str:
    return "null" if document is None else f"{type(document).__name__} {document!r}"[:60]
