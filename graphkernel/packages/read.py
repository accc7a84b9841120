"""The door of packages: what a file is, and onnxruntime's library, which loads while all that follows is imported."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from graphkernel.errors import PackageError
from graphkernel.packages.container import REGIONS, PackageReader
from graphkernel.runtime.onnxruntime.environment import begin
from graphkernel.system.environment import check_threads
from graphkernel.system.numpy_threads import numpy_threads_later
from graphkernel.system.paths import path_text
from kernelgen import options

if TYPE_CHECKING:
    import numpy as np

    from graphkernel.communication.groups import Communicators
    from graphkernel.report.page.story import Story
    from graphkernel.runtime.executable import Executable


def load_compiled(
    path: str | os.PathLike[str], threads: int | None = None, *, communicator: Communicators = None
) -> Executable:
    """The executable of a package, written by ``exe.save(path)`` or ``graphkernel build``. No compiler is needed or loaded.

    Weights stay in the file, which is mapped: it must not be changed while the executable lives. A package holds machine
    code, which is run: load what you would run as a program. ``threads`` is how many threads a call may use, see
    :func:`graphkernel.compile`, and so is ``communicator``.
    Raises ``PackageError``, in one sentence, for a file that is damaged, of another format or
    version, or for another machine, and ``OptionError`` for a number of threads below 1.
    """
    package = PackageReader.mapped(path_text(path, "load_compiled", PackageError))
    found = read_package(package, {}, check_threads(threads))
    found.again = partial(load_compiled, package.path, threads)
    return found if communicator is None else found.over(communicator)


def read_package(
    package: PackageReader,
    elsewhere: Mapping[str, np.ndarray],
    threads: int | None = None,
    story: Callable[[], Story] | None = None,
    built: str | None = None,
) -> Executable:
    """The executable of a package, of which weights may lie ``elsewhere``, by digest; ``story`` is what its report tells.

    ``built`` is the text of the report of who has built it for this call: its times are told, not those of loading.
    Raises PackageError for a package that is damaged, or made for another machine or version.
    """
    start = time.perf_counter()
    with numpy_threads_later():
        begin_library(package, threads)
        from graphkernel.packages.loaded import loaded  # all that runs

        found = loaded(package, elsewhere, threads or options.asked_threads(), story, built, start)
    found.threads = threads
    return found


def begin_library(package: PackageReader, threads: int | None) -> None:
    """Begins what takes none of Python's lock: onnxruntime's library on ``threads``, where a ``package`` has regions."""
    if any(name.startswith(REGIONS) for name in package.names):
        begin(threads or options.asked_threads())
