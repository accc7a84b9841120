"""A process without a compiler has the kernels of a network compiled by others: the same, reported the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import graphkernel as gk
import kernelgen
from graphkernel import ops
from graphkernel.building import build_kernels
from kernelgen.made_elsewhere import ElsewhereKernel
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


def test_kernels_that_another_graph_had_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path))
    x = gk.spec((8, 64), "float32")
    graphs = gk.trace(narrow, x), gk.trace(wide, x, gk.spec((32, 16), "float32"))
    first, again = (build_kernels(gk.optimize(graph), "cpu", None, None) for graph in graphs)
    assert [isinstance(made.call, ElsewhereKernel) for made in first.compiled.values()] == [False]
    (name,) = (entry.name for entry in first.entries)
    taken = [
        node.body.name for node, made in again.compiled.items() if isinstance(made.call, ElsewhereKernel) and node.body
    ]
    assert (len(again.compiled), taken) == (2, [name])
    assert {entry.name: entry.cached for entry in again.entries}[name]


def test_a_compiler_that_is_given_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path))
    graph, asked = gk.optimize(gk.trace(narrow, gk.spec((8, 64), "float32"))), list[str]()

    def compiler(desc: kernelgen.KernelDesc, target: str) -> kernelgen.Kernel:
        asked.append(desc.name)
        return kernelgen.compile(desc, target)

    build_kernels(graph, "cpu", None, None)
    build_kernels(graph, "cpu", compiler, None)
    assert len(asked) == 1


def narrow(x: gk.Tensor) -> gk.Tensor:
    return ops.exp(x) * 2.0 + 1.0


def wide(x: gk.Tensor, y: gk.Tensor) -> tuple[gk.Tensor, gk.Tensor]:
    return narrow(x), ops.softmax(y)
