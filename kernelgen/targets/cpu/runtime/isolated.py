"""Compiling in another process, so that a module that LLVM dies of or never finishes costs one kernel.

The process starts when it is first needed, serves one module after the other, and goes with this one. One that died or
took too long is replaced for the next module.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

from kernelgen.errors import CodegenError
from kernelgen.system.answering import AnsweringProcess, Limit, ProcessDied, ProcessLate, command_of
from kernelgen.targets.cpu.runtime.compiler_process import ACCEPTED, request
from kernelgen.targets.cpu.text.host import Host

LIMIT_SECONDS = 120.0
"""For one module; the largest ones of the corpus take seconds."""

_FUNCTION = "kernelgen.targets.cpu.runtime.compiler_process:answer"


@dataclass
class CompilerProcess:
    """The other process. Threads take turns."""

    command: Sequence[str] = field(default_factory=lambda: command_of(_FUNCTION))
    limit_seconds: float = LIMIT_SECONDS

    def __post_init__(self) -> None:
        self._turn = threading.Lock()
        self.other = AnsweringProcess(self.command)

    def compile_object(self, source: str, host: Host) -> bytes:
        """As :func:`kernelgen.targets.cpu.runtime.llvm.compile_object`.

        Raises CodegenError, also for a module that LLVM dies of.
        """
        try:
            with self._turn:
                answer = self.other.answer(request(source, host), Limit(self.limit_seconds))
        except ProcessDied as death:
            raise CodegenError(f"LLVM died of the module: {_ending(death.code)}", source) from None
        except ProcessLate:
            raise CodegenError(f"LLVM did not finish the module in {self.limit_seconds:g} s", source) from None
        if answer[:1] != ACCEPTED:
            raise CodegenError(answer[1:].decode(), source)
        return answer[1:]

    def leave(self) -> None:
        """Forgets the process, which belongs to the parent of this one."""
        self.other.leave()
        self._turn = threading.Lock()


@cache
def compiler() -> CompilerProcess:
    """The one of this process."""
    return CompilerProcess()


os.register_at_fork(after_in_child=lambda: compiler().leave())


def _ending(code: int | None) -> str:
    if code is None:
        return "it could not be started"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
