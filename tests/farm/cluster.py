"""A dask scheduler and its workers as processes of this machine, which may be killed and started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "60s",
    "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False",
    "DASK_LOGGING__DISTRIBUTED": "critical",
}


class Cluster:
    """``address`` is where the scheduler listens. A worker that ends is started again, as whoever runs a cluster does."""

    def __init__(self, workers: int, **environment: str) -> None:
        with socket.socket() as place:
            place.bind(("127.0.0.1", 0))
            self.port = place.getsockname()[1]
        self.environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(ROOT), **SETTINGS, **environment}
        self.scheduler = self._scheduler()
        self.workers = [self._worker() for _ in range(workers)]
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    @property
    def address(self) -> str:
        """For ``--executor``."""
        return f"dask://127.0.0.1:{self.port}"

    def kill_worker(self) -> None:
        """One worker ends at once, with what it was working on."""
        _kill(self.workers[0])

    def kill_scheduler(self, seconds: float) -> None:
        """The scheduler ends at once; another one is there after so many ``seconds``."""
        _kill(self.scheduler)
        time.sleep(seconds)
        self.scheduler = self._scheduler()

    def close(self) -> None:
        """Ends all processes."""
        self._over.set()
        self._keeper.join()
        for process in (*self.workers, self.scheduler):
            _kill(process)

    def _keep(self) -> None:
        while not self._over.wait(0.5):
            for place, worker in enumerate(self.workers):
                if worker.poll() is not None:
                    self.workers[place] = self._worker()

    def _scheduler(self) -> subprocess.Popen[bytes]:
        where = ("--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard")
        return self._started("scheduler", *where)

    def _worker(self) -> subprocess.Popen[bytes]:
        where = ("--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "120")
        return self._started("worker", f"tcp://127.0.0.1:{self.port}", *where)

    def _started(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "dask", *command], env=self.environment, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip


@contextmanager
def cluster(workers: int, **environment: str) -> Generator[Cluster]:
    """A cluster that is ready, with this many workers; ``environment`` is added to theirs. Ends with the context."""
    from distributed import Client

    made = Cluster(workers, **environment)
    try:
        with Client(f"tcp://127.0.0.1:{made.port}", timeout=60, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=60)
        yield made
    finally:
        made.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
