"""What is looked at before and behind the run of a table: whether indices were in range, and what a library says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphkernel.runtime.steps.steps import beyond

if TYPE_CHECKING:
    from graphkernel.runtime.steps.steps import Slots
    from graphkernel.runtime.tables.session_call import SessionCall


class SessionFailure(Exception):
    """The step, by its number in the program, whose session failed, and the ``error``."""

    def __init__(self, step: int, error: Exception) -> None:
        super().__init__(str(error))
        self.step, self.error = step, error


class Watch:
    """Machine code writes the number of the first lookup that fails, and its index, to ``lookups``, and the status of the first
    session that fails, and its number, to ``sessions``.
    """

    def __init__(self) -> None:
        self._readers: list[tuple[str, int]] = []
        self._calls: list[tuple[int, SessionCall]] = []
        self._found = np.zeros(4, np.int64)
        self._seen = self._found.data
        self.lookups: int = self._found.ctypes.data
        self.sessions: int = self.lookups + 2 * self._found.itemsize

    def __bool__(self) -> bool:
        return bool(self._readers or self._calls)

    def lookup(self, name: str, extent: int) -> int:
        """The number of one more, and the axis that it reads."""
        self._readers.append((name, extent))
        return len(self._readers)

    def session(self, step: int, call: SessionCall) -> int:
        """The number of one more ``call``, that of a ``step``."""
        self._calls.append((step, call))
        return len(self._calls) - 1

    def begin(self) -> None:
        """Before a run."""
        for _, call in self._calls:
            call.begin()

    def check(self) -> None:
        """Behind a run: raises RuntimeFailure where an index was out of range, and SessionFailure."""
        number, index, status, place = self._seen
        if number or status:
            self._found[:] = 0
            self._fail(number, index, status, place)

    def leave(self, slots: Slots | dict[int, Any]) -> None:
        """Behind a run that was checked: puts what libraries have allocated into its slots. Raises SessionFailure where that is
        not what was promised.
        """
        for step, call in self._calls:
            try:
                call.leave(slots)
            except ValueError as error:
                raise SessionFailure(step, error) from error

    def _fail(self, number: int, index: int, status: int, place: int) -> None:
        error = self._calls[place][1].failure(status) if status else None
        for _, call in self._calls:
            call.record.forget()
        if number or error is None:
            name, extent = self._readers[number - 1]
            raise beyond(name, index, extent)
        raise SessionFailure(self._calls[place][0], error)
