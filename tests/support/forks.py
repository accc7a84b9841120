"""Children that are forked from a test."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable

SECONDS = 60
"""Until a child that hangs is given up."""


def in_forked_child(work: Callable[[], bool], seconds: float = SECONDS) -> int:
    """The exit code of a child that forks here: 0 where the work gave True; one that hangs is killed and gives -9."""
    child = multiprocessing.get_context("fork").Process(target=lambda: os._exit(0 if work() else 1))
    child.start()
    child.join(seconds)
    if child.is_alive():
        child.kill()
        child.join()
    assert child.exitcode is not None
    return child.exitcode
