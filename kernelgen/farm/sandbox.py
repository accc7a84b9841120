"""A function called in a process that may die of it: a crash or a hang costs one answer, not the worker that asked.

Processes that have answered wait for the next request of the same function; each goes with the process that started it.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kernelgen.system.answering import AnsweringProcess, Limit, command_of

LIFETIME = 400
"""Answers of a process, at most: compiled code stays in memory."""
START_SECONDS = 120.0
"""A process that is not there after this has failed."""


class TaskError(Exception):
    """The function raised; the text says what."""


def call(function: str, request: bytes, limit: Limit) -> bytes:
    """The reply of ``package.module:function`` to a request: JSON, see :mod:`kernelgen.farm.child`.

    ``limit`` counts from when the process is ready. Raises ProcessDied, ProcessLate, and TaskError when it raised.
    """
    children = _children()
    child = children.take(function)
    try:
        reply = child.answer(function, request, limit)
    finally:
        children.put_back(function, child)
    if error := json.loads(reply).get("error"):
        raise TaskError(error)
    return reply


def told(answer: Any) -> bytes:  # whatever JSON holds
    """The reply that says this and nothing else."""
    return json.dumps({"notices": [], "answer": answer}).encode()


def end_children() -> None:
    """Ends all processes; whoever waits for one hears that it died."""
    _children().end()


@dataclass
class _Child:
    process: AnsweringProcess | None = None
    served: int = 0

    def answer(self, function: str, request: bytes, limit: Limit) -> bytes:
        if self.process is None or self.process.process is None or self.served >= LIFETIME:
            self.end()
            self.process, self.served = AnsweringProcess(command_of("kernelgen.farm.child:answer")), 0
            self.process.answer(f"{function}\n".encode(), Limit(START_SECONDS))
        self.served += 1
        return self.process.answer(f"{function}\n".encode() + request, limit)

    def end(self) -> None:
        if self.process is not None:
            self.process.end(kill=True)


@dataclass
class _Children:
    """The processes of this one: those that wait, by function, and all that were started."""

    idle: dict[str, list[_Child]] = field(default_factory=lambda: defaultdict(list))
    busy: list[_Child] = field(default_factory=list[_Child])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, function: str) -> _Child:
        with self.lock:
            child = self.idle[function].pop() if self.idle[function] else _Child()
            self.busy.append(child)
            return child

    def put_back(self, function: str, child: _Child) -> None:
        with self.lock:
            if child in self.busy:
                self.busy.remove(child)
                self.idle[function].append(child)

    def end(self) -> None:
        with self.lock:
            idle = [child for children in self.idle.values() for child in children]
            self.idle.clear()
            busy, self.busy = self.busy, []
        for child in idle:
            child.end()
        for child in busy:
            if child.process is not None and child.process.process is not None:
                child.process.process.kill()  # the thread that waits for it takes the rest away


@cache
def _children() -> _Children:
    return _Children()
