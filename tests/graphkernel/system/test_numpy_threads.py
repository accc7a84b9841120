"""numpy's threads start when a package is loaded, as many as without us; what the user asks for stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.system.numpy_threads import ASKED, VARIABLE, numpy_threads_later
from kernelgen.native import mapped

WATCH = """
import ctypes, importlib.util, json, os, pathlib, sys
seen = []
class Watch:
    def find_spec(self, name, *_):
        if name == "numpy._core":
            seen.append(os.environ.get("OPENBLAS_NUM_THREADS"))
sys.meta_path.insert(0, Watch())
{program}
folder = pathlib.Path(sys.modules["numpy"].__file__).parents[1] / "numpy.libs"
library = next(folder.glob("libscipy_openblas64_*"), None)
threads = library and ctypes.CDLL(str(library)).scipy_openblas_get_num_threads64_()
print(json.dumps([seen, threads, os.environ.get("OPENBLAS_NUM_THREADS")]))
"""


def told_by(program: str, **environment: str) -> Any:
    """What the variable was when numpy was imported, how many threads OpenBLAS has in the end (None without it), and what
    the variable is then."""
    free = {name: value for name, value in os.environ.items() if name not in ASKED}
    run = [sys.executable, "-c", WATCH.format(program=program)]
    return json.loads(subprocess.run(run, env=free | environment, capture_output=True, text=True, check=True).stdout)


@pytest.fixture
def package(tmp_path: Path) -> str:
    """A program that loads a package."""
    if not mapped.is_supported():
        pytest.skip("packages are made on x86-64 Linux")
    gk.compile(gk.trace(lambda x: ops.exp(x) + 1.0, gk.spec((8,), "float32"))).save(tmp_path / "net.gkx")
    return f"import graphkernel; graphkernel.load_compiled({str(tmp_path / 'net.gkx')!r})"


def test_they_start_behind_the_load(package: str) -> None:
    _, threads, _ = told_by("import numpy")
    if threads is None:
        pytest.skip("numpy is no wheel with OpenBLAS")
    assert told_by(package) == [["1"], threads, None]


def test_a_load_that_fails_starts_them_too() -> None:
    program = """
from graphkernel.system.numpy_threads import numpy_threads_later
try:
    with numpy_threads_later():
        import numpy
        raise ValueError
except ValueError:
    pass
"""
    seen, threads, left = told_by(program)
    assert (threads, left) == tuple(told_by("import numpy")[1:])
    assert seen == [None if threads is None else "1"]


@pytest.mark.parametrize("name", ASKED)
def test_the_number_that_a_user_asks_for_stays(package: str, name: str) -> None:
    given = {name: "1"}
    assert told_by(package, **given) == told_by("import numpy", **given)


def test_a_numpy_that_is_there_keeps_its_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert "numpy" in sys.modules
    with numpy_threads_later():
        assert VARIABLE not in os.environ
