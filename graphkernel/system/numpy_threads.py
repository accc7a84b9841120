"""numpy loaded while others need the processors: its own threads start when that is over, as many as ever.

OpenBLAS, on which numpy's wheels multiply matrices, starts a thread for each processor when it is loaded, and all of them spin
for more than a tenth of a second before they sleep. On two processors that takes one from whatever is loaded beside numpy.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress

VARIABLE = "OPENBLAS_NUM_THREADS"
ASKED = (VARIABLE, "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
"""The variables by which a user says how many threads there shall be: then nothing is changed."""
_LIBRARIES, _OPENBLAS = "numpy.libs", "libscipy_openblas64_"  # where a wheel has its library, and how that is called


@contextmanager
def numpy_threads_later() -> Generator[None]:
    """Where numpy's wheel is first imported within, OpenBLAS starts its threads at the end instead of at once.

    It reads the variable when it is loaded. A numpy that is there already or lies on another library stays as it is.
    """
    library = "" if "numpy" in sys.modules or any(name in os.environ for name in ASKED) else _openblas()
    if not library:
        yield
        return
    os.environ[VARIABLE] = "1"
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if "numpy" in sys.modules:
            _start_threads(library)


def _openblas() -> str:
    """The library of numpy's wheel; empty where there is none, or more than one."""
    numpy = importlib.util.find_spec("numpy")
    if numpy is None or numpy.origin is None:
        return ""
    folder = os.path.join(os.path.dirname(os.path.dirname(numpy.origin)), _LIBRARIES)
    with suppress(OSError):
        found = [name for name in os.listdir(folder) if name.startswith(_OPENBLAS)]
        if len(found) == 1:
            return os.path.join(folder, found[0])
    return ""


def _start_threads(library: str) -> None:
    """As many as OpenBLAS itself starts: one for each processor that this process may use."""
    openblas = ctypes.CDLL(library)
    openblas.scipy_openblas_set_num_threads64_(openblas.scipy_openblas_get_num_procs64_())
