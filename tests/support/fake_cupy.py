"""A stand-in for cupy where no device is: arrays over numpy's memory, kernels on the PTX interpreter, streams that record.

It does at once what a device does later, so it shows what is launched, on which stream, and who waits for whom; it does
not show what goes wrong when nobody waits. Like cupy it refuses to become a numpy array by itself. ``install`` puts it
into ``sys.modules``; what happened stands in ``FakeDevice.log``.
"""

from __future__ import annotations

import sys
import time
import types
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from weakref import WeakValueDictionary

import numpy as np
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin

from kernelgen import options
from kernelgen.machines.gpu.device import CAPABILITIES
from kernelgen.simulators.ptx import run
from kernelgen.system.object_cache import read_entry
from kernelgen.targets.gpu.launch.cubins import unpacked
from tests.support.fake_cublas import FakeCublas

ALIGNMENT = 512
CUDA = 2
REFUSED = frozenset({"sliding_window_view"})
"""Functions of numpy that the stand-in does not have, as cupy lacks some."""


@dataclass(eq=False)
class FakeDevice:
    """What happened: ``("launch", kernel)``, ``("synchronize", stream)``, ``("wait", stream, of)``, in order."""

    capability: int = 90
    log: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    arrays: WeakValueDictionary[int, Any] = field(default_factory=WeakValueDictionary[int, Any])
    streams: list[Any] = field(default_factory=list[Any])
    allocators: list[Any] = field(default_factory=list[Any])
    failing: str = ""
    refused: str = ""
    """A part of the names of kernels that the driver does not load."""

    def __post_init__(self) -> None:
        self.cublas = FakeCublas(self.submit)

    @property
    def properties(self) -> dict[str, Any]:
        """As cupy's ``getDeviceProperties`` tells them."""
        row = CAPABILITIES[self.capability]
        return {
            "name": b"NVIDIA Stand-in", "multiProcessorCount": row.processors, "sharedMemPerBlockOptin": row.shared_bytes,
            "maxThreadsPerMultiProcessor": row.resident,
        }  # fmt: skip

    @property
    def launches(self) -> list[str]:
        return [entry[1] for entry in self.log if entry[0] == "launch"]

    @property
    def waits(self) -> list[tuple[Any, ...]]:
        """What the calling thread waited for."""
        return [entry for entry in self.log if entry[0] == "synchronize"]

    def submit(self, action: Callable[[], None]) -> None:
        """Does it, or records it where the current stream is captured."""
        recorded = self.streams[-1].recorded
        action() if recorded is None else recorded.append(action)


class FakeArray(NDArrayOperatorsMixin):
    """A device array. ``host`` is where its elements are."""

    device_of: FakeDevice

    def __init__(
        self, shape: Any = (), dtype: Any = float, memptr: Any = None, strides: Any = None, *, host: Any = None,
        base: Any = None,
    ) -> None:  # fmt: skip
        if memptr is not None:
            base = memptr.mem.owner
            host = base.host
            assert strides is None or tuple(strides) == host.strides
        self.host: np.ndarray = memory(tuple(shape), dtype) if host is None else host
        self.base = base
        self.device_of.arrays[id(self)] = self

    shape = property(lambda self: self.host.shape)
    dtype = property(lambda self: self.host.dtype)
    ndim = property(lambda self: self.host.ndim)
    size = property(lambda self: self.host.size)
    nbytes = property(lambda self: self.host.nbytes)
    itemsize = property(lambda self: self.host.itemsize)
    strides = property(lambda self: self.host.strides)
    flags = property(lambda self: self.host.flags)
    data = property(lambda self: types.SimpleNamespace(ptr=self.host.ctypes.data))
    device = property(lambda self: types.SimpleNamespace(id=0))

    @property
    def T(self) -> Any:
        return wrap(self.host.T, self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        stream = self.device_of.streams[-1].ptr or 1
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.host.ctypes.data, False), "version": 3,
                "strides": self.strides, "stream": stream}  # fmt: skip

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 0

    def __dlpack__(self, **_: Any) -> Any:
        return self

    def __array_namespace__(self) -> Any:
        return sys.modules["cupy"]

    def __len__(self) -> int:
        return len(self.host)

    def __bool__(self) -> bool:
        return bool(self.get())

    def __index__(self) -> int:
        return int(self.get())

    def __getitem__(self, key: Any) -> Any:
        return computed(lambda host, key: host[key], (self, key), {}, owner=self)

    def __setitem__(self, key: Any, value: Any) -> None:
        def write() -> None:
            self.host[plain(key)] = plain(value)

        self.device_of.submit(write)

    def get(self) -> np.ndarray:
        self.device_of.log.append(("synchronize", "get"))
        if self.device_of.streams[-1].recorded is not None:
            raise RuntimeError("cudaErrorStreamCaptureUnsupported")
        return self.host.copy()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **given: Any) -> Any:
        if any(isinstance(one, np.ndarray) and one.ndim for one in inputs):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        out = given.pop("out", None)
        result = computed(getattr(ufunc, method), inputs, given, owner=None)
        if out is None:
            return result
        out[0][...] = result
        return out[0]

    def __array_function__(self, function: Any, kinds: Any, args: Any, given: Any) -> Any:
        if function.__name__ in REFUSED:
            return NotImplemented
        if function is np.copyto:
            target, source = args
            return self.device_of.submit(lambda: np.copyto(plain(target), plain(source)))
        return computed(function, args, given, owner=self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not callable(getattr(np.ndarray, name, None)):
            raise AttributeError(name)
        return lambda *args, **given: computed(
            lambda host, *rest, **more: getattr(host, name)(*rest, **more), (self, *args), given, owner=self
        )


def plain(value: Any) -> Any:
    """The numpy arrays inside of an argument."""
    if isinstance(value, FakeArray):
        return value.host
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value))
    return value


