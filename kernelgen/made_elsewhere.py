"""Kernels that other processes compile: several at once, and isl and LLVM stay out of this one.

Those processes get descriptions as text, give back machine code, and end when all is done. What they cannot do is left to
the caller: a description that text does not hold whole, one whose compilation fails, all of them where no process starts.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kernelgen.composite.description import KernelDesc
from kernelgen.composite.vocabulary import is_declared
from kernelgen.errors import UnsupportedError
from kernelgen.native.call import NativeKernel
from kernelgen.native.lines import prepared
from kernelgen.native.mapped import is_supported
from kernelgen.native.records import read_code, read_kernel
from kernelgen.native.team import team_of
from kernelgen.native.wrapper import caller_of
from kernelgen.system.answering import (
    AnsweringProcess,
    Limit,
    ProcessDied,
    ProcessLate,
    command_of,
    is_answering,
    is_python_startable,
)
from kernelgen.system.cores import core_count
from kernelgen.system.notices import warn_once
from kernelgen.tensor.printer import large_constants, show

_CHILD, _FUNCTION = "kernelgen.farm.child:answer", b"kernelgen.made_for_others:answer\n"
LIMIT = Limit(3600.0)

LEAST_KERNELS = 4
"""Fewer take about as long as another Python does to begin."""

EACH = 8
"""Kernels for which one more process pays: they take twice as long as it does to load isl and LLVM."""

_COMPILER = "islpy"


class Order(NamedTuple):
    """What is to be compiled for the CPU; ``constants`` are those of :func:`kernelgen.driver.compile`."""

    desc: KernelDesc
    constants: Collection[int] = ()


class ElsewhereKernel(NativeKernel):
    """A kernel with what reports tell of it; see :class:`kernelgen.kernel.Kernel` for all that it has of that."""

    def __init__(self, made: NativeKernel, preparation: NativeKernel | None, told: Mapping[str, Any]) -> None:
        super().__init__(made.signature, made.entry)
        self.preparation = preparation
        self.prepares, self.taken = tuple(told["prepares"]), tuple(told["taken"])
        self.cached, self.proof, self.source = told["cached"], told["proof"], told["source"]
        self.milliseconds: float = told["milliseconds"]

    def prepare(self, *constants: Any) -> tuple[Any, ...]:
        """What a call takes in place of constants, see :meth:`kernelgen.kernel.Kernel.prepare`."""
        return prepared(self.preparation, constants)


Made = ElsewhereKernel | UnsupportedError | None
"""A kernel, why the target cannot compile it, or None for what the caller should compile."""


def workers_for(kernels: int) -> int:
    """How many processes pay for so many ``kernels``; 0 where they had better be compiled here.

    A process that has the compiler already, or ends itself, saves nothing by one more, but time by several.
    """
    if kernels < LEAST_KERNELS or not (is_supported() and is_python_startable()):
        return 0
    several = min(core_count(), max(1, kernels // EACH))
    return 0 if several == 1 and (_COMPILER in sys.modules or is_answering()) else several


def made_elsewhere(orders: Sequence[Order], workers: int, done: Callable[[int], object]) -> list[Made]:
    """The kernel of each of the ``orders``, by so many ``workers``, which end before this does, also when it is interrupted.

    ``done`` is told how many are there.
    """
    found: list[Made] = [None] * len(orders)
    asked = [(number, request_of(order)) for number, order in enumerate(orders)]
    requests = [(number, request) for number, request in asked if request is not None]
    waiting = deque(sorted(requests, key=lambda request: -len(request[1])))  # what may take long begins
    answers: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
    crew = [_Worker(waiting, answers) for _ in range(workers)]
    try:
        for worker in crew:
            worker.start()
        for count, (number, answer) in enumerate(_said(answers, workers), 1):
            found[number] = _read(answer)
            done(count)
    finally:
        waiting.clear()
        for worker in crew:
            worker.end()
    return found


def _said(answers: queue.SimpleQueue[tuple[int, bytes] | None], workers: int) -> Iterator[tuple[int, bytes]]:
    """What comes, until all ``workers`` are at their end."""
    while workers:
        answer = answers.get()
        if answer is None:
            workers -= 1
        else:
            yield answer


def _fits(desc: KernelDesc) -> bool:
    """Whether the text of its graph says all of a description."""
    ordered = [node.name for node in desc.operators] == [node.name for node in desc.graph.operators]
    plain = KernelDesc(desc.graph) == desc and not any(large_constants(desc.graph))
    return ordered and plain and not any(is_declared(node.op) for node in desc.operators)


def request_of(order: Order) -> bytes | None:
    """What asks a process for an order; None where text does not hold all of it."""
    if not _fits(order.desc):
        return None
    return _FUNCTION + json.dumps([show(order.desc.graph), list(order.constants)]).encode()


def _read(answer: bytes) -> Made:
    reply = json.loads(answer)
    for notice in reply["notices"]:
        warn_once(notice)
    told = reply.get("answer")
    if told is None:  # an error: who compiles again meets it
        return None
    if "code" in told:
        return UnsupportedError(told["code"], told["why"])
    return read_told(told)


def read_told(told: Mapping[str, Any]) -> ElsewhereKernel:
    """The kernel that :mod:`kernelgen.made_for_others` tells of, loaded. Raises as :func:`read_kernel` does."""
    content, flags = memoryview(b64decode(told["content"])), tuple(told["flags"])
    caller = caller_of(read_code(told["caller"], content))
    team = None if told["team"] is None else team_of(read_code(told["team"], content))
    kernel, *others = [read_kernel(given, content, caller, team, flags) for given in told["kernels"]]
    return ElsewhereKernel(kernel, others[0] if others else None, told)


class _Worker(threading.Thread):
    """Asks a process for one kernel after the other, until none is waiting or the process is gone.

    What it says goes into ``answers`` with the number of its order, and None in the end.
    """

    def __init__(self, waiting: deque[tuple[int, bytes]], answers: queue.SimpleQueue[tuple[int, bytes] | None]) -> None:
        super().__init__(daemon=True)
        self._waiting, self._answers = waiting, answers
        self._process = AnsweringProcess(command_of(_CHILD))

    def run(self) -> None:
        """Until it ends."""
        try:
            while self._waiting:
                number, request = self._waiting.popleft()
                self._answers.put((number, self._process.answer(request, LIMIT)))
        except IndexError:  # another one took the last
            pass
        except (OSError, ProcessDied, ProcessLate) as error:
            warn_once(f"a process that compiled kernels is gone, this one compiles what it had: {error}")
        finally:
            self._process.end(kill=True)
            self._answers.put(None)

    def end(self) -> None:
        """Ends the process; the thread follows."""
        process = self._process.process
        if process is not None:
            process.kill()
