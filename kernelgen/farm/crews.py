"""Who does the work: processes of this machine, the workers of a dask cluster, or any other executor.

    with crew_of("dask://scheduler:8786", jobs=2) as crew: ...

``processes`` or ``processes:4`` is this machine, ``dask://HOST:PORT`` a dask scheduler (``pip install 'graphkernel[farm]'``),
and ``package.module:function`` whatever executor that function gives.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from kernelgen.errors import ArgumentError, BackendUnavailable
from kernelgen.farm.sandbox import end_children
from kernelgen.system.cores import core_count
from kernelgen.system.notices import warn_once

Task = Callable[[bytes], bytes]
"""A function that another process finds by its name; it gives a reply (:mod:`kernelgen.farm.child`)."""

DASK = "dask://"
CONNECT_SECONDS = 10.0
AGAIN_SECONDS = 5.0
"""Between two attempts to reach a scheduler that is gone."""
COUNT_SECONDS = 1.0
"""Between two counts of a cluster's workers, which come and go."""


@dataclass(frozen=True)
class Crew:
    """``width`` says how many tasks to hand out to the executor at once, as of now: none while nobody is there.

    ``is_here``: it is this machine, which loses nothing and does not get better by asking again.
    """

    name: str
    executor: Executor
    width: Callable[[], int]
    is_here: bool = False


@contextmanager
def local(jobs: int) -> Generator[Crew]:
    """This machine: each thread asks a process of its own (:mod:`kernelgen.farm.sandbox`). They end with the context."""
    threads = ThreadPoolExecutor(jobs, thread_name_prefix="farm")
    try:
        yield Crew("this machine", threads, lambda: jobs, is_here=True)
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        end_children()
        threads.shutdown()


@contextmanager
def crew_of(text: str | None, jobs: int | None = None) -> Generator[Crew]:
    """The crew that a text means, see above; None: this machine with so many ``jobs``, by default one for each core.

    Raises ArgumentError for a text that means none, BackendUnavailable where dask or its scheduler is missing.
    """
    kind, _, rest = (text or "processes").partition(":")
    if kind == "processes" and (not rest or (rest.isdecimal() and int(rest) > 0)):
        with local(int(rest) if rest else jobs or core_count()) as crew:
            yield crew
    elif text and text.startswith(DASK):
        with _dask(f"tcp://{text.removeprefix(DASK)}") as crew:
            yield crew
    elif text and "." in kind and rest.isidentifier():
        with _made(kind, rest) as executor:
            yield Crew(text, executor, lambda: jobs or core_count())
    else:
        raise ArgumentError(f"--executor {text}: processes[:N], dask://HOST:PORT or package.module:function")


def _made(module: str, function: str) -> Executor:
    try:
        found = getattr(import_module(module), function)()
    except (ImportError, AttributeError) as error:
        raise ArgumentError(f"--executor {module}:{function}: {error}") from error
    if not isinstance(found, Executor):
        raise ArgumentError(f"--executor {module}:{function} gives no concurrent.futures.Executor")
    return found


@contextmanager
def _dask(address: str) -> Generator[Crew]:
    try:
        import distributed
    except ImportError as error:
        raise BackendUnavailable("dask:// needs dask.distributed: pip install 'graphkernel[farm]'") from error

    def connect() -> Any:  # a client
        return distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)

    try:
        connection = _Connection(address, connect, connect())
    except OSError as error:
        raise BackendUnavailable(f"no dask scheduler answers at {address}: {error}") from error
    with _silent():
        try:
            yield Crew(address, connection, connection.width)
        finally:
            connection.close()


@contextmanager
def _silent() -> Generator[None]:
    """Without dask's pages about connections that end: what matters of that is told in a line."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client", "tornado.application")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@dataclass(eq=False)
class _Connection(Executor):
    """A client of dask's, made anew when its scheduler was gone and is back; nobody waits for that."""

    address: str
    connect: Callable[[], Any]
    client: Any
    tried: float = 0.0
    attempt: Future[Any] | None = None
    """To reach the scheduler again, by a thread of its own: a client."""
    workers: frozenset[str] = frozenset()
    threads: int = 0
    counted: float = 0.0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self.client.get_executor(pure=False).submit(fn, *args, **kwargs)

    def width(self) -> int:
        """Twice the threads of all workers: the next request is there when an answer leaves."""
        if self.client.status != "running":
            self._again()
            return 0
        if time.monotonic() > self.counted + COUNT_SECONDS:
            self.threads, self.counted = self._threads(), time.monotonic()
        return 2 * self.threads

    def _threads(self) -> int:
        with suppress(Exception):  # it went this moment: the next look finds it gone
            found = self.client.sync(self.client.scheduler.ncores, callback_timeout=CONNECT_SECONDS)
            if gone := self.workers - found.keys():
                warn_once(f"workers are gone, others do their work: {', '.join(sorted(gone))}")
            self.workers = frozenset(found)
            return sum(found.values())
        return 0

    def _again(self) -> None:
        """Has a thread look whether the scheduler is back, and takes what it found."""
        if self.attempt is None and time.monotonic() >= self.tried + AGAIN_SECONDS:
            warn_once(f"the dask scheduler at {self.address} is gone; this machine works until it is back")
            self.attempt = _in_a_thread(lambda old=self.client: _renewed(old, self.connect))
        elif self.attempt is not None and self.attempt.done():
            if self.attempt.exception() is None:
                self.client = self.attempt.result()
            self.attempt, self.tried = None, time.monotonic()

    def close(self) -> None:
        _close(self.client)
        if self.attempt is not None:  # a scheduler that comes back now is not needed any more
            self.attempt.add_done_callback(lambda made: made.exception() is None and _close(made.result()))


def _renewed(old: Any, connect: Callable[[], Any]) -> Any:
    """Another client in place of one whose scheduler is gone."""
    _close(old)
    return connect()


def _close(client: Any) -> None:
    with suppress(Exception):  # a client whose scheduler is gone may not even close
        client.close(timeout=1)


def _in_a_thread(work: Callable[[], Any]) -> Future[Any]:
    """What a thread that nobody waits for, not even the end of the process, comes to."""
    found: Future[Any] = Future()

    def run() -> None:
        try:
            found.set_result(work())
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, daemon=True, name="farm-connect").start()
    return found
