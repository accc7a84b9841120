"""Compiling in another process, so that a module that LLVM dies of or never finishes costs one kernel.

The process starts when it is first needed, serves one module after the other, and goes with this one. One that died or
took too long is replaced for the next module.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from kernelgen.errors import CodegenError
from kernelgen.targets.cpu.runtime.compiler_process import ACCEPTED, LENGTH_BYTES, request
from kernelgen.targets.cpu.text.host import Host

LIMIT_SECONDS = 120.0
"""For one module; the largest ones of the corpus take seconds."""

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from kernelgen.targets.cpu.runtime.compiler_process import serve; serve()"
)
_MOST_AT_ONCE = 1 << 16


@dataclass
class CompilerProcess:
    """The other process, when there is one. Threads take turns."""

    command: Sequence[str] | None = None
    limit_seconds: float = LIMIT_SECONDS
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self._turn = threading.Lock()

    def compile_object(self, source: str, host: Host) -> bytes:
        """As :func:`kernelgen.targets.cpu.runtime.llvm.compile_object`; CodegenError also for a module that LLVM dies of."""
        with self._turn:
            try:
                answer = self._answer(request(source, host))
            except (EOFError, BrokenPipeError):
                raise CodegenError(f"LLVM died of the module: {self._end()}", source) from None
            except TimeoutError:
                self._end()
                raise CodegenError(f"LLVM did not finish the module in {self.limit_seconds:g} s", source) from None
            except BaseException:  # an interrupted exchange leaves an answer behind that nobody asked for
                self._end()
                raise
        if answer[:1] != ACCEPTED:
            raise CodegenError(answer[1:].decode(), source)
        return answer[1:]

    def leave(self) -> None:
        """Forgets the process, which belongs to the parent of this one."""
        if self.process is not None:
            _close(self.process)
        self.process, self._turn = None, threading.Lock()

    def _answer(self, asked: bytes) -> bytes:
        if self.process is None:
            self.process = _started(self.command or _command())
        deadline = time.monotonic() + self.limit_seconds
        _send(self.process, asked, deadline)
        length = int.from_bytes(_received(self.process, LENGTH_BYTES, deadline), "little")
        return _received(self.process, length, deadline)

    def _end(self) -> str:
        """Ends the process, if it still runs, and says how it ended."""
        process, self.process = self.process, None
        if process is None:
            return "it could not be started"
        _close(process)
        try:
            code = process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


@cache
def compiler() -> CompilerProcess:
    """The one of this process."""
    return CompilerProcess()


os.register_at_fork(after_in_child=lambda: compiler().leave())


def _command() -> Sequence[str]:
    return (sys.executable, "-P", "-c", _PROGRAM, json.dumps(sys.path))


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


def _send(process: subprocess.Popen[bytes], content: bytes, deadline: float) -> None:
    assert process.stdin is not None, "it was asked for"
    left, descriptor = memoryview(content), process.stdin.fileno()
    while left:
        _wait(descriptor, select.POLLOUT, deadline)
        left = left[os.write(descriptor, left[:_MOST_AT_ONCE]) :]


def _received(process: subprocess.Popen[bytes], count: int, deadline: float) -> bytes:
    assert process.stdout is not None, "it was asked for"
    found, descriptor = bytearray(), process.stdout.fileno()
    while len(found) < count:
        _wait(descriptor, select.POLLIN, deadline)
        part = os.read(descriptor, min(count - len(found), _MOST_AT_ONCE))
        if not part:
            raise EOFError
        found += part
    return bytes(found)


def _wait(descriptor: int, event: int, deadline: float) -> None:
    waiting = select.poll()
    waiting.register(descriptor, event)
    if not waiting.poll(max(0.0, deadline - time.monotonic()) * 1e3):
        raise TimeoutError
