"""On a real CUDA device: torch, cupy and numpy in and out, streams, captured plans, failures by name."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from examples.networks.bert import Bert
from examples.networks.weights import draw
from graphkernel import ops
from graphkernel.runtime.cuda.device_executable import DeviceExecutable

pytestmark = pytest.mark.gpu

cupy: Any = pytest.importorskip("cupy")


def net(x: Any, w: Any) -> Any:
    return ops.softmax(ops.gelu(ops.matmul(ops.add(x, 1.0), w), approximate="tanh"), axis=-1)


GRAPH = gk.trace(net, gk.spec(("N", 64)), gk.spec((64, 64)), name="net")


@pytest.fixture(scope="module")
def exe() -> DeviceExecutable:
    found = gk.compile(GRAPH, opt_level=2, target="gpu")
    assert isinstance(found, DeviceExecutable), "no device is found"
    return found


def arrays(rows: int = 33) -> list[np.ndarray]:
    generator = np.random.default_rng(rows)
    return [generator.standard_normal(shape).astype(np.float32) for shape in ((rows, 64), (64, 64))]


def close(found: Any, rows: int = 33) -> None:
    np.testing.assert_allclose(found, gk.evaluate(GRAPH, arrays(rows))[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 33, 1000])
def test_each_kind_comes_back(exe: DeviceExecutable, rows: int) -> None:
    close(exe(*arrays(rows))[0], rows)
    (y,) = exe(*map(cupy.asarray, arrays(rows)))
    assert isinstance(y, cupy.ndarray)
    close(y.get(), rows)
    torch = pytest.importorskip("torch")
    (z,) = exe(*[torch.from_numpy(array).cuda() for array in arrays(rows)])
    assert isinstance(z, torch.Tensor)
    close(z.cpu().numpy(), rows)


def test_torchs_stream_and_out(exe: DeviceExecutable) -> None:
    torch = pytest.importorskip("torch")
    given = [torch.from_numpy(array).cuda() for array in arrays()]
    place = torch.zeros(33, 64, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(50_000_000)
        given[0].add_(1.0)
        exe(*given, out=(place,))
        result = place.clone()
    torch.cuda.synchronize()
    expected = gk.evaluate(GRAPH, [arrays()[0] + 1, arrays()[1]])[0]
    np.testing.assert_allclose(result.cpu().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_captured(exe: DeviceExecutable) -> None:
    captured = exe.capture(*arrays(5))
    for seed in (1, 2):
        given = [array * seed for array in arrays(5)]
        expected = gk.evaluate(GRAPH, given)[0]
        np.testing.assert_allclose(captured(*given)[0], expected, rtol=1e-4, atol=1e-5)


def test_network() -> None:
    graph = Bert(layers=2, hidden=64, heads=4, inner=128, vocabulary=50, positions=32).encoder(2, 16)
    given = draw(graph)
    exe: Any = gk.compile(graph, opt_level=2, target="gpu")
    for found in (exe(*given), exe.capture(*given)(*given)):
        for result, expected in zip(found, gk.evaluate(graph, given), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)


def test_debug_mode_runs() -> None:
    exe = gk.compile(GRAPH, opt_level=2, target="gpu", flags="--enable_debug_mode=true")
    close(exe(*arrays())[0])


def test_cupy_is_importable_under_test() -> None:
    assert importlib.import_module("cuda.pathfinder"), "a module of the tests must not hide the package cuda"
