"""Hands out requests and gathers replies: each is answered once, whatever becomes of those who work.

What is lost is handed out again, and so is what takes much longer than the rest once nothing else is left to hand out: the
first reply counts, later ones are dropped. What the crew does not answer in three attempts this machine answers, and
tells so. Requests are drawn when somebody has time for them, so that a million need no more memory than ten.
"""

from __future__ import annotations

import json
import logging
import queue
import statistics
import time
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kernelgen.farm.crews import Crew, Task, local
from kernelgen.farm.journal import Journal, digest
from kernelgen.system.escape import line
from kernelgen.system.notices import warn_once

LOGGER = logging.getLogger("kernelgen")

Name = TypeVar("Name")


@dataclass(frozen=True)
class Policy:
    """When work is handed out again. Times are seconds.

    ``attempts``: how often to the crew. ``patience``: an attempt younger than this is never late; an older one is when it
    took ``factor`` times as long as half of the others. ``look``: how often that is looked at.
    """

    attempts: int = 3
    patience: float = 30.0
    factor: float = 4.0
    look: float = 0.5


def answers(
    function: Task,
    requests: Iterable[tuple[Name, bytes]],
    crew: Crew,
    journal: Journal | None = None,
    policy: Policy = Policy(),  # frozen
) -> Generator[tuple[Name, Any]]:
    """Name and answer of each of the ``requests`` (names and bytes), as they come.

    What the ``journal`` knows comes from there; the ``policy`` says when the ``crew`` is not waited for. Raises what the
    function raises on this machine, after it failed with the crew.
    """
    with ExitStack() as stack:
        run = _Run(function, iter(requests), crew, journal or Journal(), policy, stack)
        stack.callback(run.cancel)
        yield from run.answers()


@dataclass(eq=False)
class _Request(Generic[Name]):
    name: Name
    content: bytes
    key: str
    attempts: int = 0
    is_answered: bool = False
    copies: list[Future[bytes]] = field(default_factory=lambda: [])


@dataclass(frozen=True)
class _Flight(Generic[Name]):
    request: _Request[Name]
    start: float
    is_home: bool


@dataclass
class _Run(Generic[Name]):
    function: Task
    requests: Iterator[tuple[Name, bytes]]
    crew: Crew
    journal: Journal
    policy: Policy
    stack: ExitStack
    again: deque[_Request[Name]] = field(default_factory=lambda: deque())
    flying: dict[Future[bytes], _Flight[Name]] = field(default_factory=lambda: {})
    landed: queue.SimpleQueue[Future[bytes]] = field(default_factory=lambda: queue.SimpleQueue())
    under_way: int = 0
    took: deque[float] = field(default_factory=lambda: deque(maxlen=101))
    lost: Counter[str] = field(default_factory=lambda: Counter())
    home: Crew | None = None
    is_exhausted: bool = False
    looked: float = field(default_factory=time.monotonic)

    def answers(self) -> Iterator[tuple[Name, Any]]:
        while True:
            yield from self._hand_out()
            if not self.under_way and not self.again:
                break
            for future in self._landed():
                yield from self._received(future, self.flying.pop(future))
            if time.monotonic() > self.looked + self.policy.look:
                self._look_for_stragglers()
                self.looked = time.monotonic()
        if self.lost:
            told = ", ".join(f"{count} of {why}" for why, count in self.lost.most_common(3))
            LOGGER.warning("handed out again: %s; every request has its answer", line(told))

    def cancel(self) -> None:
        """Nobody waits for what is still under way."""
        for future in list(self.flying):
            future.cancel()

    def _landed(self) -> Iterator[Future[bytes]]:
        """What has come back, after a short wait for the first."""
        with suppress(queue.Empty):
            yield self.landed.get(timeout=self.policy.look)
            while True:
                yield self.landed.get_nowait()

    def _hand_out(self) -> Iterator[tuple[Name, Any]]:
        """Gives work to those who have none; what the journal knows is answered on the way."""
        width = self.crew.width()
        while self.under_way < (width or self._home().width()):
            request = self.again.popleft() if self.again else self._drawn()
            if request is None:
                return
            if request.is_answered:
                continue  # by a copy, while it waited to be handed out again
            if request.key in self.journal.known:
                request.is_answered = True
                yield request.name, self.journal.known[request.key]
            else:
                self._start(request, width == 0)

    def _drawn(self) -> _Request[Name] | None:
        found = next(self.requests, None)
        self.is_exhausted = found is None
        if found is None:
            return None
        name, content = found
        return _Request(name, content, digest(f"{self.function.__module__}:{self.function.__qualname__}", content))

    def _start(self, request: _Request[Name], at_home: bool) -> None:
        is_home = self.crew.is_here or at_home or request.attempts >= self.policy.attempts
        request.attempts += 1
        crew = self._home() if is_home else self.crew
        try:
            future = crew.executor.submit(self.function, request.content)
        except Exception as error:  # an executor that is broken says so in its own way
            if is_home:
                raise
            self._lose(request, error)
            return
        self.under_way += not request.copies
        request.copies.append(future)
        self.flying[future] = _Flight(request, time.monotonic(), is_home)
        future.add_done_callback(self.landed.put)

    def _received(self, future: Future[bytes], flight: _Flight[Name]) -> Iterator[tuple[Name, Any]]:
        request = flight.request
        request.copies.remove(future)
        if request.is_answered:
            return
        self.under_way -= not request.copies
        error = CancelledWork() if future.cancelled() else future.exception()
        if error is not None and flight.is_home:
            raise error
        if error is not None:
            self._lose(request, error)
            return
        reply = json.loads(future.result())
        for notice in reply["notices"]:
            warn_once(notice)
        request.is_answered = True
        self.under_way -= bool(request.copies)
        for copy in request.copies:
            copy.cancel()
        self.took.append(time.monotonic() - flight.start)
        self.journal.add(request.key, reply["answer"])
        yield request.name, reply["answer"]

    def _lose(self, request: _Request[Name], error: BaseException) -> None:
        self.lost[f"{type(error).__name__}: {error}"[:200]] += 1
        if not request.copies:
            self.again.append(request)

    def _look_for_stragglers(self) -> None:
        """Starts once more what is late, when nobody else works on it: at the end, or where all that is under way is late."""
        usual = statistics.median(self.took) if self.took else 0.0
        late = time.monotonic() - max(self.policy.patience, self.policy.factor * usual)
        newest: dict[_Request[Name], _Flight[Name]] = {}
        for flight in self.flying.values():
            newest[flight.request] = flight  # in the order of their start
        under_way = [flight for flight in newest.values() if not flight.request.is_answered]
        behind = [flight for flight in under_way if flight.start < late and not flight.is_home]
        if (self.is_exhausted and not self.again) or len(behind) == len(under_way):
            for flight in behind:
                self.lost["an answer that was late"] += 1
                self._start(flight.request, self.crew.width() == 0)

    def _home(self) -> Crew:
        """This machine, for what the crew does not do."""
        if self.home is None:
            self.home = self.crew if self.crew.is_here else self.stack.enter_context(local(1))
        return self.home


class CancelledWork(Exception):
    """The executor gave the request up."""

    def __str__(self) -> str:
        return "cancelled by the executor"