def wrap(value: Any, owner: Any) -> Any:
    """numpy results as device arrays; scalars too, as cupy does."""
    if isinstance(value, tuple | list):
        return type(value)(wrap(one, owner) for one in value)
    if isinstance(value, np.ndarray | np.generic):
        host = np.asarray(value)
        return (
            FakeArray(host=host, base=owner) if owner is not None and np.shares_memory(host, owner.host) else made(host)
        )
    return value


def made(host: np.ndarray) -> FakeArray:
    """A new array with this content."""
    new = FakeArray(host.shape, host.dtype)
    np.copyto(new.host, host)
    return new


def memory(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Uninitialised memory that starts where cupy's would: 0xA5 everywhere, so that nobody finds zeros by luck."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    raw = np.full(size + ALIGNMENT, 0xA5, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(kind).reshape(shape)


def computed(function: Any, args: Any, given: Any, owner: Any) -> Any:
    """The function of the arrays; while a stream is captured, the result comes when the graph is launched."""
    device = FakeArray.device_of
    with np.errstate(all="ignore"):
        result = function(*plain(args), **{key: plain(value) for key, value in given.items()})
    outcome = wrap(result, owner)
    if device.streams[-1].recorded is not None and isinstance(outcome, FakeArray) and outcome.base is None:

        def again() -> None:
            np.copyto(outcome.host, function(*plain(args), **{key: plain(value) for key, value in given.items()}))

        outcome.host.view(np.uint8 if outcome.host.ndim else outcome.dtype)[...] = 0
        device.submit(again)
    return outcome


class Stream:
    """A stream with a number of its own; 0 is the default one."""

    null: Stream
    _count = 100

    def __init__(self, null: bool = False, non_blocking: bool = False, ptr: int | None = None) -> None:
        Stream._count += 1
        self.ptr = 0 if null else Stream._count if ptr is None else ptr
        self.recorded: list[Callable[[], None]] | None = None

    def __enter__(self) -> Self:
        FakeArray.device_of.streams.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        FakeArray.device_of.streams.pop()

    def synchronize(self) -> None:
        FakeArray.device_of.log.append(("synchronize", self.ptr))
        if FakeArray.device_of.failing:
            raise RuntimeError(FakeArray.device_of.failing)

    def record(self, event: Any = None) -> Any:
        return event or types.SimpleNamespace(of=self.ptr)

    def wait_event(self, event: Any) -> None:
        FakeArray.device_of.log.append(("wait", self.ptr, event.of))

    def begin_capture(self) -> None:
        if self.ptr == 0:
            raise RuntimeError("cannot capture on the default (legacy) stream")
        self.recorded = []

    def end_capture(self) -> Any:
        actions, self.recorded = self.recorded or [], None
        return types.SimpleNamespace(launch=lambda stream=None: _replay(actions), recorded=actions)


def _replay(actions: Sequence[Callable[[], None]]) -> None:
    FakeArray.device_of.log.append(("graph", len(actions)))
    for action in actions:
        action()


class Event:
    """A point in time."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def record(self) -> None:
        self.seconds = time.perf_counter()

    def synchronize(self) -> None:
        FakeArray.device_of.log.append(("synchronize", "event"))


class RawModule:
    """A cubin from a file; its PTX is looked up in the cache of compiled kernels, and interpreted."""

    def __init__(self, path: str) -> None:
        self.content = Path(path).read_bytes()

    def get_function(self, name: str) -> RawKernel:
        return RawKernel(self, name)


class RawKernel:
    """A function of a module."""

    def __init__(self, module: RawModule, name: str) -> None:
        self.name, self.ptx, self.module, self.max_dynamic_shared_size_bytes = name, "", module, 48 * 1024

    kernel = property(lambda self: self)

    def compile(self) -> None:
        refused = FakeArray.device_of.refused
        if refused and refused in self.name:
            raise RuntimeError("CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image is available for execution on the device")
        folder = options.cache_dir()
        assert folder is not None
        keys = sorted(path.stem for path in Path(folder).glob("gpu/*/*.o"))
        found = (unpacked(read_entry(folder, "gpu", key) or b"{}") for key in keys)
        self.ptx = next(one.ptx for one in found if one.cubin == self.module.content)

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[int, ...], shared_mem: int = 0
    ) -> None:
        device = FakeArray.device_of
        assert self.ptx, "the file of a module may be gone when its kernel is first called"
        assert shared_mem <= self.max_dynamic_shared_size_bytes, "too much shared memory"
        device.log.append(("launch", self.name, device.streams[-1].ptr, shared_mem))
        kept = list(device.arrays.values())  # a pool keeps the memory that a recorded launch uses
        device.submit(lambda: self._run(grid, block, args, shared_mem, kept))

    def _run(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[int, ...], shared_mem: int, kept: Sequence[Any]
    ) -> None:
        """``kept`` lives as long as the launch may be repeated."""
        places = {argument: place for argument in args if (place := _memory_at(argument)) is not None}
        given = {argument: place.copy() for argument, place in places.items()}
        values = [given.get(argument, np.int64(argument)) for argument in args]
        report = run(self.ptx, grid, block, values, kernel=self.name, dynamic_shared=shared_mem)
        assert report.clean, report
        changes = {argument: given[argument] != place for argument, place in places.items()}
        for argument, place in places.items():
            place[changes[argument]] = given[argument][changes[argument]]


def _memory_at(address: int) -> np.ndarray | None:
    """The bytes from there to the end of the allocation; None where the number is no address of an array.

    Views of one arena overlap, and the interpreter wants buffers apart: kernels get copies, of which changes are kept.
    """
    hosts = [one.host for one in list(FakeArray.device_of.arrays.values()) if one.host.flags.c_contiguous]
    around = [host for host in hosts if host.ctypes.data <= address < host.ctypes.data + host.nbytes]
    if not around:
        return None
    whole = max(around, key=lambda host: host.ctypes.data + host.nbytes)
    return whole.reshape(-1).view(np.uint8)[address - whole.ctypes.data :]


class MemoryPool:
    """A pool; ``malloc`` is what ``using_allocator`` takes."""

    def malloc(self, size: int) -> Any:
        raise NotImplementedError(f"the stand-in's arrays take no memory from {self}")


@contextmanager
def using_allocator(allocator: Any) -> Generator[None]:
    FakeArray.device_of.allocators.append(allocator)
    yield
    FakeArray.device_of.allocators.pop()


def asarray(given: Any, dtype: Any = None) -> FakeArray:
    return given if isinstance(given, FakeArray) else made(np.asarray(given, dtype))


def asnumpy(given: Any) -> np.ndarray:
    return given.get() if isinstance(given, FakeArray) else np.asarray(given)


def ascontiguousarray(given: Any) -> FakeArray:
    """The array itself where it is contiguous."""
    return given if given.flags.c_contiguous else given.copy()


def from_dlpack(given: Any) -> Any:
    return given.__dlpack__(stream=FakeArray.device_of.streams[-1].ptr or 1)


def install(patch: pytest.MonkeyPatch) -> FakeDevice:
    """Puts the stand-in where cupy would be, for one test."""
    device = FakeDevice()
    patch.setattr(FakeArray, "device_of", device, raising=False)
    Stream.null = Stream(null=True)
    device.streams.append(Stream.null)
    cupy = types.ModuleType("cupy")
    for name in ("matmul", "exp", "sum", "maximum", "copyto", "concatenate"):
        setattr(cupy, name, getattr(np, name))
    cuda = types.SimpleNamespace(
        Stream=Stream,
        Event=Event,
        get_elapsed_time=lambda start, end: (end.seconds - start.seconds) * 1e3,
        ExternalStream=lambda ptr: Stream(ptr=ptr),
        get_current_stream=lambda: device.streams[-1],
        Device=lambda number=0: types.SimpleNamespace(id=number, compute_capability=str(device.capability)),
        runtime=types.SimpleNamespace(
            getDevice=lambda: 0,
            getDeviceProperties=lambda _: device.properties,
            driverGetVersion=lambda: 13000,
            runtimeGetVersion=lambda: 13000,
        ),
        UnownedMemory=lambda ptr, size, owner, device_id=-1: types.SimpleNamespace(ptr=ptr, size=size, owner=owner),
        MemoryPointer=lambda mem, offset: types.SimpleNamespace(mem=mem, ptr=mem.ptr + offset),
        MemoryPool=MemoryPool,
        device=types.SimpleNamespace(get_cublas_handle=lambda: 1),
        using_allocator=using_allocator,
    )
    members = {
        "ndarray": FakeArray, "empty": FakeArray, "asarray": asarray,
        "asnumpy": asnumpy, "ascontiguousarray": ascontiguousarray,
        "from_dlpack": from_dlpack, "RawModule": RawModule, "cuda": cuda, "__version__": "14.2.0",
    }  # fmt: skip
    for name, member in members.items():
        setattr(cupy, name, member)
    patch.setitem(sys.modules, "cupy", cupy)
    patch.setattr("graphkernel.runtime.cuda.cublas.load_library", lambda major: device.cublas)
    return device
