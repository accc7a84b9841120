"""Functions that compile themselves: traced, optimized and compiled once for each set of argument types."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import update_wrapper
from inspect import Signature, signature
from typing import Any, overload

from graphkernel.communication.groups import Communicators
from graphkernel.driver import Flags, check_options, compile
from graphkernel.errors import InputError
from graphkernel.frontends.arguments import Arguments, Receiver, specs_of
from graphkernel.frontends.extents import Extents
from graphkernel.frontends.structure import mapped
from graphkernel.frontends.trace import record_call
from graphkernel.runtime.executable import Executable
from graphkernel.system.environment import check_threads
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.types import TensorType

KEPT_EXECUTABLES = 128
"""How many a function keeps, those of the latest calls; each takes some hundred kilobytes, and its constants."""


@dataclass(frozen=True)
class Compiled:
    """An executable, and the containers that the function returns, with the number of an output at each leaf."""

    executable: Executable
    result: Any

    def __call__(self, arrays: list[Any], out: Any) -> Any:  # any library's arrays, in containers
        """What the function returns for these arrays."""
        outputs = self.executable(*arrays, out=out)
        if self.result == 0:  # one output and no containers
            return outputs[0]
        return mapped(lambda place: None if place is None else outputs[place], self.result)


@dataclass(eq=False, repr=False)
class Jitted:
    """A function together with its executables. It takes and gives what the function does, with arrays for tensors.

    As a method it knows the object by identity: what a function reads from it, or from anywhere but its arguments, it
    reads once, when it is traced.
    """

    function: Callable[..., Any]
    options: dict[str, Any]
    dynamic: bool = False
    communicator: Communicators = None
    _latest: OrderedDict[Hashable, Compiled] = field(default_factory=OrderedDict[Hashable, Compiled])
    _extents: dict[Hashable, Extents] = field(default_factory=dict[Hashable, Extents])

    def __call__(self, /, *positional: Any, out: Any = None, **keywords: Any) -> Any:  # any library's arrays
        """Runs the executable for these arguments, made at the first call with such. ``out`` takes a tuple of arrays."""
        places, names = self._in_place(positional, keywords)
        arguments = Arguments.of(places, names)
        if arguments.are_traced:
            return self.function(*mapped(_opened, places), **names)
        return self._found(arguments, places, names)(arguments.arrays, out)

    def __repr__(self) -> str:
        return f"<Jitted {_name(self.function)}: {len(self.executables)} executables>"

    def __get__(self, instance: object, owner: type | None = None) -> Any:  # as functions have it
        return self if instance is None else Method(self, instance)

    @property
    def executables(self) -> tuple[Executable, ...]:
        """Those of the latest calls, the latest last."""
        return tuple(dict.fromkeys(found.executable for found in self._latest.values()))

    def executable(self, /, *positional: Any, **keywords: Any) -> Executable:  # any library's arrays
        """The executable for such arguments."""
        placed = self._in_place(positional, keywords)
        return self._found(Arguments.of(*placed), *placed).executable

    @cached_property
    def _signature(self) -> Signature:
        return signature(self.function)

    def _found(self, arguments: Arguments, positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> Compiled:
        key = arguments.key
        found = self._latest.get(key)
        if found is None:
            found = self._latest[key] = self._made(arguments, positional, keywords)
        with suppress(KeyError):  # another thread may have let go of it, or of the oldest
            self._latest.move_to_end(key)
            while len(self._latest) > KEPT_EXECUTABLES:
                self._latest.popitem(last=False)
        return found

    def _in_place(
        self, positional: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """Arguments where the function has a place for them, whether they were given there or by name."""
        if not keywords:
            return positional, keywords
        try:
            bound = self._signature.bind(*positional, **keywords)
        except TypeError as error:
            raise InputError(f"{_name(self.function)}: {error}") from None
        return bound.args, bound.kwargs

    def _made(self, arguments: Arguments, positional: tuple[Any, ...], keywords: Mapping[str, Any]) -> Compiled:
        """With symbols for the extents that change between calls, where that is wanted and the function allows it."""

        def make(types: Sequence[TensorType]) -> Compiled:
            recorded = record_call(self.function, *specs_of((positional, dict(keywords)), types))
            return Compiled(compile(recorded.graph, **self.options).over(self.communicator), recorded.result)

        if not self.dynamic:
            return make(arguments.types)
        while len(self._extents) >= KEPT_EXECUTABLES:
            self._extents.pop(next(iter(self._extents)), None)
        family = (*map(len, arguments.shapes), *arguments.rest)
        return self._extents.setdefault(family, Extents()).made(arguments.types, make)


@dataclass(frozen=True, eq=False, repr=False)
class Method:
    """A compiled function as a method of an object."""

    jitted: Jitted
    instance: object

    def __call__(self, /, *positional: Any, out: Any = None, **keywords: Any) -> Any:  # any library's arrays
        """See :class:`Jitted`."""
        return self.jitted(Receiver(self.instance), *positional, out=out, **keywords)

    def __repr__(self) -> str:
        return f"<{self.jitted!r} of {type(self.instance).__name__}>"

    def executable(self, /, *positional: Any, **keywords: Any) -> Executable:  # any library's arrays
        """The executable for such arguments."""
        return self.jitted.executable(Receiver(self.instance), *positional, **keywords)


def _name(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _opened(leaf: Any) -> Any:  # of any type
    return leaf.get() if isinstance(leaf, Receiver) else leaf


@overload
def jit(
    function: Callable[..., Any],
    /,
    *,
    opt_level: int = 2,
    target: str = "cpu",
    flags: Flags = None,
    dynamic: bool = False,
    threads: int | None = None,
    communicator: Communicators = None,
) -> Jitted: ...
@overload
def jit(
    *,
    opt_level: int = 2,
    target: str = "cpu",
    flags: Flags = None,
    dynamic: bool = False,
    threads: int | None = None,
    communicator: Communicators = None,
) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(
    function: Callable[..., Any] | None = None,
    /,
    *,
    opt_level: int = 2,
    target: str = "cpu",
    flags: Flags = None,
    dynamic: bool = False,
    threads: int | None = None,
    communicator: Communicators = None,
) -> Jitted | Callable[[Callable[..., Any]], Jitted]:
    """Makes a function that traces, optimizes and compiles itself; also ``@jit``, ``@jit(opt_level=3)``, and on methods.

    Arguments are arrays, Python's numbers and texts, and tuples, lists and dicts of these, in their places or by name; so
    are results. Numbers are constants of the code and take the type of what they meet; one that is another in every call is
    better an array, ``np.float32(rate)``. Executables are kept on the
    returned object, one for each set of shapes, data types and numbers, up to 128 of them. With ``dynamic`` an extent that
    changes between calls becomes a symbol, so that further lengths need no compilation. ``threads`` and
    ``communicator`` are as for :func:`compile`. Flags that do not exist are an
    ``OptionError`` here, not at the first call; arguments that do not fit are an ``InputError``.
    """
    check_options(opt_level, target, flags)
    check_threads(threads)

    def wrapped(plain: Callable[..., Any]) -> Jitted:
        options = {"opt_level": opt_level, "target": target, "flags": flags, "threads": threads}
        jitted = Jitted(plain, options, dynamic, communicator)
        update_wrapper(jitted, plain, updated=())
        return jitted

    return wrapped if function is None else wrapped(function)
