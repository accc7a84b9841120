"""A process without a compiler has the kernels of a network compiled by others: the same, reported the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernelgen.native import mapped

pytestmark = pytest.mark.skipif(not mapped.is_supported(), reason="machine code is given away on x86-64 Linux")

PROGRAM = """
import sys, numpy as np, graphkernel as gk
from graphkernel import ops
weight = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
def net(x):
    for k in range(4):
        x = ops.softmax(ops.matmul(x, weight) * float(k + 1), axis=k % 2)
    return x
graph = gk.trace(net, gk.spec((8, 64), "float32"))
{before}
exe = gk.compile(graph)
exe.save(sys.argv[1])
result = exe(np.eye(8, 64, dtype=np.float32))[0]
print(len(exe.report.kernels), "islpy" in sys.modules, exe.report.fallbacks == (), result.sum())
"""
HERE = "import islpy"
DEAD = "sys.executable = '/nowhere/python3'"


def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, before: str) -> tuple[list[str], bytes]:
    """What the program prints and saves in a fresh process with an empty cache."""
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path / name))
    package = tmp_path / f"{name}.gkx"
    command = [sys.executable, "-c", PROGRAM.format(before=before), str(package)]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.split()
    return told, package.read_bytes()


def test_packages_are_equal_wherever_kernels_were_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, package = ran(tmp_path, monkeypatch, "elsewhere", "")
    here, same = ran(tmp_path, monkeypatch, "here", HERE)
    assert int(told[0]) >= 4
    assert (told[1], here[1]) == ("False", "True")
    assert (told[0], *told[2:]) == (here[0], *here[2:])
    assert package == same


def test_where_no_process_starts_this_one_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, package = ran(tmp_path, monkeypatch, "dead", DEAD)
    _, same = ran(tmp_path, monkeypatch, "elsewhere", "")
    assert (told[1], told[2]) == ("True", "True")
    assert package == same
