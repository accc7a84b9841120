"""What the command line says of devices: doctor with and without one, and kernels for the GPU in the cache."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import graphkernel as gk
from graphkernel import ops
from graphkernel.cli import app
from kernelgen.errors import BackendUnavailable
from kernelgen.targets.gpu.nvrtc import version
from tests.support import fake_cupy

RUNNER = CliRunner()


def call(*arguments: str) -> str:
    found = RUNNER.invoke(app, list(arguments), catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_doctor_says_what_a_gpu_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr("graphkernel.cli.doctor._version", lambda name: "not installed" if "cu" in name else "1.0")
    text = call("doctor")
    assert "CUDA device\tnone: cupy is not installed" in text
    assert "for nvidia-cuda-nvrtc, nvidia-cuda-runtime, cupy-cuda13x: pip install 'graphkernel[gpu]'" in text


def test_doctor_names_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy.install(monkeypatch)
    assert "CUDA device\tNVIDIA Stand-in, sm_90" in call("doctor")


def test_cache_shows_kernels_of_the_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        version()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    (y,) = gk.compile(gk.trace(lambda x: ops.neg(ops.add(x, 1.0)), gk.spec((3, 4))), 2, "gpu")(x)
    assert np.array_equal(y, -(x + 1))
    assert "\tgpu\t" in call("cache", "ls")
    assert call("cache", "verify") == "1 whole, 0 damaged\n"
    assert "removed 1 kernel" in call("cache", "prune", "--max-size", "0")
