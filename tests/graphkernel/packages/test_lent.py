"""What a package lends to onnxruntime: memory that its sessions leave behind goes back, also where each leaves little."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.packages import lent
from graphkernel.system.freed_memory import MUCH
from kernelgen.native import mapped

pytestmark = pytest.mark.skipif(not mapped.is_supported(), reason="packages are made on x86-64 Linux")


def saved(extent: int, path: Path) -> Path:
    """A package of two regions, each with a weight of ``extent`` rows and columns, and a kernel between them."""
    weight = np.ones((extent, extent), np.float32)
    other = weight * 2
    graph = gk.trace(lambda x: ops.matmul(ops.exp(ops.matmul(x, weight)) + 1.0, other), gk.spec((2, extent), "float32"))
    gk.compile(graph, flags="--disable_cluster_ops=MatMul").save(path)
    return path


@pytest.mark.parametrize(("extent", "times"), [(400, 1), (64, 0)])
def test_memory_of_many_small_sessions_goes_back(
    extent: int, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 4 * extent**2 <= MUCH
    assert (8 * extent**2 > MUCH) == bool(times)
    package, returned = saved(extent, tmp_path / "net.gkx"), list[bool]()
    monkeypatch.setattr(lent, "return_freed_memory", lambda: returned.append(True))
    gk.load_compiled(package)
    assert len(returned) == times
