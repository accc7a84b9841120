"""What the command line says of devices: doctor with and without one, and kernels for the GPU in the cache."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import graphkernel as gk
from examples.networks.bert import Bert
from graphkernel import ops
from graphkernel.cli import app
from kernelgen.errors import BackendUnavailable
from kernelgen.targets.gpu.launch.nvrtc import version
from tests.support import fake_cupy

RUNNER = CliRunner()


def call(*arguments: str) -> str:
    found = RUNNER.invoke(app, list(arguments), catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


def test_doctor_says_what_a_gpu_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr("graphkernel.cli.doctor._version", lambda name: "not installed" if "cu" in name else "1.0")
    text = " ".join(call("doctor").split())
    assert "CUDA device none: cupy is not installed" in text
    assert "for nvidia-cuda-nvrtc, nvidia-cuda-runtime, cupy-cuda13x: pip install 'graphkernel[gpu]'" in text


def test_doctor_names_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cupy.install(monkeypatch)
    assert "CUDA device NVIDIA Stand-in, sm_90" in " ".join(call("doctor").split())


@pytest.fixture
def compiler() -> None:
    try:
        version()
    except BackendUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("compiler")
def test_a_network_is_optimized_told_of_and_run(tmp_path: Path) -> None:
    model, fused = tmp_path / "encoder.gk", tmp_path / "fused.gk"
    encoder = Bert(layers=1, hidden=8, heads=2, inner=12, vocabulary=9, positions=6).encoder(1, 3)
    gk.save(encoder, model)
    call("optimize", str(model), "--target", "gpu", "--output", str(fused))
    assert gk.load(fused) == gk.optimize(encoder, target="gpu")
    assert "kernels" in call("report", str(model), "--target", "gpu")
    assert "float32[3, 8]" in call("run", str(model), "--target", "gpu", "--against", "numpy")


@pytest.mark.usefixtures("compiler")
def test_a_function_is_compiled_when_it_is_called() -> None:
    fast = gk.jit(lambda x: ops.softmax(ops.add(x, 1.0), axis=-1), target="gpu")
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(fast(x), np.exp(x) / np.exp(x).sum(-1, keepdims=True), rtol=1e-5)


@pytest.mark.usefixtures("compiler")
def test_cache_shows_kernels_of_the_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path))
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    (y,) = gk.compile(gk.trace(lambda x: ops.neg(ops.add(x, 1.0)), gk.spec((3, 4))), 2, "gpu")(x)
    assert np.array_equal(y, -(x + 1))
    assert " gpu " in call("cache", "ls")
    assert call("cache", "verify") == "1 whole, 0 damaged\n"
    assert "removed 1 kernel" in call("cache", "prune", "--max-size", "0")
