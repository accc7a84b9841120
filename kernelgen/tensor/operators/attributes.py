"""Attributes of operators: what a caller may write for each, and what the operator then holds.

A record lists its attributes as ``(axis(), flag("keep_dims"))``. Whoever makes a Python function of the record reads the
parameters, their defaults and annotations from it; an attribute that is only named is optional and held as it is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import REQUIRED, Attribute
from kernelgen.tensor.operators.type_rules import axes_of, axis_of, shape_text
from kernelgen.tensor.types import Dim, Shape, Sym, divide_exactly, dtype, product

Axes = int | Sequence[int] | None
INTS, DIMS, DTYPE = "int | Sequence[int]", "Dim | Sequence[Dim]", "str | DType"


def declared(attributes: Sequence[str | Attribute]) -> tuple[Attribute, ...]:
    """The attributes of a record, of which some may be names only."""
    return tuple(Attribute(each, "Any") if isinstance(each, str) else each for each in attributes)


def plain(name: str, annotation: str, default: object = REQUIRED) -> Attribute:
    """An attribute called ``name`` that is held as it is written; ``annotation`` is its Python type, ``default`` its
    value where it is left out.
    """
    return Attribute(name, annotation, default=default)


def flag(name: str, default: bool = False) -> Attribute:
    """True or False."""
    return Attribute(name, "bool", default=default)


def text(name: str, default: object = REQUIRED) -> Attribute:
    """A word."""
    return Attribute(name, "str", default=default)


def whole(name: str, default: object = REQUIRED) -> Attribute:
    """An integer."""
    return Attribute(name, "int", default=default)


def real_number(name: str, default: object = REQUIRED) -> Attribute:
    """A number, held as a float."""
    return Attribute(name, "float", lambda value, x: float(value), default)


def element(name: str, default: object = REQUIRED) -> Attribute:
    """A number of the operand's kind: an integer stays one beside integers, and is held as a float beside all else."""
    return Attribute(name, "float", lambda value, x: value if x.dtype.is_integer else float(value), default)


def data_type(name: str, default: object = REQUIRED) -> Attribute:
    """A data type, held by name."""
    return Attribute(name, DTYPE, lambda value, x: dtype(value).name, default)


def axis(name: str = "axis", default: object = REQUIRED, *, new: int = 0) -> Attribute:
    """One axis of operand 0, or of a result that has ``new`` axes more; held without the sign that counts from the end."""
    return Attribute(name, "int", lambda value, x: axis_of(value, x.rank + new), default)


def axes(name: str = "axis", default: Axes = None) -> Attribute:
    """Axes of operand 0, held sorted; None and () mean all."""
    return Attribute(name, f"{INTS} | None", lambda value, x: normal_axes(value, x.rank), default, reads_none=True)


def ints(name: str, default: object = REQUIRED) -> Attribute:
    """Integers."""
    return Attribute(name, "Sequence[int]", lambda value, x: tuple(value), default)


def dims(name: str = "shape", default: object = REQUIRED) -> Attribute:
    """Extents; one stands for a shape of one dim."""
    return Attribute(name, DIMS, lambda value, x: as_shape(value), default)


def repeated(name: str, count: int, default: object = REQUIRED, *, quiet: bool = False) -> Attribute:
    """``count`` integers; one stands for all of them. ``quiet``: left out where it is the default."""
    return Attribute(name, INTS, lambda value, x: times(value, count), default, quiet=quiet)


def as_ints(value: int | Sequence[int]) -> tuple[int, ...]:
    """One int as a tuple of one."""
    return (value,) if isinstance(value, int) else tuple(value)


def times(value: int | Sequence[int], count: int) -> tuple[int, ...]:
    """One int as a tuple of ``count`` of it."""
    return (value,) * count if isinstance(value, int) else tuple(value)


def as_shape(value: Dim | Sequence[Dim]) -> Shape:
    """One extent as a shape of one dim."""
    return (value,) if isinstance(value, int | Sym) else tuple(value)


def normal_axes(axis: Axes, rank: int) -> tuple[int, ...]:
    """Sorted non-negative axes; None and () mean all."""
    return axes_of(() if axis is None else as_ints(axis), rank)


def resolved_shape(own: Shape, wished: Shape) -> Shape:
    """The wished shape with its -1 worked out from the elements of a tensor of shape ``own``.

    Raises TypeRuleError where the elements do not tell it.
    """
    if -1 not in wished:
        return wished
    known = product(dim for dim in wished if dim != -1)
    missing = divide_exactly(product(own), known) if wished.count(-1) == 1 and known != 0 else None
    if missing is None:
        raise TypeRuleError(f"Reshape: cannot work out the -1 of {shape_text(wished)} from {product(own)} elements")
    return tuple(missing if dim == -1 else dim for dim in wished)
