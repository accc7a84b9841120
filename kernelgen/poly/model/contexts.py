"""Contexts of isl, which everything that isl makes belongs to.

They are used again, one user at a time: islpy gives a context back only when it outlives all that was made in it, and what
a stage shows of its result may live as long as the kernel. A context that is let go of before takes 7 KB with it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import islpy as isl

_IDLE: list[isl.Context] = []


@contextmanager
def limited_context(operations: int) -> Generator[isl.Context]:
    """A context that nobody else uses meanwhile. What takes more of isl's elementary operations raises isl.Error."""
    try:
        context = _IDLE.pop()
    except IndexError:
        context = isl.Context()
    context.reset_operations()
    context.set_max_operations(operations)
    try:
        yield context
    finally:
        context.set_max_operations(0)
        _IDLE.append(context)
