"""Another process of ours that answers bytes with bytes: what dies of a question, or never ends, is that process.

A message is its length in eight bytes, then its bytes. The process starts when it is first needed, answers one question
after the other (:func:`serve`), and goes with this one. One that died or took too long is replaced for the next question.
Answers have a pipe of their own: what a library prints, or a module that a user's folder has in the place of one of Python's,
is no answer.
"""

from __future__ import annotations

import json
import os
import queue
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, BinaryIO

_ANSWERING = "kernelgen.farm.child"
"""What only such processes import."""

LENGTH_BYTES = 8
_MOST_AT_ONCE = 1 << 16
_LOOK_SECONDS = 0.5


@dataclass(frozen=True)
class Limit:
    """``seconds`` for an answer; with ``patience`` above 1 these are the processor's, and that many times as many may pass
    on the clock: other programs want the processor too."""

    seconds: float
    patience: float = 1.0


class ProcessDied(Exception):
    """The process ended before it answered, with this ``code`` (a signal's number is negative); None: it never started."""

    def __init__(self, code: int | None) -> None:
        super().__init__(f"the process ended with code {code}")
        self.code = code


class ProcessLate(Exception):
    """The process did not answer in time, and was ended."""


def command_of(function: str) -> Sequence[str]:
    """A Python that serves ``package.module:function``, with this one's path; where to write answers is told it as last.

    Threads that numpy brings along spin for longer than it takes to import numpy, in wait for work: there it has none.
    """
    module, name = function.split(":")
    program = (
        "import json, os, sys; sys.path[:] = json.loads(sys.argv[1]); os.environ.setdefault('OPENBLAS_NUM_THREADS', '1');"
        f" from kernelgen.system.answering import serve; from {module} import {name}; serve({name}, int(sys.argv[2]))"
    )
    return (sys.executable, "-P", "-c", program, json.dumps(sys.path))


def is_answering() -> bool:
    """Whether this is such a process, which ends when it has answered: nothing that it loads stays with anybody."""
    return _ANSWERING in sys.modules


def is_python_startable() -> bool:
    """Whether a Python can be started: a program that has one in it may be anything, and is not started again."""
    name = os.path.basename(sys.executable or "")
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)


@dataclass
class AnsweringProcess:
    """The other process, when there is one."""

    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    answers: int = -1  # where they are read, when there is a process

    def answer(self, request: bytes, limit: Limit) -> bytes:
        """Its answer. Raises ProcessDied and ProcessLate; after either the next question has a new process."""
        try:
            if self.process is not None and self.process.poll() is not None:
                self.end()  # gone since it answered last
            if self.process is None:
                self.process, self.answers = _started(self.command)
            due = _Due(limit, self.process.pid)
            _send(self.process, message(request), due)
            length = int.from_bytes(_received(self.answers, LENGTH_BYTES, due), "little")
            return _received(self.answers, length, due)
        except (EOFError, BrokenPipeError):
            raise ProcessDied(self.end()) from None
        except TimeoutError:
            self.end(kill=True)
            raise ProcessLate from None
        except BaseException:  # an interrupted exchange leaves an answer behind that nobody asked for
            self.end(kill=True)
            raise

    def end(self, kill: bool = False) -> int | None:
        """Ends the process, if it still runs, and says with which code."""
        process = self.process
        if process is None:
            return None
        self.leave()
        if kill:
            process.kill()
        try:
            return process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def leave(self) -> None:
        """Forgets the process, which may belong to the parent of this one."""
        if self.process is not None:
            _questions(self.process).close()
            os.close(self.answers)
        self.process = None


def message(content: bytes) -> bytes:
    """Content with its length in front."""
    return len(content).to_bytes(LENGTH_BYTES, "little") + content


def serve(answer: Callable[[bytes], bytes], descriptor: int) -> None:
    """Answers to the ``descriptor`` until the input ends: then whoever asked is gone, and so is this process, also out of an
    endless answer."""
    answers = os.fdopen(descriptor, "wb", buffering=0)
    os.set_inheritable(descriptor, False)
    waiting: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(os.fdopen(0, "rb"), waiting), daemon=True).start()
    while True:
        _write(answers, message(answer(waiting.get())))


def processor_seconds(process: int) -> float:
    """What a process has had of the processor; of one that is gone, and where Linux does not tell, 0."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            after_name = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0.0
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


class _Due:
    """When an answer of a process is late."""

    def __init__(self, limit: Limit, process: int) -> None:
        self._end = time.monotonic() + limit.seconds * limit.patience
        self._process = process
        self._most = processor_seconds(process) + limit.seconds if limit.patience > 1 else float("inf")

    def wait(self, descriptor: int, event: int) -> None:
        """Until the descriptor is ready. Raises TimeoutError when that is too late."""
        waiting = select.poll()
        waiting.register(descriptor, event)
        while not waiting.poll(1e3 * min(max(0.0, self._end - time.monotonic()), _LOOK_SECONDS)):
            if time.monotonic() >= self._end or processor_seconds(self._process) > self._most:
                raise TimeoutError


def _read(requests: BinaryIO, waiting: queue.SimpleQueue[bytes]) -> None:
    while len(length := requests.read(LENGTH_BYTES)) == LENGTH_BYTES:
        size = int.from_bytes(length, "little")
        content = requests.read(size)
        if len(content) < size:
            break
        waiting.put(content)
    os._exit(0)


def _write(stream: BinaryIO, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[stream.write(left) :]


def _started(command: Sequence[str]) -> tuple[subprocess.Popen[bytes], int]:
    """The process, out of reach of the keyboard's interrupts, which are for this one, and where its answers are read."""
    ours, its = os.pipe()
    try:
        process = subprocess.Popen(
            (*command, str(its)), pass_fds=(its,), start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(its)
    for descriptor in (_questions(process).fileno(), ours):
        os.set_blocking(descriptor, False)
    return process, ours


def _questions(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None, "it was asked for"
    return process.stdin


def _send(process: subprocess.Popen[bytes], content: bytes, due: _Due) -> None:
    left, descriptor = memoryview(content), _questions(process).fileno()
    while left:
        due.wait(descriptor, select.POLLOUT)
        left = left[os.write(descriptor, left[:_MOST_AT_ONCE]) :]


def _received(descriptor: int, count: int, due: _Due) -> bytes:
    found = bytearray()
    while len(found) < count:
        due.wait(descriptor, select.POLLIN)
        part = os.read(descriptor, min(count - len(found), _MOST_AT_ONCE))
        if not part:
            raise EOFError
        found += part
    return bytes(found)
