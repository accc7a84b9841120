"""Models that another process loads and compiles, into the cache that both share: what that takes goes with the process.

An ONNX model that was loaded and compiled before is taken from the cache, with little beside its weights. The first time
importer, optimizer, isl and LLVM come into a process, which keeps several times a small model's memory from then on. So
another process does what is new, and this one takes it from the cache as if it had been there. What it finds nothing for,
it does itself: whoever asks meets the error there.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import finalize

from graphkernel.system.environment import Environment
from kernelgen.native.mapped import is_supported
from kernelgen.system.notices import warn_once

if TYPE_CHECKING:
    from kernelgen.system.answering import AnsweringProcess

Progress = Callable[[str, int, int], None]

NEXT = b"next"
"""What asks a process that compiles how far it is."""

_CHILD = "kernelgen.farm.child:answer"
_LOAD, _COMPILE = (f"graphkernel.frontends.for_others:{name}\n".encode() for name in ("load_model", "compile_model"))
_IMPORTER, _COMPILER = "onnx", "islpy"
_LIMIT_SECONDS = 3600.0


@dataclass(eq=False)
class ModelFile:
    """The model in the file ``path``, with ``dims`` fixed. The process that loaded it waits a while to compile it."""

    path: str
    dims: Mapping[str, int] | None
    _waiting: list[AnsweringProcess] = field(default_factory=list["AnsweringProcess"])

    def load(self) -> None:
        """Has the model loaded, where this process has no importer."""
        if _is_worth_it(_IMPORTER):
            process = _new_process()
            finalize(self, process.end, kill=True)
            _ask(process, _LOAD, [self.path, self.dims], None)
            self._waiting.append(process)

    def compile(self, asked: Mapping[str, Any], progress: Progress | None) -> str | None:
        """Has the model compiled as ``asked``, where this process has no compiler; ``progress`` is told how far it is.

        The text of its report, with the times that it took; None where it was not compiled.
        """
        if not _is_worth_it(_COMPILER):
            return None
        try:
            process = self._waiting.pop()
        except IndexError:
            process = _new_process()
        try:
            end = _ask(process, _COMPILE, [self.path, self.dims, asked, progress is not None], progress)
        finally:
            process.end(kill=True)
        return end["report"] if end else None


def _is_worth_it(module: str) -> bool:
    """Whether this process lacks what it takes and lives on, another one can be started, and nobody reads what it would log."""
    import logging  # what was loaded and compiled before logs nothing

    from kernelgen.system.answering import is_answering, is_python_startable  # nor does it need another process

    is_followed = logging.getLogger("graphkernel").isEnabledFor(logging.INFO)
    is_followed = is_followed or Environment.read().log_level is not None
    saves_nothing = module in sys.modules or is_answering()
    return is_supported() and is_python_startable() and not (saves_nothing or is_followed)


def _new_process() -> AnsweringProcess:
    from kernelgen.system.answering import AnsweringProcess, command_of

    return AnsweringProcess(command_of(_CHILD))


def _ask(process: AnsweringProcess, function: bytes, question: Any, progress: Progress | None) -> Any:
    """What the process says in the end, which is no step for ``progress``; None where there is nothing."""
    try:
        rest = json.dumps(question).encode()
    except TypeError:  # JSON does not hold it
        return None
    while isinstance(said := _answer(process, function + rest), list):
        rest = NEXT
        if progress is not None:
            progress(*said)  # the steps that it was given over there
    return said


def _answer(process: AnsweringProcess, request: bytes) -> Any:
    """What the process says; None also where there is none any more."""
    from kernelgen.system.answering import Limit, ProcessDied, ProcessLate

    try:
        reply = json.loads(process.answer(request, Limit(_LIMIT_SECONDS)))
    except (OSError, ProcessDied, ProcessLate) as error:
        warn_once(f"a process that loads and compiles models is gone, this one does its work: {error}")
        return None
    for notice in reply["notices"]:
        warn_once(notice)
    return reply.get("answer")
