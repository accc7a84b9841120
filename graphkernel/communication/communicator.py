"""What running needs of communication: start something, and wait for it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Pending(Protocol):
    """Something that was started. Until it is waited for its operand must not change nor its result be read."""

    def wait(self) -> None:
        """Comes back when it is done."""
        ...


class Communicator(Protocol):
    """One process of a group. Every process starts the same in the same order; each call comes back at once.

    Operands and results are C-contiguous arrays of the host, which the caller keeps alive. ``op`` is sum, max, min or prod.
    """

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""
        ...

    @property
    def size(self) -> int:
        """How many processes there are."""
        ...

    def all_reduce(self, x: Array, out: Array, op: str) -> Pending:
        """``out``, on each: the ``op`` (the sum, say) of all ``x``. They have one shape."""
        ...

    def all_gather(self, x: Array, out: Array) -> Pending:
        """``out``, on each: all ``x`` along axis 0, by rank."""
        ...

    def reduce_scatter(self, x: Array, out: Array, op: str) -> Pending:
        """``out``: this rank's part, along axis 0, of the ``op`` of all ``x``."""
        ...

    def broadcast(self, x: Array, out: Array, root: int) -> Pending:
        """``out``, on each: the ``x`` of ``root``."""
        ...

    def all_to_all(self, x: Array, out: Array) -> Pending:
        """``out``: this rank's part, along axis 0, of all ``x``, by rank."""
        ...

    def send(self, x: Array, to: int, tag: int) -> Pending:
        """Gives ``x`` to another rank, which receives with the same tag."""
        ...

    def receive(self, out: Array, source: int, tag: int) -> Pending:
        """``out``: what rank ``source`` sends with the same tag."""
        ...


class Done:
    """What was finished when it was started."""

    def wait(self) -> None:
        """Nothing to wait for."""
