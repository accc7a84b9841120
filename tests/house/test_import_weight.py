"""Imports stay light: heavy libraries load when they are needed, not before."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "onnx", "onnxruntime", "cupy", "llvmlite", "islpy", "pandas", "jax")
OPTIMIZE = """
import graphkernel as gk
from graphkernel import ops
graph = gk.trace(lambda x: ops.add(ops.mul(x, 2.0), 1.0), gk.spec((4, 4), "float32"))
assert gk.optimize(graph, opt_level=2) is not graph
"""


def loaded_after(program: str) -> set[str]:
    """The heavy libraries in memory after a program ran in a fresh process."""
    report = f"{program}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, check=True, timeout=120)
    return set(done.stdout.split())


@pytest.mark.parametrize("package", ["graphkernel", "graphkernel.ops", "kernelgen", "kernelgen.nest.nodes"])
def test_import_is_light(package: str) -> None:
    assert loaded_after(f"import {package}") == set()


def test_optimizing_needs_no_code_generator() -> None:
    assert loaded_after(OPTIMIZE) == set()


def test_the_probe_sees_a_heavy_import() -> None:
    assert loaded_after("import llvmlite") == {"llvmlite"}
