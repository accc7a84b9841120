"""Descriptions that nobody should write end in a result or in one clear error, in bounded time and memory.

Each runs in a process of its own with limits on processor time and memory, so that a hang or an allocation is a failure
of one test and not of the run.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from kernelgen.composite.read import load_desc
from kernelgen.errors import DescError
from tests.support.hostile import NONSENSE
from tests.support.sources import ROOT

MEMORY = 3 << 30
SECONDS = 30

PROGRAM = """
import json, sys
sys.path[:0] = ["tests/support"]
import hostile
from kernelgen.composite.read import load_desc
from kernelgen.composite.write import dump_desc
from kernelgen.driver import compile
from kernelgen.errors import KernelgenError
name, *sizes = sys.argv[1:]
try:
    compile(load_desc(dump_desc(getattr(hostile, name)(*map(int, sizes)))), "cpu")
    print(json.dumps(["compiled", ""]))
except KernelgenError as error:
    print(json.dumps([getattr(error, "code", type(error).__name__), str(error)]))
"""

COMPILED = [
    "chain 1000", "softmaxes 200", "column_and_row_sums 100", "many_inputs 1000", "many_outputs 1000", "many_parts 300",
    "many_boxes 300", "row_sums 200", "all_pairs 44", "doubled 500",
    "huge 1099511627776", "huge_phases 1048576 1048576", "broadcast_bomb 16384", "high_rank 12", "reshapes 60",
    "transposes 100",
]  # fmt: skip
LONG = ("softmaxes 200", "row_sums 200", "doubled 500")
REFUSED = {
    "chain 5000": ("budget", "5000 operators"),
    "softmaxes 1000": ("budget", "5000 operators"),
    "many_inputs 5000": ("budget", "4999 operators"),
    "huge 4611686018427387904": ("too-large", "64-bit"),
    "huge 1180591620717411303424": ("too-large", "64-bit"),
    "huge 4294967296 4294967296": ("too-large", "4294967296 x 4294967296"),
}


def limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))


def outcome(case: str, cache: Path) -> tuple[str, str]:
    command = [sys.executable, "-c", PROGRAM, *case.split()]
    environment = {"GRAPHKERNEL_CACHE_DIR": str(cache), "PATH": "", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, preexec_fn=limited
    )
    assert done.returncode == 0, done.stderr[-2000:]
    status, message = json.loads(done.stdout)
    return status, message


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=pytest.mark.long) if case in LONG else case for case in COMPILED]
)
def test_it_compiles(case: str, tmp_path: Path) -> None:
    assert outcome(case, tmp_path) == ("compiled", "")


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_in_one_sentence(case: str, tmp_path: Path) -> None:
    code, part = REFUSED[case]
    status, message = outcome(case, tmp_path)
    assert status == code
    assert part in message


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_a_description_error(name: str) -> None:
    with pytest.raises(DescError, match=r"^\$"):
        load_desc(NONSENSE[name]())


def test_deeply_nested_json_is_a_description_error() -> None:
    with pytest.raises(DescError, match="nested deeper"):
        load_desc("[" * 100_000)
