"""Whole networks with ``target="gpu"`` against numpy: in the PTX interpreter, and on a stand-in for cupy's device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import graphkernel as gk
from examples.networks.bert import Bert
from examples.networks.gpt import Gpt
from examples.networks.llama import Llama
from examples.networks.resnet import ResNet
from examples.networks.weights import draw
from kernelgen.errors import BackendUnavailable
from kernelgen.targets.gpu.launch.nvrtc import version
from kernelgen.tensor.graph import Graph
from tests.support import fake_cupy
from tests.support.fake_cupy import FakeArray

NETWORKS: dict[str, Callable[[], Graph]] = {
    "bert": lambda: Bert(layers=1, hidden=8, heads=2, inner=12, vocabulary=9, positions=6).encoder(2, 5),
    "resnet": lambda: ResNet((1, 1), 2, 3).inference(2, 12),
    "llama": lambda: Llama(16, 4, 2, 24).block(2, 5),
    "gpt of halves": lambda: Gpt(24, 3, dtype="float16").block(2, 5),
}


@pytest.fixture(params=NETWORKS, autouse=True)
def network(request: pytest.FixtureRequest) -> Graph:
    try:
        version()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    return NETWORKS[request.param]()


def agrees(found: tuple[np.ndarray, ...], graph: Graph, given: list[np.ndarray]) -> None:
    for result, expected in zip(found, gk.evaluate(graph, given), strict=True):
        relative, absolute = (2e-4, 2e-5) if result.dtype.itemsize > 2 else (1e-2, 1e-2)
        np.testing.assert_allclose(result, expected, rtol=relative, atol=absolute)


def test_in_the_interpreter(network: Graph) -> None:
    given = draw(network)
    exe = gk.compile(network, opt_level=2, target="gpu")
    assert exe.report.kernels
    assert not [entry for entry in exe.report.fallbacks if entry.code != "host-numpy"], exe.report
    agrees(exe(*given), network, given)


def test_on_a_device(network: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fake_cupy, "REFUSED", frozenset())
    device = fake_cupy.install(monkeypatch)
    given = draw(network)
    exe = gk.compile(network, opt_level=2, target="gpu")
    moved = [fake_cupy.asarray(array) for array in given]
    agrees(tuple(result.host for result in exe(*moved)), network, given)
    assert not device.waits
    device.log.clear()
    captured = exe.capture(*moved)
    device.log.clear()
    results = captured(*moved)
    assert all(isinstance(result, FakeArray) for result in results)
    agrees(tuple(result.host for result in results), network, given)
    assert [entry[0] for entry in device.log] == ["graph"]
