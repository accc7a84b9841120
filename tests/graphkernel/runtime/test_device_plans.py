"""Whole plans on a stand-in for cupy: arrays stay on the device, results are of the caller's kind, plans are captured."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
import kernelgen
from graphkernel import ops
from graphkernel.communication.alone import Alone
from graphkernel.communication.communicator import Done
from graphkernel.errors import InputError, RuntimeFailure
from graphkernel.runtime.cuda.device_executable import DeviceExecutable
from kernelgen.composite.bind_sizes import bind
from kernelgen.composite.description import KernelDesc
from kernelgen.errors import ArgumentError, BackendUnavailable
from kernelgen.targets.gpu.launch.nvrtc import version
from kernelgen.tensor.dims import evaluate
from kernelgen.tensor.graph import Graph
from tests.support import fake_cupy
from tests.support.fake_cupy import FakeArray, FakeDevice, Stream


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    return fake_cupy.install(monkeypatch)


def net(x: Any, w: Any, bias: Any) -> Any:
    """Kernel, product, kernel, product, kernel."""
    hidden = ops.gelu(ops.add(ops.matmul(ops.mul(ops.add(x, 1.0), 0.5), w), bias), approximate="tanh")
    return ops.softmax(ops.add(ops.matmul(hidden, w), bias), axis=-1)


GRAPH = gk.trace(net, gk.spec(("N", 16)), gk.spec((16, 16)), gk.spec((16,)), name="net")


class MeaningKernel:
    """A kernel by the meaning of its description, launched as a real one is."""

    def __init__(self, desc: KernelDesc, **_: Any) -> None:
        self.desc, self.meaning = desc, kernelgen.reference(desc)

    def __call__(self, *inputs: FakeArray, out: Sequence[FakeArray] | None = None) -> tuple[FakeArray, ...]:
        symbols = bind(self.desc, [array.shape for array in inputs])
        layouts = [([evaluate(dim, symbols) for dim in t.shape], t.dtype.numpy) for t in self.desc.outputs]
        outputs = tuple(out or [FakeArray(*layout) for layout in layouts])
        FakeArray.device_of.log.append(("launch", self.desc.name))

        def run() -> None:
            for place, result in zip(outputs, self.meaning(*[array.host for array in inputs]), strict=True):
                np.copyto(place.host, result)

        FakeArray.device_of.submit(run)
        return outputs


def compiled(graph: Graph, **options: Any) -> DeviceExecutable:
    exe = gk.compile(graph, opt_level=2, target="gpu", compiler=MeaningKernel, **options)
    assert isinstance(exe, DeviceExecutable)
    return exe


def arrays(rows: int = 4, seed: int = 0) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape).astype(np.float32) for shape in ((rows, 16), (16, 16), (16,))]


def on_device(given: Sequence[np.ndarray]) -> list[FakeArray]:
    return [fake_cupy.asarray(array) for array in given]


def close(found: np.ndarray, given: Sequence[np.ndarray], graph: Graph = GRAPH) -> None:
    np.testing.assert_allclose(found, gk.evaluate(graph, given)[0], rtol=1e-5, atol=1e-6)


def test_nothing_leaves_the_device_and_nobody_waits(device: FakeDevice) -> None:
    exe = compiled(GRAPH)
    for rows in (4, 7):
        given = arrays(rows)
        (y,) = exe(*on_device(given))
        assert isinstance(y, FakeArray)
        close(y.host, given)
    assert not device.waits
    assert exe.report.library == "cupy"
    assert {entry.library for entry in exe.report.host} == {"cupy"}
    assert not exe.report.fallbacks


def test_numpy_gives_numpy(device: FakeDevice) -> None:
    (y,) = compiled(GRAPH)(*arrays())
    assert isinstance(y, np.ndarray)
    close(y, arrays())
    assert len(device.waits) == 1


def test_out_on_both_sides(device: FakeDevice) -> None:
    exe, given = compiled(GRAPH), arrays()
    place, host = fake_cupy.asarray(np.zeros((4, 16), np.float32)), np.zeros((4, 16), np.float32)
    assert exe(*on_device(given), out=(place,))[0] is place
    close(place.host, given)
    assert not device.waits
    assert exe(*given, out=(host,))[0] is host
    close(host, given)


def test_wrong_out_is_named(device: FakeDevice) -> None:
    with pytest.raises(InputError, match=r"out\[0\] must be a writeable array float32\[4, 16\], got float32\[3\]"):
        compiled(GRAPH)(*on_device(arrays()), out=(fake_cupy.asarray(np.zeros(3, np.float32)),))


def test_each_stream_has_buffers_of_its_own(device: FakeDevice) -> None:
    exe, given = compiled(GRAPH), on_device(arrays())
    exe(*given)
    with Stream():
        exe(*given)
    assert len(exe._frames) == 2


def test_inputs_that_are_assigned_to(device: FakeDevice) -> None:
    def step(weight: Any, gradient: Any) -> Any:
        return ops.assign(weight, ops.sub(weight, ops.mul(gradient, 0.1)))

    graph = gk.trace(step, gk.spec((8,)), gk.spec((8,)), name="step")
    exe = compiled(graph)
    weight, gradient = np.arange(8, dtype=np.float32), np.ones(8, np.float32)
    moved = fake_cupy.asarray(weight)
    exe(moved, fake_cupy.asarray(gradient))
    np.testing.assert_allclose(moved.host, weight - 0.1, rtol=1e-6)
    exe(weight, gradient)
    np.testing.assert_allclose(weight, moved.host)


def two_kernels(weight: Any, x: Any) -> Any:
    """The first writes in place, so that it must not run before it is known whether the second one can."""
    grown = ops.assign(weight, ops.add(weight, 1.0))
    return ops.softmax(ops.matmul(ops.exp(x), grown))


def test_a_kernel_that_the_device_refuses_at_the_first_call_is_computed_by_the_library(device: FakeDevice) -> None:
    graph = gk.trace(two_kernels, gk.spec((8, 8)), gk.spec((3, 8)), name="refused")
    exe = gk.compile(graph, opt_level=2, target="gpu")
    assert not exe.report.fallbacks
    made = exe.report.kernel_calls
    device.refused = next(kernel.name for kernel in exe.report.kernels if "ReduceMax" in kernel.operators)
    weight, x = np.ones((8, 8), np.float32), np.random.default_rng(0).uniform(-1, 1, (3, 8)).astype(np.float32)
    (expected, *_) = gk.evaluate(graph, [weight, x])
    (found, *_) = exe(weight, x)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert (weight == 2).all(), "the kernel before it ran once"
    (entry,) = exe.report.fallbacks
    assert entry.code == "device"
    assert "CUDA_ERROR_NO_BINARY_FOR_GPU" in entry.reason
    assert exe.report.kernel_calls == made - 1
    exe(weight, x)
    assert len(exe.report.fallbacks) == 1
    assert not any(device.refused in name for name in device.launches)


def test_a_refused_kernel_is_an_error_where_the_user_is_strict(device: FakeDevice) -> None:
    exe = gk.compile(gk.trace(ops.softmax, gk.spec((3, 8)), name="strict"), target="gpu", strict=True)
    device.refused = "Fused"
    with pytest.raises(RuntimeFailure, match=r"strict: .*CUDA_ERROR_NO_BINARY_FOR_GPU"):
        exe(np.ones((3, 8), np.float32))


def test_operator_that_cupy_lacks_runs_on_the_host_and_says_so(
    device: FakeDevice, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fake_cupy, "REFUSED", frozenset({"swapaxes"}))
    monkeypatch.setattr(device, "cublas", None)

    def product(x: Any, w: Any) -> Any:
        return ops.matmul(x, w, transpose_b=True)

    graph = gk.trace(product, gk.spec((4, 16)), gk.spec((16, 16)), name="product")
    exe, given = compiled(graph), arrays()[:2]
    with caplog.at_level(logging.WARNING):
        (y,) = exe(*on_device(given))
    close(y.host, given, graph)
    assert "MatMul) is computed on the host" in caplog.text
    exe(*on_device(given))
    assert caplog.text.count("on the host") == 1
    with pytest.raises(RuntimeFailure, match="steps on the host cannot be captured: MatMul"):
        exe.capture(*on_device(given))


def with_own_kernels() -> Any:
    """The graph with kernels that the stand-in interprets, in place of their meaning."""
    try:
        version()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    return gk.compile(GRAPH, opt_level=2, target="gpu")


def test_inputs_between_two_vectors_and_with_gaps_are_right_in_a_frame_that_was_bound(device: FakeDevice) -> None:
    exe, given = with_own_kernels(), arrays()
    (first,) = exe(*on_device(given))
    close(first.host, given)
    shifted = np.zeros(given[0].size + 1, np.float32)
    shifted[1:] = given[0].ravel()
    moved = FakeArray(host=shifted[1:].reshape(given[0].shape))
    turned = FakeArray(host=np.asfortranarray(given[0]))
    for other in (moved, turned):
        (found,) = exe(other, *on_device(given[1:]))
        close(found.host, given)


class ElsewhereArray(FakeArray):
    """An array on the second device."""

    device = property(lambda self: SimpleNamespace(id=1))


def test_arrays_of_another_device_are_refused_behind_a_call_that_bound_the_frame(device: FakeDevice) -> None:
    exe, given = with_own_kernels(), arrays()
    exe(*on_device(given))
    with pytest.raises(ArgumentError, match="is on device 1, the current one is 0"):
        exe(*[ElsewhereArray(host=array) for array in given])


def test_captured_plan_is_one_launch(device: FakeDevice) -> None:
    exe = compiled(GRAPH)
    captured = exe.capture(*on_device(arrays()))
    device.log.clear()
    for seed in (1, 2):
        given = arrays(seed=seed)
        (y,) = captured(*on_device(given))
        close(y.host, given)
    assert [entry[0] for entry in device.log] == ["graph", "graph"]


def test_captured_plan_with_inputs_of_its_own_and_out(device: FakeDevice) -> None:
    captured = compiled(GRAPH).capture(*arrays())
    given = arrays(seed=3)
    for own, array in zip(captured.inputs, given, strict=True):
        np.copyto(own.host, array)
    captured.replay()
    close(captured.outputs[0].host, given)
    host = np.zeros((4, 16), np.float32)
    captured(*arrays(seed=4), out=(host,))
    close(host, arrays(seed=4))
    with pytest.raises(InputError, match="capture again for other shapes"):
        captured(*arrays(5))


def test_capture_leaves_the_callers_arrays_alone(device: FakeDevice) -> None:
    graph = gk.trace(lambda w: ops.assign(w, ops.add(w, 1.0)), gk.spec((4,)), name="step")
    weight = fake_cupy.asarray(np.zeros(4, np.float32))
    captured = compiled(graph).capture(weight)
    assert not weight.host.any()
    captured(weight)
    captured(weight)
    assert np.array_equal(weight.host, np.full(4, 2, np.float32))


def test_debug_mode_names_the_kernel(device: FakeDevice) -> None:
    exe = compiled(GRAPH, flags="--enable_debug_mode=true")
    given = on_device(arrays())
    exe(*given)
    assert len(device.waits) == len(exe.plan.steps)
    device.failing = "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"
    with pytest.raises(RuntimeFailure, match=r"\w+ fails on the device: CUDA_ERROR_ILLEGAL_ADDRESS") as caught:
        exe(*given)
    assert exe.plan.steps[0].name in str(caught.value)


def test_jit_takes_arrays_of_the_device(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphkernel.building._default_compiler", lambda: MeaningKernel)
    fast, given = gk.jit(net, target="gpu"), arrays()
    close(fast(*on_device(given)).host, given)
    assert len(fast.executables) == 1


def test_without_a_device_there_is_nothing_to_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    exe = gk.compile(GRAPH, opt_level=2)
    with pytest.raises(RuntimeFailure, match="only a plan on a CUDA device can be captured"):
        exe.capture(*arrays())


def test_sizes_that_no_operand_tells_are_handed_over_on_the_device(device: FakeDevice) -> None:
    def net(a: Any, b: Any) -> Any:
        return ops.exp(ops.tanh(ops.matmul(ops.concat([a, b], 0), np.eye(16, dtype=np.float32))))

    graph = gk.trace(net, gk.spec(("M", 16)), gk.spec(("N", 16)))
    given = [arrays(2)[0], arrays(3)[0]]
    (y,) = compiled(graph)(*on_device(given))
    assert isinstance(y, FakeArray)
    close(y.host, given, graph)
    assert not device.waits


@dataclass(frozen=True)
class EqualRanks(Alone):
    """One of two ranks that have the same, whose communication is the device's: it takes no other arrays."""

    size: int = 2

    def all_gather(self, x: Any, out: Any) -> Done:
        assert isinstance(x, FakeArray)
        out[: len(x)] = x
        out[len(x) :] = x
        return Done()

    def all_reduce(self, x: Any, out: Any, op: str) -> Done:
        assert isinstance(x, FakeArray)
        out[...] = x + x
        return Done()


def test_collectives_are_given_arrays_of_the_device_also_when_a_kernel_was_refused(device: FakeDevice) -> None:
    graph = gk.trace(lambda x: ops.softmax(ops.all_reduce(ops.exp(x), rank_size=2)), gk.spec((3, 8)), name="summed")
    exe = gk.compile(graph, target="gpu", communicator=EqualRanks())
    device.refused = next(kernel.name for kernel in exe.report.kernels if "ReduceMax" in kernel.operators)
    x = np.random.default_rng(0).uniform(-1, 1, (3, 8)).astype(np.float32)
    (found,) = exe(x)
    wanted = np.exp(2 * np.exp(x))
    np.testing.assert_allclose(found, wanted / wanted.sum(1, keepdims=True), rtol=1e-5)
    assert exe.report.fallbacks
