"""Ranks that are threads of one process. What they compute does not depend on who comes first, and what ranks do in another
order than others is an error that names both: the reference for programs of several ranks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple, TypeVar

import numpy as np

from graphkernel.communication.communicator import Array, Pending
from graphkernel.errors import RuntimeFailure

Result = TypeVar("Result")
SECONDS = 60.0  # after which a rank that does not come is given up
REDUCTIONS: dict[str, np.ufunc] = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}


def reduced(parts: Sequence[Array], op: str) -> Array:
    """The sum (or max, min, prod) in the order of the ranks; narrow floats in float32, rounded once."""
    is_narrow = parts[0].dtype.itemsize == 2 and parts[0].dtype.kind not in "iu"
    wide = [part.astype(np.float32) for part in parts] if is_narrow else parts
    return reduce(REDUCTIONS[op], wide).astype(parts[0].dtype)


class _Post(NamedTuple):
    what: str
    x: Array


@dataclass(eq=False)
class _Board:
    """Where ranks leave what they give: by turn for what all do, by (source, destination, tag, number) for messages."""

    size: int
    seconds: float
    changed: threading.Condition = field(default_factory=threading.Condition)
    turns: dict[int, dict[int, _Post]] = field(default_factory=dict[int, "dict[int, _Post]"])
    messages: dict[tuple[int, int, int, int], Array] = field(default_factory=dict[tuple[int, int, int, int], Array])

    def all_of(self, turn: int) -> list[_Post]:
        """What all ranks gave in a turn, by rank. Raises RuntimeFailure where they differ in what they do, or do not come."""
        with self.changed:
            posts = self.turns[turn]
            if not self.changed.wait_for(lambda: len(posts) == self.size, self.seconds):
                missing = ", ".join(str(rank) for rank in range(self.size) if rank not in posts)
                raise RuntimeFailure(f"turn {turn}, {next(iter(posts.values())).what}: rank {missing} did not come")
        first = posts[0].what
        for rank, post in sorted(posts.items()):
            if post.what != first:
                raise RuntimeFailure(f"turn {turn}: rank {rank} does {post.what}, rank 0 {first}")
        return [posts[rank] for rank in range(self.size)]


class _Waiting(NamedTuple):
    action: Callable[[], None]

    def wait(self) -> None:
        """Waits for the other ranks, and computes."""
        self.action()


@dataclass(eq=False)
class InMemory:
    """One rank of several in one process; :func:`in_memory` makes them. Each is for one thread."""

    board: _Board
    rank: int
    turn: int = 0
    numbers: dict[tuple[int, int, int], int] = field(default_factory=dict[tuple[int, int, int], int])

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return self.board.size

    def all_reduce(self, x: Array, out: Array, op: str) -> Pending:
        """``out`` is the ``op`` of all ``x``: when all have come."""
        return self._all(f"all_reduce({op})", x, lambda parts: np.copyto(out, reduced(parts, op)))

    def all_gather(self, x: Array, out: Array) -> Pending:
        """``out`` is all ``x`` along axis 0: when all have come."""
        return self._all("all_gather", x, lambda parts: np.copyto(out, np.concatenate(parts)))

    def reduce_scatter(self, x: Array, out: Array, op: str) -> Pending:
        """``out`` is this rank's part of the ``op`` of all ``x``: when all have come."""
        mine = slice(self.rank * len(out), (self.rank + 1) * len(out))
        return self._all(f"reduce_scatter({op})", x, lambda all_: np.copyto(out, reduced([p[mine] for p in all_], op)))

    def broadcast(self, x: Array, out: Array, root: int) -> Pending:
        """``out`` is the ``x`` of ``root``: when all have come."""
        return self._all(f"broadcast({root})", x, lambda parts: np.copyto(out, parts[root]))

    def all_to_all(self, x: Array, out: Array) -> Pending:
        """``out`` is this rank's part of all ``x``: when all have come."""
        step = len(x) // self.size
        mine = slice(self.rank * step, (self.rank + 1) * step)
        return self._all("all_to_all", x, lambda parts: np.copyto(out, np.concatenate([part[mine] for part in parts])))

    def send(self, x: Array, to: int, tag: int) -> Pending:
        """``x`` goes ``to`` a rank under a ``tag``: when all have come."""
        with self.board.changed:
            self.board.messages[self.rank, to, tag, self._next(self.rank, to, tag)] = x.copy()
            self.board.changed.notify_all()
        return _Waiting(lambda: None)

    def receive(self, out: Array, source: int, tag: int) -> Pending:
        """``out`` comes from ``source`` under a ``tag``: when all have come."""
        key = (source, self.rank, tag, self._next(source, self.rank, tag))

        def take() -> None:
            with self.board.changed:
                if not self.board.changed.wait_for(lambda: key in self.board.messages, self.board.seconds):
                    raise RuntimeFailure(f"rank {source} sent nothing with tag {tag} to rank {self.rank}")
                np.copyto(out, self.board.messages.pop(key))

        return _Waiting(take)

    def _all(self, what: str, x: Array, finish: Callable[[Sequence[Array]], None]) -> Pending:
        turn, self.turn = self.turn, self.turn + 1
        told = f"{what} of {x.dtype}{list(x.shape)}"
        with self.board.changed:
            self.board.turns.setdefault(turn, {})[self.rank] = _Post(told, x.copy())
            self.board.changed.notify_all()
        return _Waiting(lambda: finish([post.x for post in self.board.all_of(turn)]))

    def _next(self, source: int, to: int, tag: int) -> int:
        """Messages with one tag come in their order."""
        number = self.numbers.get((source, to, tag), 0)
        self.numbers[source, to, tag] = number + 1
        return number


def in_memory(size: int, seconds: float = SECONDS) -> tuple[InMemory, ...]:
    """The ranks of a group, each for one thread. ``seconds`` is how long one waits for another."""
    board = _Board(size, seconds)
    return tuple(InMemory(board, rank) for rank in range(size))


def run_ranks(size: int, program: Callable[[InMemory], Result], seconds: float = SECONDS) -> list[Result]:
    """What ``program(communicator)`` gives on each of ``size`` ranks, each a thread that waits ``seconds`` for others.

    Raises what the first to fail raised.
    """
    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(program, rank) for rank in in_memory(size, seconds)]
        return [future.result() for future in futures]
