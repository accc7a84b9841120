"""Another process of ours that answers bytes with bytes: what dies of a question, or never ends, is that process.

A message is its length in eight bytes, then its bytes. The process starts when it is first needed, answers one question
after the other (:func:`serve`), and goes with this one. One that died or took too long is replaced for the next question.
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
from typing import BinaryIO

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
    """A Python that serves ``package.module:function``, with this one's path.

    Threads that numpy brings along spin for longer than it takes to import numpy, in wait for work: there it has none.
    """
    module, name = function.split(":")
    program = (
        "import json, os, sys; sys.path[:] = json.loads(sys.argv[1]); os.environ.setdefault('OPENBLAS_NUM_THREADS', '1');"
        f" from kernelgen.system.answering import serve; from {module} import {name}; serve({name})"
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

    def answer(self, request: bytes, limit: Limit) -> bytes:
        """Its answer. Raises ProcessDied and ProcessLate; after either the next question has a new process."""
        try:
            if self.process is not None and self.process.poll() is not None:
                self.end()  # gone since it answered last
            if self.process is None:
                self.process = _started(self.command)
            due = _Due(limit, self.process.pid)
            _send(self.process, message(request), due)
            length = int.from_bytes(_received(self.process, LENGTH_BYTES, due), "little")
            return _received(self.process, length, due)
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
        process, self.process = self.process, None
        if process is None:
            return None
        _close(process)
        if kill:
            process.kill()
        try:
            return process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def leave(self) -> None:
        """Forgets the process, which belongs to the parent of this one."""
        if self.process is not None:
            _close(self.process)
        self.process = None


def message(content: bytes) -> bytes:
    """Content with its length in front."""
    return len(content).to_bytes(LENGTH_BYTES, "little") + content


def serve(answer: Callable[[bytes], bytes]) -> None:
    """Answers until the input ends: then whoever asked is gone, and so is this process, also out of an endless answer."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what libraries print is no answer
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


def _started(command: Sequence[str]) -> subprocess.Popen[bytes]:
    """The process, out of reach of the keyboard's interrupts, which are for this one."""
    started = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    for pipe in (started.stdin, started.stdout):
        assert pipe is not None, "it was asked for"
        os.set_blocking(pipe.fileno(), False)
    return started


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None, "it was asked for"
        pipe.close()


def _send(process: subprocess.Popen[bytes], content: bytes, due: _Due) -> None:
    assert process.stdin is not None, "it was asked for"
    left, descriptor = memoryview(content), process.stdin.fileno()
    while left:
        due.wait(descriptor, select.POLLOUT)
        left = left[os.write(descriptor, left[:_MOST_AT_ONCE]) :]


def _received(process: subprocess.Popen[bytes], count: int, due: _Due) -> bytes:
    assert process.stdout is not None, "it was asked for"
    found, descriptor = bytearray(), process.stdout.fileno()
    while len(found) < count:
        due.wait(descriptor, select.POLLIN)
        part = os.read(descriptor, min(count - len(found), _MOST_AT_ONCE))
        if not part:
            raise EOFError
        found += part
    return bytes(found)
