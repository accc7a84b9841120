"""A group of one process: what it gives is what it gets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphkernel.communication.communicator import Array, Done, Pending
from graphkernel.errors import RuntimeFailure


@dataclass(frozen=True)
class Alone:
    """Everything is a copy; there is nobody to send to."""

    rank: int = 0
    size: int = 1

    def all_reduce(self, x: Array, out: Array, op: str) -> Pending:
        """``out`` is the ``op`` of all ``x``: a copy."""
        return _copied(x, out)

    def all_gather(self, x: Array, out: Array) -> Pending:
        """``out`` is all ``x`` along axis 0: a copy."""
        return _copied(x, out)

    def reduce_scatter(self, x: Array, out: Array, op: str) -> Pending:
        """``out`` is this rank's part of the ``op`` of all ``x``: a copy."""
        return _copied(x, out)

    def broadcast(self, x: Array, out: Array, root: int) -> Pending:
        """``out`` is the ``x`` of ``root``: a copy."""
        return _copied(x, out)

    def all_to_all(self, x: Array, out: Array) -> Pending:
        """``out`` is this rank's part of all ``x``: a copy."""
        return _copied(x, out)

    def send(self, x: Array, to: int, tag: int) -> Pending:
        """Raises RuntimeFailure: ``x`` has nowhere to go, to and tag name nobody."""
        raise RuntimeFailure("a group of one process has nobody to send to")

    def receive(self, out: Array, source: int, tag: int) -> Pending:
        """Raises RuntimeFailure: ``out`` has nowhere to go, source and tag name nobody."""
        raise RuntimeFailure("a group of one process has nobody to receive from")


def _copied(x: Array, out: Array) -> Done:
    np.copyto(out, x)
    return Done()
