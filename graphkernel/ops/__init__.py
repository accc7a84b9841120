"""Operators: declarations, and the Python functions that record or compute them.

Rooms: composite, functions, fused, library, tensor.
Reading order: catalogue, pickles.

Importing the room is light: ``catalogue`` loads all of it when an operator is first asked for by name. Whoever knows in which
file an operator is declared imports that file alone.

``OPS`` maps each name to its declaration; a declaration anywhere in this directory is in it. Every operator is also a
function here under its snake_case name: ``ops.add(ops.mul(x, 2.0), 1.0)``, ``ops.reduce_sum(x, axis=-1)``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphkernel.ops import pickles

if TYPE_CHECKING:
    from graphkernel.ops.catalogue import OPS, Tensor, apply, apply_all, cast, matmul, select, snake_case

__all__ = ["OPS", "Tensor", "apply", "apply_all", "cast", "matmul", "pickles", "select", "snake_case"]


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("__"):
        raise AttributeError(name)
    every = import_module(f"{__name__}.catalogue")
    return getattr(every, name) if name in __all__ else every.function_called(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *import_module(f"{__name__}.catalogue").names()})
