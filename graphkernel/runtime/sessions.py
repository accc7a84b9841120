"""Sessions of onnxruntime that outlive a fork.

A forked child has none of its parent's threads, but its copies of the parent's sessions count on them: running one, or
taking it down, waits for ever. So a child leaves these copies alone, and makes a session anew when it first runs it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any
from weakref import WeakSet


class Session:
    """A session of this process; ``again`` makes one in a child that was forked, when it is first needed there."""

    def __init__(self, made: Any, again: Callable[[], Any]) -> None:  # onnxruntime has no types
        self._made = made
        self._again = again
        _ALIVE.add(self)

    def here(self) -> Any:
        """The session to run in this process."""
        if self._made is None:
            self._made = self._again()
        return self._made

    def leave(self) -> None:
        """Forgets the session without taking it down."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._made))
        self._made = None


_ALIVE: WeakSet[Session] = WeakSet()  # what a fork has to find; nothing else reads it


def _leave_all() -> None:
    for session in list(_ALIVE):
        session.leave()


os.register_at_fork(after_in_child=_leave_all)
