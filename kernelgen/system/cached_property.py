"""A value that its object computes when it is first asked for, and keeps: ``functools.cached_property`` without the lock.

Until Python 3.12 the standard one takes a lock that all objects of a class share while a value is computed. A child that is
forked while another thread holds it waits for ever, and threads that compile different kernels wait for each other. Without
a lock two threads may both compute a value; both compute the same, and the one that is done last stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Self, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

T_co = TypeVar("T_co", covariant=True)


class cached_property(Generic[T_co]):
    """Decorates a method without arguments: the first access calls it, later ones read the object's ``__dict__``.

    It defines no ``__set__``, so that the stored value hides it and costs no call. Works on frozen dataclasses, too.
    """

    def __init__(self, compute: Callable[..., T_co]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T_co: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> Self | T_co:
        if instance is None:
            return self
        value = self._compute(instance)
        instance.__dict__[self._name] = value
        return value
