"""A communicator that writes down what is started, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from graphkernel.communication.communicator import Array, Communicator, Pending


@dataclass(frozen=True)
class Logged:
    """Passes everything on to ``over``; ``log`` has a line for each."""

    over: Communicator
    log: list[str] = field(default_factory=list[str])

    @property
    def rank(self) -> int:
        return self.over.rank

    @property
    def size(self) -> int:
        return self.over.size

    def all_reduce(self, x: Array, out: Array, op: str) -> Pending:
        return self._told(self.over.all_reduce(x, out, op), "all_reduce", x, op)

    def all_gather(self, x: Array, out: Array) -> Pending:
        return self._told(self.over.all_gather(x, out), "all_gather", x)

    def reduce_scatter(self, x: Array, out: Array, op: str) -> Pending:
        return self._told(self.over.reduce_scatter(x, out, op), "reduce_scatter", x, op)

    def broadcast(self, x: Array, out: Array, root: int) -> Pending:
        return self._told(self.over.broadcast(x, out, root), "broadcast", x, root)

    def all_to_all(self, x: Array, out: Array) -> Pending:
        return self._told(self.over.all_to_all(x, out), "all_to_all", x)

    def send(self, x: Array, to: int, tag: int) -> Pending:
        return self._told(self.over.send(x, to, tag), "send", x, to, tag)

    def receive(self, out: Array, source: int, tag: int) -> Pending:
        return self._told(self.over.receive(out, source, tag), "receive", out, source, tag)

    def _told(self, pending: Pending, what: str, x: Array, *more: Any) -> Pending:
        self.log.append(" ".join(map(str, (what, x.dtype, list(x.shape), *more))))
        return pending
