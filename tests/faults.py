"""``python -m tests.faults [--count 20] [--only NAME] [--json OUT]``: what a process meets on a machine that it shares.

Each kind of fault is a function of how often and of a folder, and gives what went wrong, as texts. The suite runs each a few
times; the command runs each often. A program that is right prints so; whatever else it does is a finding.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from llvmlite.binding import ffi

import graphkernel as gk
from graphkernel import ops
from tests.support.forks import in_forked_child

LIMIT_SECONDS = 120
X = np.random.default_rng(0).random((600, 500), np.float32) + 0.5
HOMELESS = "import os, pwd; pwd.getpwuid = {}.__getitem__; [os.environ.pop(n, 0) for n in ('HOME', 'XDG_CACHE_HOME')];"
NOBODY = 65534
LLVM_FINALIZER: Any = ffi.ObjectRef.__del__  # llvmlite has no types
SMALL_FILES = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512));"


def net(number: int) -> Callable[[Any], Any]:
    """One of many nets: a kernel for threads, one for rows, and one on small arrays."""
    by = 1.0 + number / 4096

    def rows(x: Any) -> Any:
        e = ops.exp(x * by)
        return e / ops.reduce_sum(e, axis=(1,), keep_dims=True)

    return rows


def is_right(number: int) -> bool:
    """Whether a net, compiled now, gives what numpy gives, as kernels."""
    exe = gk.compile(gk.trace(net(number), X), 2, host="numpy")
    e = np.exp(X.astype(np.float64) * (1.0 + number / 4096))
    near = np.allclose(exe(X)[0], e / e.sum(axis=1, keepdims=True), rtol=1e-4)
    return bool(near) and not exe.report.fallbacks


def started(number: int, cache: Path | str, before: str = "", **environment: str) -> subprocess.Popen[str]:
    """A process that says whether a net is right."""
    program = f"{before}from tests.faults import is_right; print('right' if is_right({number}) else 'wrong')"
    return subprocess.Popen(
        [sys.executable, "-c", program], env={**os.environ, "GRAPHKERNEL_CACHE_DIR": str(cache), **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ended(process: subprocess.Popen[str], what: str) -> list[str]:
    """What went wrong in it."""
    try:
        out, errors = process.communicate(timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return [f"{what}: not finished after {LIMIT_SECONDS} s"]
    return (
        [] if (process.returncode, out) == (0, "right\n") else [f"{what}: {process.returncode} {out} {errors[-500:]}"]
    )


def killed(count: int, folder: Path) -> list[str]:
    """Killed at any moment of a compilation, then run again with the same cache."""
    found: list[str] = []
    for number in range(count):
        victim = started(number, folder)
        time.sleep(random.Random(number).uniform(0.2, 1.5))
        victim.kill()
        victim.communicate()
        found += ended(started(number, folder), f"kill {number}")
    return found


def shared(count: int, folder: Path) -> list[str]:
    """Eight processes compile the same at once into one cache."""
    return [
        problem
        for number in range(count)
        for process in [started(number, folder) for _ in range(8)]
        for problem in ended(process, f"one of eight, {number}")
    ]


def forked(count: int, folder: Path) -> list[str]:
    """Children that are forked after kernels have run on threads, and while other threads compile."""
    found = [] if is_right(0) else ["parent before"]
    stop = threading.Event()

    def busy() -> None:
        number = 1000
        while not stop.is_set():
            is_right(number := number + 1)

    other = threading.Thread(target=busy)
    other.start()
    for number in range(count):
        code = in_forked_child(lambda number=number: is_right(0) and is_right(2000 + number), LIMIT_SECONDS)
        found += [f"child {number} ended with {code}"] if code else []
    stop.set()
    other.join()
    return found if is_right(0) else [*found, "parent after"]


def threads(count: int, folder: Path) -> list[str]:
    """Eight threads compile and call, the same executable and their own."""
    found: list[str] = []
    shared_one = gk.compile(gk.trace(net(1), X), 2, host="numpy")
    wanted = shared_one(X)[0]

    def work(thread: int) -> None:
        for number in range(count):
            if not is_right(3000 + 100 * number + thread):
                found.append(f"thread {thread}, {number}: compiled")
            if not np.array_equal(shared_one(X)[0], wanted):
                found.append(f"thread {thread}, {number}: called")

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(LIMIT_SECONDS)
    return [*found, *("a thread hangs" for worker in workers if worker.is_alive())]


def interrupted(count: int, folder: Path) -> list[str]:
    """The keyboard's interrupt at any moment of calls and compilations; afterwards all is as before."""
    exe = gk.compile(gk.trace(net(2), X), 2, host="numpy")
    wanted, found = exe(X)[0], list[str]()
    for number in range(count):
        with _dropped_in_finalizers():  # until the frames that the interrupt left are gone
            try:  # around the alarm too, which may ring while it is turned off
                with _alarm(random.Random(number).uniform(0.001, 0.1)):
                    for _ in range(100):
                        exe(X)
                        is_right(4000 + number)
            except KeyboardInterrupt:
                pass
        if not np.array_equal(exe(X)[0], wanted) or not is_right(4000 + number):
            found.append(f"after interrupt {number}")
    return found


