"""Functions that compile themselves: traced, optimized and compiled once for each set of argument types."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import update_wrapper
from typing import Any, overload

from graphkernel.driver import Flags, check_options, compile
from graphkernel.frontends.trace import spec, trace
from graphkernel.ir.types import TensorType
from graphkernel.runtime.arrays import layout_of
from graphkernel.runtime.executable import Executable

Signature = tuple[TensorType, ...]

KEPT_EXECUTABLES = 128
"""How many a function keeps, those of the latest calls; each takes some hundred kilobytes, and its constants."""


@dataclass(eq=False)
class Jitted:
    """A function together with its executables. Takes arrays; gives one array, or a tuple when the function gives several."""

    function: Callable[..., Any]
    options: dict[str, Any]
    executables: OrderedDict[Signature, Executable] = field(default_factory=OrderedDict[Signature, Executable])

    def __call__(self, *arrays: object, out: Any = None) -> Any:  # as the arguments: any library's arrays
        """Runs the executable for these argument types, made at the first call with them."""
        results = self.executable(*arrays)(*arrays, out=out)
        return results[0] if len(results) == 1 else results

    def executable(self, *arrays: object) -> Executable:
        """The executable for arguments of these shapes and data types."""
        layouts = [layout_of(array, f"argument {position}") for position, array in enumerate(arrays)]
        signature = tuple([spec(*layout) for layout in layouts])
        found = self.executables.get(signature)
        if found is None:
            found = self.executables[signature] = compile(trace(self.function, *signature), **self.options)
        with suppress(KeyError):  # another thread may have let go of it, or of the oldest
            self.executables.move_to_end(signature)
            while len(self.executables) > KEPT_EXECUTABLES:
                self.executables.popitem(last=False)
        return found


@overload
def jit(function: Callable[..., Any], /, *, opt_level: int = 2, target: str = "cpu", flags: Flags = None) -> Jitted: ...
@overload
def jit(*, opt_level: int = 2, target: str = "cpu", flags: Flags = None) -> Callable[[Callable[..., Any]], Jitted]: ...
def jit(
    function: Callable[..., Any] | None = None, /, *, opt_level: int = 2, target: str = "cpu", flags: Flags = None
) -> Jitted | Callable[[Callable[..., Any]], Jitted]:
    """Makes a function that traces, optimizes and compiles itself; also ``@jit`` and ``@jit(opt_level=3)``.

    Executables are kept on the returned object, one for each set of shapes and data types, up to 128 of them; what sees
    more shapes is better traced with symbolic extents and compiled once. Flags that do not exist are
    an ``OptionError`` here, not at the first call.
    """
    check_options(opt_level, target, flags)

    def wrapped(plain: Callable[..., Any]) -> Jitted:
        jitted = Jitted(plain, {"opt_level": opt_level, "target": target, "flags": flags})
        update_wrapper(jitted, plain, updated=())
        return jitted

    return wrapped if function is None else wrapped(function)
