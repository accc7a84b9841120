"""``typing.NamedTuple`` in half of the time: the types of fields stay texts, which typing would compile one by one.

A process that runs a package makes forty such classes, which by typing take a fifth of the time of all our imports.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Maker(type):
        """Makes a class with annotated fields, some with defaults, and methods what ``collections.namedtuple`` makes."""

        def __new__(cls, name: str, bases: tuple[type, ...], content: dict[str, Any]) -> type:
            fields = content["__annotations__"]
            defaults = [content[field] for field in fields if field in content]
            made = namedtuple(name, fields, defaults=defaults)  # noqa: PYI024  # this is what it is made of
            for key in content.keys() - fields.keys():
                setattr(made, key, content[key])
            return made

    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
