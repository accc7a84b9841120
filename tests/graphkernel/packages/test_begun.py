"""Sessions of a package open while numpy loads: they take addresses in its file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import PackageError
from graphkernel.packages.begun import begun_sessions
from graphkernel.packages.container import PackageReader
from graphkernel.packages.manifest import MANIFEST, WEIGHTS, Manifest, read_manifest
from kernelgen.native import mapped

pytestmark = pytest.mark.skipif(not mapped.is_supported(), reason="packages are made on x86-64 Linux")

OPEN = """
import sys, graphkernel as gk
from graphkernel.packages.begun import begun_sessions
from graphkernel.packages.container import PackageReader
from graphkernel.packages.manifest import MANIFEST, read_manifest
package = PackageReader.mapped(sys.argv[1])
manifest = read_manifest(bytes(package.view(MANIFEST)), gk.__version__)
print(*sorted(begun_sessions(package, manifest, None).result()), "numpy" in sys.modules)
"""


def saved(path: Path) -> Manifest:
    """The manifest of a package of one region with a weight, and a kernel behind it."""
    weight = np.ones((64, 64), np.float32)
    graph = gk.trace(lambda x: ops.exp(ops.matmul(x, weight)) + 1.0, gk.spec((2, 64), "float32"))
    gk.compile(graph, flags="--disable_cluster_ops=MatMul").save(path)
    return read_manifest(bytes(PackageReader.mapped(path).view(MANIFEST)), gk.__version__)


def test_sessions_open_without_numpy(tmp_path: Path) -> None:
    (region,) = saved(tmp_path / "net.gkx").regions
    assert region.weights
    told = subprocess.run(
        [sys.executable, "-c", OPEN, tmp_path / "net.gkx"], capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == [region.model, "False"]


def test_weights_beyond_the_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.gkx"
    manifest, content = saved(path), path.read_bytes()
    header = bytes(PackageReader.mapped(path).view(WEIGHTS)[8:100])
    at = content.index(header)
    where = content.index(b'"data_offsets":[0,', at) + len(b'"data_offsets":[0,')
    path.write_bytes(content[:where] + b"9" + content[where + 1 :])
    with pytest.raises(PackageError, match="weights whose header does not fit them"):
        begun_sessions(PackageReader.mapped(path), manifest, None).result()