@contextmanager
def _alarm(seconds: float) -> Generator[None]:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _dropped_in_finalizers() -> Generator[None]:
    """Python drops an interrupt that arrives while a finalizer runs, and says so: that is no fault of the finalizer.
    Neither are the words of an object of llvmlite that the interrupt left half made: its finalizer takes it for whole.
    """
    before = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        half_made = unraisable.object is LLVM_FINALIZER
        if unraisable.exc_type is not KeyboardInterrupt and not half_made:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def full(count: int, folder: Path) -> list[str]:
    """No room for what is written: every file ends after 512 bytes."""
    found: list[str] = []
    for number in range(count):
        found += ended(started(number, folder, SMALL_FILES), f"full {number}")
    return [*found, *(f"left behind: {path}" for path in folder.rglob("*") if path.is_file() and path.stat().st_size)]


def without_folder(count: int, folder: Path) -> list[str]:
    """A cache that cannot be made, and users without a home."""
    found: list[str] = []
    for number in range(count):
        found += ended(started(number, "/proc/nowhere"), "read only")
        found += ended(started(number, ""), "no folder") if number == 0 else []
        found += ended(started(number, "", HOMELESS), "no home")
    return found


def foreign(count: int, folder: Path) -> list[str]:
    """Objects of other kernels under each other's names, and folders that anybody may write to."""
    found: list[str] = []
    for number in range(count):
        cache = folder / str(number)
        for each in range(2):
            found += ended(started(2 * number + each, cache), "first")
        entries = sorted(cache.glob("cpu/*/*.o"))
        contents = [path.read_bytes() for path in entries]
        for path, content in zip(entries, [*contents[1:], contents[0]], strict=True):
            path.write_bytes(content)
        found += ended(started(2 * number, cache), "exchanged objects")
        for path in cache.rglob("*"):
            path.chmod(0o777)
        found += ended(started(2 * number, cache), "open to all")
    return found


def many_threads(count: int, folder: Path) -> list[str]:
    """More threads than any machine has, and numbers that are none."""
    asked = ("100000", "2000", "²", "", "-1", "99999999999999999999")
    return [
        problem
        for number, text in enumerate(asked[: max(2, count)])
        for problem in ended(started(number, folder, OMP_NUM_THREADS=text), f"OMP_NUM_THREADS={text}")
    ]


def refused(count: int, folder: Path) -> list[str]:
    """A machine that gives a process no further thread."""
    before = "from tests.faults import refuse_threads; refuse_threads();"
    return [
        problem for number in range(count) for problem in ended(started(number, folder, before), f"refused {number}")
    ]


def refuse_threads() -> None:
    """No further thread for this process: as a user who may have one task, since the superuser has no limit."""
    import resource

    gk.compile(gk.trace(net(0), X[:2]), 2, host="numpy")(X[:2])  # loads what another user could not read
    if os.geteuid() == 0:
        os.setuid(NOBODY)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))


FAULTS: Mapping[str, Callable[[int, Path], list[str]]] = {
    one.__name__: one
    for one in (killed, shared, forked, threads, interrupted, full, without_folder, foreign, many_threads, refused)
}


def main(
    count: Annotated[int, typer.Option(help="how often each fault")] = 20,
    only: Annotated[str, typer.Option(help="one fault alone")] = "",
    json_: Annotated[Path | None, typer.Option("--json", help="write the record there")] = None,
) -> None:
    """Runs every fault so often; fails when one is not survived. A record that is there keeps its other faults."""
    record: dict[str, dict[str, Any]] = json.loads(json_.read_text()) if json_ and json_.exists() else {}
    problems = 0
    for name in [name for name in FAULTS if only in ("", name)]:
        start = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = FAULTS[name](count, Path(folder))
        problems += len(found)
        record[name] = {"count": count, "seconds": round(time.monotonic() - start, 1), "problems": found}
        typer.echo(f"{name}: {len(found)} problems in {record[name]['seconds']} s {found[:3] or ''}")
        if json_ is not None:
            json_.write_text(json.dumps({known: record[known] for known in FAULTS if known in record}, indent=1) + "\n")
    if problems:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
