"""Named tuples that are made fast are those of typing, but for the types of their fields, which nobody evaluates."""

from __future__ import annotations

import pickle
import typing

import pytest

from kernelgen.system import named_tuples


class Ours(named_tuples.NamedTuple):
    """A place."""

    row: int
    column: int = 3

    @property
    def both(self) -> int:
        """Their sum."""
        return self.row + self.column

    @staticmethod
    def origin() -> Ours:
        """Where all begins."""
        return Ours(0, 0)


class Theirs(typing.NamedTuple):
    """A place."""

    row: int
    column: int = 3


def test_they_are_those_of_typing() -> None:
    assert (Ours(1), Ours(row=1, column=2)) == (Theirs(1), Theirs(1, 2))
    for name in ("_fields", "_field_defaults", "__doc__", "__module__"):
        assert getattr(Ours, name) == getattr(Theirs, name)
    assert str(Ours(1)) == str(Theirs(1)).replace("Theirs", "Ours")
    assert Ours(4).both == 7
    assert Ours.origin()._replace(row=2) == (2, 0)
    assert pickle.loads(pickle.dumps(Ours(5))) == Ours(5)
    assert typing.get_type_hints(Ours) == typing.get_type_hints(Theirs)


class Long(named_tuples.NamedTuple):
    """More fields than there are makers for."""

    a: int
    b: int
    c: int
    d: int
    e: int
    f: int
    g: int
    h: int
    i: int = 9


def test_a_long_one_is_made_as_the_others_are_named() -> None:
    long = Long(*range(8))
    assert long == (*range(8), 9)
    assert (long.a, long.h, long.i, long._replace(b=7)[1]) == (0, 7, 9, 7)
    assert Long(*range(7), h=3).h == 3


def test_fields_by_name_place_and_pattern() -> None:
    match Ours(5, 6):
        case Ours(row, column):
            assert (row, column) == (5, 6)
    assert Ours._make([1, 2])._asdict() == {"row": 1, "column": 2}
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        Ours(1)._replace(depth=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        Ours(1, depth=3)  # pyright: ignore[reportCallIssue]


def test_they_are_frozen_and_need_all_fields_without_defaults() -> None:
    with pytest.raises(AttributeError):
        Ours(1).row = 2  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError, match="row"):
        Ours()  # pyright: ignore[reportCallIssue]


def test_types_stay_texts() -> None:
    assert Ours.__annotations__ == {"row": "int", "column": "int"}
    assert Theirs.__annotations__ != Ours.__annotations__, "typing compiles them"
