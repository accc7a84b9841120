"""Launching on a device, shown on a stand-in for cupy: what is launched, with which arguments, and who waits for whom."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from kernelgen.composite.description import Tensor as Described
from kernelgen.errors import ArgumentError
from kernelgen.native.signature import Signature
from kernelgen.nest.index import floor_divide
from kernelgen.nest.nodes import Block, Buffer, Index, IndexBinary, IndexOp, Nest, Num, Space, Var
from kernelgen.targets.gpu.dialects.program import Launch
from kernelgen.targets.gpu.launch.arrays import Border
from kernelgen.targets.gpu.launch.device import Device, NoDevice, find_device
from kernelgen.targets.gpu.launch.launcher import DeviceKernel
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.dtypes import FLOAT32
from tests.support import fake_cupy
from tests.support.cuda_runs import compiled
from tests.support.fake_cupy import FakeArray, FakeDevice, Stream

TWICE = """
extern "C" __global__ void twice(const float* x, const float* y, float* z, long long n) {
  long long i = blockIdx.x * 64 + threadIdx.x;
  if (i < n) z[i] = 2.f * x[i] + y[i];
}
"""
STAGED = """
extern "C" __global__ void first(const float* x, float* work) { work[threadIdx.x] = x[threadIdx.x] + 1.f; }
extern "C" __global__ void second(const float* work, float* y) {
  __shared__ float line[32];
  line[threadIdx.x] = work[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = line[31 - threadIdx.x];
}
"""

N = sym("N")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    compiled(TWICE)  # skips without NVRTC
    return fake_cupy.install(monkeypatch)


def buffer(name: str, *shape: Dim, space: Space = Space.INPUT) -> Buffer:
    return Buffer(name, FLOAT32, shape, space)


def found() -> Device:
    here = find_device()
    assert isinstance(here, Device)
    return here


def twice(extent: Dim = N) -> DeviceKernel:
    """z = 2 x + y."""
    x, y, z = (Described(name, (extent,), FLOAT32) for name in "xyz")
    symbols = () if isinstance(extent, int) else ("N",)
    count: Index = Num(extent) if isinstance(extent, int) else Var("N")
    blocks = floor_divide(IndexBinary(IndexOp.ADD, count, Num(63)), Num(64))
    nest = Nest("twice", symbols, (buffer("x", extent), buffer("y", extent), buffer("z", extent)), Block())
    launch = Launch("twice", blocks, (64, 1, 1), 0, (0, 1, 2))
    return DeviceKernel(Signature("twice", (x, y), (z,), (), (), symbols), nest, TWICE, (launch,), found())


def staged(shared: int = 128) -> DeviceKernel:
    """y = reverse(x + 1) over a workspace and 128 bytes of shared memory, in two launches."""
    x, y = (Described(name, (32,), FLOAT32) for name in "xy")
    buffers = (buffer("x", 32), buffer("y", 32, space=Space.OUTPUT), buffer("w", 32, space=Space.WORKSPACE))
    first = Launch("first", Num(1), (32, 1, 1), 0, (0, 2))
    second = Launch("second", Num(1), (32, 1, 1), shared, (2, 1))
    source = STAGED if shared == 128 else STAGED.replace("__shared__ float line[32]", "extern __shared__ float line[]")
    nest = Nest("staged", (), buffers, Block())
    return DeviceKernel(Signature("staged", (x,), (y,), (), (), ()), nest, source, (first, second), found())


def values(count: int, start: float = 0.0) -> np.ndarray:
    return np.arange(count, dtype=np.float32) + np.float32(start)


def on_device(array: np.ndarray) -> FakeArray:
    return fake_cupy.asarray(array)


def test_cupy_in_cupy_out_and_nobody_waits(device: FakeDevice) -> None:
    x, y = on_device(values(100)), on_device(values(100, 5))
    (z,) = twice()((x, y))
    assert isinstance(z, FakeArray)
    assert np.array_equal(z.host, 2 * x.host + y.host)
    assert device.launches == ["twice"]
    assert not device.waits


def test_one_kernel_for_all_sizes(device: FakeDevice) -> None:
    kernel = twice()
    for count in (1, 64, 65, 300):
        (z,) = kernel((on_device(values(count)), on_device(values(count))))
        assert np.array_equal(z.host, 3 * values(count))


def test_numpy_in_numpy_out(device: FakeDevice) -> None:
    (z,) = twice()((values(70), values(70, 1)))
    assert isinstance(z, np.ndarray)
    assert np.array_equal(z, 3 * values(70) + 1)
    assert device.waits, "somebody must wait for what goes back to the host"


def test_out_is_written_in_place(device: FakeDevice) -> None:
    x, out, host = on_device(values(70)), on_device(values(70)), values(70)
    (z,) = twice()((x, x), out=(out,))
    assert z is out
    assert np.array_equal(out.host, 3 * values(70))
    assert twice()((x, x), out=(host,))[0] is host
    assert np.array_equal(host, 3 * values(70))


@pytest.mark.parametrize("start", [0, 16, 64])
def test_an_input_that_overlaps_what_is_written_is_copied(device: FakeDevice, start: int) -> None:
    memory = on_device(values(200))
    x, y, out = memory[16:86], on_device(values(70, 5)), memory[start : start + 70]
    expected = 2 * x.host + y.host
    assert twice()((x, y), out=(out,))[0] is out
    assert np.array_equal(out.host, expected)


def test_workspaces_and_launches_in_order(device: FakeDevice) -> None:
    (y,) = staged()((on_device(values(32)),))
    assert np.array_equal(y.host, values(32, 1)[::-1])
    assert device.launches == ["first", "second"]


def test_much_shared_memory_is_asked_for(device: FakeDevice) -> None:
    kernel = staged(shared=60_000)
    kernel((on_device(values(32)),))
    assert [entry[3] for entry in device.log if entry[0] == "launch"] == [0, 60_000]


def test_the_callers_stream_is_taken(device: FakeDevice) -> None:
    x, kernel, side = on_device(values(8)), twice(), Stream()
    with side:
        kernel((x, x))
    assert device.log[-1][:3] == ("launch", "twice", side.ptr)


def test_arrays_of_a_foreign_library_wait_on_the_stream_not_in_the_thread(device: FakeDevice) -> None:
    inner = on_device(values(8))
    told = inner.__cuda_array_interface__ | {"stream": 77}
    foreign = type("Foreign", (), {"__cuda_array_interface__": told, "host": inner.host})()
    (z,) = twice()((foreign, inner))
    assert np.array_equal(z.host, 3 * values(8))
    assert ("wait", 0, 77) in device.log
    assert not device.waits


def test_torch_tensors_use_torchs_stream_and_allocator(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = fake_torch(stream=91)
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    x = torch.Tensor(on_device(values(40)))
    (z,) = twice()((x, x))
    assert isinstance(z, torch.Tensor)
    assert np.array_equal(z.inner.host, 3 * values(40))
    assert device.log[-1][:3] == ("launch", "twice", 91)
    assert not device.waits


def test_torch_tensors_are_seen_as_cupys_and_given_back(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = fake_torch(stream=91)
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    border, x = Border(found().cupy), torch.Tensor(on_device(values(40)))
    with border.stream_of((x,)):
        taken = border.take(x, "x")
        back = border.giver((x,))(taken)
    assert (taken.data.ptr, taken.shape, taken.dtype) == (x.data_ptr(), (40,), np.float32)
    assert isinstance(back, torch.Tensor)
    assert back.data_ptr() == x.data_ptr()
    assert not device.log


def test_a_tensor_with_gaps_comes_by_dlpack(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = fake_torch(stream=0)
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    x = torch.Tensor(FakeArray(host=values(40)[::2]))
    assert np.array_equal(Border(found().cupy).take(x, "x").host, values(40)[::2])
    assert [entry[0] for entry in device.log] == ["dlpack"]


@pytest.mark.parametrize("static", [True, False])
def test_what_does_not_fit_is_named(device: FakeDevice, static: bool) -> None:
    kernel, x = twice(8 if static else N), on_device(values(8))
    with pytest.raises(ArgumentError, match="y has shape"):
        kernel((x, on_device(values(9))))
    with pytest.raises(ArgumentError, match="y has dtype float64, expected float32"):
        kernel((x, on_device(np.zeros(8))))
    with pytest.raises(ArgumentError, match="takes 2 arrays, 1 were given"):
        kernel((x,))
    with pytest.raises(ArgumentError, match=r"out for z is float32\[9\], expected float32\[8\]"):
        kernel((x, x), out=(on_device(values(9)),))
    with pytest.raises(ArgumentError, match="tuple of 1 arrays"):
        kernel((x, x), out=())


def test_gaps_and_odd_addresses_are_copied_where_that_is_allowed(device: FakeDevice) -> None:
    wide = on_device(values(17))
    (z,) = twice()((wide[::2], wide[1:10]))
    assert np.array_equal(z.host, 2 * values(17)[::2] + values(17)[1:10])
    with pytest.raises(ArgumentError, match=r"out for z starts at address 0x[0-9a-f]+, no multiple of 16 bytes"):
        twice()((wide[:8], wide[:8]), out=(wide[1:9],))
    with pytest.raises(ArgumentError, match="out for z is not C-contiguous"):
        twice()((wide[:8], wide[:8]), out=(on_device(values(16))[::2],))


def test_without_cupy_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    here = find_device()
    assert isinstance(here, NoDevice)
    assert 'pip install "graphkernel[gpu]"' in here.reason


def test_without_a_driver_the_reason_is_cupys(device: FakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> int:
        raise RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

    monkeypatch.setattr(__import__("sys").modules["cupy"].cuda.runtime, "getDevice", fail)
    here = find_device()
    assert isinstance(here, NoDevice)
    assert "cudaErrorInsufficientDriver" in here.reason


def test_names_that_are_used_are_cupys() -> None:
    cupy = pytest.importorskip("cupy")
    assert {"get_function"} <= set(dir(cupy.RawModule))
    assert {"compile", "kernel", "max_dynamic_shared_size_bytes"} <= set(dir(cupy.RawKernel))
    assert {"ascontiguousarray", "from_dlpack"} <= set(dir(cupy))
    assert {"get_cublas_handle"} <= set(dir(cupy.cuda.device))
    stream = {"synchronize", "record", "wait_event", "begin_capture", "end_capture"}
    assert stream <= set(dir(cupy.cuda.Stream))
    assert stream <= set(dir(cupy.cuda.ExternalStream))
    assert {"UnownedMemory", "MemoryPointer", "MemoryPool", "using_allocator", "Graph"} <= set(dir(cupy.cuda))
    assert {"getDevice", "getDeviceProperties"} <= set(dir(cupy.cuda.runtime))


class FakeTensor:
    """As much of a tensor of torch on a device as a launch asks of it."""

    is_cuda, device = True, "cuda:0"

    def __init__(self, inner: FakeArray) -> None:
        self.inner = inner

    shape = property(lambda self: self.inner.shape)
    host = property(lambda self: self.inner.host)
    dtype = property(lambda self: f"torch.{self.inner.dtype.name}")

    def data_ptr(self) -> int:
        return self.inner.data.ptr

    def is_contiguous(self) -> bool:
        return self.inner.flags.c_contiguous

    def is_neg(self) -> bool:
        return False

    is_conj = is_neg

    def get_device(self) -> int:
        return 0

    def numel(self) -> int:
        return self.inner.size

    def element_size(self) -> int:
        return self.inner.itemsize

    def __dlpack_device__(self) -> tuple[int, int]:
        return fake_cupy.CUDA, 0

    def __dlpack__(self, stream: int) -> FakeArray:
        self.inner.device_of.log.append(("dlpack", stream))
        return self.inner


def fake_torch(stream: int) -> Any:
    """As much of torch as a launch asks of it."""
    torch, current = types.ModuleType("torch"), types.SimpleNamespace(cuda_stream=stream)

    def empty(shape: tuple[int, ...], dtype: str, device: str) -> FakeTensor:
        return FakeTensor(FakeArray(shape, np.dtype(dtype.removeprefix("torch."))))

    members = {
        "Tensor": FakeTensor, "empty": empty, "from_dlpack": FakeTensor,
        "cuda": types.SimpleNamespace(current_stream=lambda device=None: current),
        **{name: f"torch.{name}" for name in ("float32", "float64", "uint8", "bfloat16")},
    }  # fmt: skip
    for name, member in members.items():
        setattr(torch, name, member)
    return torch
