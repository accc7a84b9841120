"""What a call gives a compiled function: the arrays in order, and a key that tells which executable takes them.

Arrays of any library are inputs, known by shape and data type. Numbers, texts, None and types are known when the function
is traced: Python's numbers are weak there, so that ``x * 2.0`` has the type of ``x``. Containers hold both.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

import numpy as np

from graphkernel.errors import InputError
from graphkernel.frontends.structure import mapped
from graphkernel.frontends.trace import Static, spec
from graphkernel.ops.tensor.tensor import Tensor
from graphkernel.runtime.inputs.arrays import layout_of
from kernelgen.tensor.types import DType, Shape, TensorType

STATIC = (bool, int, float, str, bytes, type(None), type, DType, np.dtype, Enum)
"""What is known when the function is traced; another value is another executable."""


class Receiver:
    """The object whose method is called. It is known by identity, and kept alive by nobody."""

    def __init__(self, instance: object) -> None:
        self._identity = id(instance)
        try:
            self.get: Callable[[], object] = weakref.ref(instance)
        except TypeError:  # no weak references, as to a tuple
            self.get = lambda: instance

    def __hash__(self) -> int:
        return self._identity

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Receiver) and self.get() is other.get() is not None


@dataclass
class Arguments:
    """The arrays of a call, with their shapes, and the rest of what its key is made of.

    ``are_traced``: tensors are among them that another function is being traced with.
    """

    arrays: list[Any]
    shapes: list[Shape]
    rest: list[Hashable]
    are_traced: bool = False

    @staticmethod
    def of(positional: tuple[object, ...], keywords: Mapping[str, object]) -> Arguments:
        """Takes a call apart. Raises ``InputError`` for what is neither an array nor known when a function is traced."""
        found = Arguments([], [], [])
        for position, given in enumerate(positional):
            found.add(given, position)
        for name, given in sorted(keywords.items()):
            found.rest.append(name)
            found.add(given, name)
        return found

    @property
    def key(self) -> Hashable:
        """Equal for calls that one executable takes."""
        return (*self.shapes, *self.rest)

    @property
    def types(self) -> list[TensorType]:
        """The types of the arrays, in order."""
        dtypes = [entry for entry in self.rest if isinstance(entry, np.dtype)]
        return [spec(shape, dtype.name) for shape, dtype in zip(self.shapes, dtypes, strict=True)]

    def add(self, given: Any, name: object) -> None:  # of any type
        """One argument, or a part of one. ``name`` is said in errors."""
        if type(given) is np.ndarray:
            self._add_array(given, given.shape, given.dtype)
        elif isinstance(given, float) and not isinstance(given, np.generic):
            self.rest.append((float, repr(given)))  # 0.0 == -0.0, and NaN equals nothing
        elif isinstance(given, (*STATIC, Receiver)):
            self.rest.append((type(given), given))
        elif isinstance(given, Mapping):
            entries = cast("Mapping[Hashable, object]", given)
            self.rest.append((dict, *entries))
            for key, item in entries.items():
                self.add(item, f"{name}[{key!r}]")
        elif isinstance(given, tuple | list):
            items = cast("Sequence[object]", given)
            self.rest.append((type(items), len(items)))
            for place, item in enumerate(items):
                self.add(item, f"{name}[{place}]")
        elif isinstance(given, Tensor):
            self.are_traced = True
        else:
            own = _type_of(given, name)
            self._add_array(given, own.shape, own.dtype.numpy)

    def _add_array(self, array: object, shape: Shape, dtype: Hashable) -> None:
        self.arrays.append(array)
        self.shapes.append(shape)
        self.rest.append(dtype)


def specs_of(tree: Any, types: Sequence[TensorType]) -> Any:  # any containers
    """The arguments as the tracer takes them: a type for each array, and the rest as known."""
    own = iter(types)

    def leaf(given: object) -> object:
        if isinstance(given, Receiver):
            return Static(given.get())
        if isinstance(given, STATIC) and not isinstance(given, np.generic):
            return Static(given)
        return next(own)

    return mapped(leaf, tree)


def _type_of(given: object, name: object) -> TensorType:
    """The type of an array of any library."""
    try:
        return spec(*layout_of(given, f"argument {name}"))
    except InputError as error:
        raise InputError(f"{error}; numbers, texts, None and types are taken as they are") from None
