"""Something that is done beside the calling thread. A pool of one thread would take longer to import than the thread saves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, Self, TypeVar

Result = TypeVar("Result")


class Meanwhile(threading.Thread, Generic[Result]):
    """Does ``action`` at once, on a thread of its own; :meth:`result` is what it gave. As a context it ends with the block."""

    def __init__(self, action: Callable[[], Result]) -> None:
        super().__init__()
        self._action = action
        self._found: list[Result] = []
        self._error: Exception | None = None
        self.start()

    def run(self) -> None:
        """Keeps what the action gives, or raises."""
        try:
            self._found.append(self._action())
        except Exception as error:  # whoever asks for the result gets it
            self._error = error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Waits, also when the block failed: what the action reads may be gone afterwards."""
        self.join()

    def result(self) -> Result:
        """Waits for it. Raises what the action raised; in a process that was forked meanwhile, the action is done again."""
        self.join()
        if self._error is not None:
            raise self._error
        if not self._found:
            self._found.append(self._action())
        return self._found[0]
