"""Timing several ways to run a model, each alone in a process of its own, in turns.

In one process contestants share threads: those of one go on spinning while another is measured. Here everybody else
sleeps, and each has its own peak of memory. What a contestant runs is a value that can be pickled.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from graphkernel.driver import compile, compile_as_is
from graphkernel.errors import GraphKernelError, RuntimeFailure
from graphkernel.frontends.load import load
from graphkernel.report.report import Report
from graphkernel.runtime.measure import Spread, how_often, seconds_of, spread_of
from graphkernel.runtime.onnxruntime.whole_model import WholeModel
from graphkernel.runtime.peak_memory import peak_memory
from graphkernel.step_hooks import Progress

PER_TURN = 3  # measurements
Clock = Callable[[], float]
Run = Callable[..., Sequence[Any]]
Made = tuple[Run, Report | None]


class Contestant(Protocol):
    """Makes what runs the model, in its own process; the report of how, where there is one."""

    def make(self, tell: Progress) -> Made:
        """Loads the model."""
        ...


@dataclass(frozen=True)
class Fused:
    """The model as we compile it."""

    model: Path
    opt_level: int = 2
    target: str = "cpu"
    flags: str = ""
    dims: Mapping[str, int] = field(default_factory=dict[str, int])

    def make(self, tell: Progress) -> Made:
        """Loads and compiles."""
        made = compile(load(self.model, self.dims), self.opt_level, self.target, self.flags or None, progress=tell)
        return made, made.report


@dataclass(frozen=True)
class Unfused:
    """The model as we run it without any kernel."""

    model: Path
    dims: Mapping[str, int] = field(default_factory=dict[str, int])

    def make(self, tell: Progress) -> Made:
        """Loads it."""
        made = compile_as_is(load(self.model, self.dims), progress=tell)
        return made, made.report


@dataclass(frozen=True)
class OnnxRuntime:
    """The file on onnxruntime with its default settings, or others: see :class:`WholeModel`."""

    model: Path
    settings: Mapping[str, object] = field(default_factory=dict[str, object])

    def make(self, tell: Progress) -> Made:
        """Makes the session."""
        return WholeModel(self.model, self.settings), None


@dataclass(frozen=True)
class Outcome:
    """Of one contestant: the time of a call, the seconds until it could run, its memory in bytes, and what it gave."""

    seconds: Spread
    ready: float
    peak: int
    results: tuple[np.ndarray, ...]
    report: Report | None


def contest(
    contestants: Mapping[str, Contestant],
    arrays: Sequence[np.ndarray],
    rounds: int,
    tell: Progress,
    clock: Clock = time.perf_counter,
) -> dict[str, Outcome]:
    """Makes all ``contestants`` ready, one after the other, then measures them in turns on the ``arrays``, so many
    ``rounds``, by a ``clock`` of seconds.

    ``tell`` is told how far it is. Raises ``RuntimeFailure``, which names the one that fails.
    """
    with ExitStack() as stack:
        rivals = {name: stack.enter_context(_Rival(name, each, clock)) for name, each in contestants.items()}
        for name, rival in rivals.items():
            tell(f"{name}: getting ready", 0, 0)
            rival.prepare(arrays, lambda what, done, total, name=name: tell(f"{name}: {what}", done, total))
        for number in range(rounds):
            tell("measuring", number, rounds)
            for rival in rivals.values():
                rival.turn()
        return {name: rival.outcome() for name, rival in rivals.items()}


class _Rival:
    """The side of a contestant in this process."""

    def __init__(self, name: str, contestant: Contestant, clock: Clock) -> None:
        self.name = name
        self._seconds: list[float] = []
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, contestant, clock), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()

    def prepare(self, arrays: Sequence[np.ndarray], tell: Progress) -> None:
        """Waits until it can run, and has run once."""
        self._pipe.send(list(arrays))
        while (said := self._hear())[0] == "progress":
            tell(*said[1:])
        _, self._ready, self._results, self._report = said

    def turn(self) -> None:
        """Has it measured."""
        self._pipe.send("turn")
        self._seconds += self._hear()[1]

    def outcome(self) -> Outcome:
        """What was found."""
        self._pipe.send("peak")
        return Outcome(spread_of(self._seconds), self._ready, self._hear()[1], self._results, self._report)

    def _hear(self) -> tuple[Any, ...]:
        try:
            said = self._pipe.recv()
        except EOFError:
            raise RuntimeFailure(f"{self.name}: its process died") from None
        if said[0] == "failed":
            raise RuntimeFailure(f"{self.name}: {said[1]}")
        return said


def _serve(pipe: Connection, contestant: Contestant, clock: Clock) -> None:
    """The side of a contestant in its own process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    try:
        arrays = pipe.recv()
        start = time.perf_counter()
        run, report = contestant.make(lambda *said: pipe.send(("progress", *said)))
        results = tuple(map(np.asarray, run(*arrays)))
        ready = time.perf_counter() - start
        often = how_often(lambda: run(*arrays))
        pipe.send(("ready", ready, results, report))
        while True:
            asked = pipe.recv()
            if asked == "peak":
                pipe.send(("peak", peak_memory()))
                continue
            run(*arrays)  # unmeasured: the threads of the contestant before fall asleep
            pipe.send(("turn", [seconds_of(lambda: run(*arrays), often, clock) for _ in range(PER_TURN)]))
    except EOFError:  # the other side is gone
        return
    except Exception as error:  # whatever a contestant raises is told on the other side, with its name
        said = str(error) if isinstance(error, GraphKernelError) else f"{type(error).__name__}: {error}"
        pipe.send(("failed", said))
