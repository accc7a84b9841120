"""``typing.NamedTuple`` in a tenth of the time: no text is compiled for a class, and the types of its fields stay texts.

A process that runs a package makes forty such classes, which by typing take a fifth of the time of all our imports.
"""

from __future__ import annotations

from collections import namedtuple
from types import FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    _new = tuple.__new__

    # by the number of fields; a class puts their names in, where collections compiles a text
    _MAKERS = (
        lambda _cls: _new(_cls, ()),
        lambda _cls, a: _new(_cls, (a,)),
        lambda _cls, a, b: _new(_cls, (a, b)),
        lambda _cls, a, b, c: _new(_cls, (a, b, c)),
        lambda _cls, a, b, c, d: _new(_cls, (a, b, c, d)),
        lambda _cls, a, b, c, d, e: _new(_cls, (a, b, c, d, e)),
        lambda _cls, a, b, c, d, e, f: _new(_cls, (a, b, c, d, e, f)),
        lambda _cls, a, b, c, d, e, f, g: _new(_cls, (a, b, c, d, e, f, g)),
    )
    _LONGEST = namedtuple("_LONGEST", [f"field{k}" for k in range(len(_MAKERS))])  # noqa: PYI024  # lends its getters

    class _Named(tuple):
        """The methods of a named tuple, for fields of any names."""

        __slots__ = ()

        @classmethod
        def _make(cls, content):
            return cls(*content)

        def _replace(self, /, **changed):
            return type(self)(**{**self._asdict(), **changed})

        def _asdict(self):
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self):
            return (*self,)

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

    class _Maker(type):
        """Makes a class with annotated fields, some with defaults, and methods what ``collections.namedtuple`` makes."""

        def __new__(cls, name: str, bases: tuple[type, ...], content: dict[str, Any]) -> type:
            fields = (*content["__annotations__"],)
            defaults = {field: content.pop(field) for field in fields if field in content}
            if len(fields) < len(_MAKERS):
                return type(name, (_Named,), {**content, **_parts(fields, defaults)})
            made = namedtuple(name, fields, defaults=defaults.values())  # noqa: PYI024  # what all of them are like
            for key, value in content.items():
                setattr(made, key, value)
            return made

    def _parts(fields: tuple[str, ...], defaults: dict[str, Any]) -> dict[str, Any]:
        code = _MAKERS[len(fields)].__code__.replace(co_varnames=("_cls", *fields), co_name="__new__")
        parts = {
            "__slots__": (),
            "__new__": FunctionType(code, globals(), "__new__", (*defaults.values(),)),
            "__match_args__": fields,
            "_fields": fields,
            "_field_defaults": defaults,
        }
        return parts | {field: getattr(_LONGEST, f"field{k}") for k, field in enumerate(fields)}

    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
