"""Arrays of any library at a kernel's border: what is needed of them, without a copy and without waiting.

cupy and torch are asked directly. What else lives on a device comes in by DLPack or ``__cuda_array_interface__`` and goes
out by DLPack; numpy arrays and everything else that lives in the host's memory are copied over and back.

Streams: a launch goes to the stream that is current for the caller's library. Arrays of other libraries tell the stream
on which they are made; DLPack and an event let our stream wait for theirs, and the calling thread waits for nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

import ml_dtypes
import numpy as np

from kernelgen.errors import ArgumentError
from kernelgen.system.cached_property import cached_property

CUDA_DEVICES = (2, 3, 13)  # DLPack's kDLCUDA, kDLCUDAHost, kDLCUDAManaged
NO_WAITING = -1  # DLPack's stream of a consumer that waits for nobody
LEGACY_STREAM = 1  # what the array interface calls the default stream of all threads


Layout = tuple[tuple[int, ...], Any]
"""Shape, and the data type as its library names it."""


class Library(Protocol):
    """What a launch asks of the arrays of one library; of all of them at once, since asking is what a launch costs."""

    def layouts(self, arrays: Sequence[Any]) -> tuple[Layout, ...]:
        """Shapes and the library's own data types; can be a key."""
        ...

    def dtype(self, native: Any) -> np.dtype[Any]:
        """The numpy data type with the same bits."""
        ...

    def native(self, dtype: np.dtype[Any]) -> Any:
        """The library's own data type with the same bits."""
        ...

    def pointers(self, arrays: Sequence[Any]) -> list[int]:
        """The device addresses of the first elements."""
        ...

    def are_plain(self, arrays: Sequence[Any]) -> bool:
        """Whether the elements of each lie in row-major order without gaps, as they are."""
        ...

    def plain(self, array: Any) -> Any:
        """A plain copy in memory of its own."""
        ...

    def empty(self, shape: tuple[int, ...], native: Any) -> Any:
        """A new array on the device, from the library's own pool."""
        ...

    def device(self, array: Any) -> int:
        """The number of the device that the array is on."""
        ...

    def stream(self) -> AbstractContextManager[object]:
        """Makes the library's current stream cupy's, as long as it is entered."""
        ...


@dataclass(frozen=True, eq=False)
class CupyArrays:
    """cupy's own arrays."""

    cupy: Any = field(repr=False)

    def layouts(self, arrays: Sequence[Any]) -> tuple[Layout, ...]:
        """Shapes and data types."""
        return tuple([(array.shape, array.dtype) for array in arrays])

    def dtype(self, native: Any) -> np.dtype[Any]:
        """The same: cupy's data types are numpy's."""
        return native

    def native(self, dtype: np.dtype[Any]) -> Any:
        """The same."""
        return dtype

    def pointers(self, arrays: Sequence[Any]) -> list[int]:
        """The addresses."""
        return [array.data.ptr for array in arrays]

    def are_plain(self, arrays: Sequence[Any]) -> bool:
        """Whether the arrays are C-contiguous."""
        return all([array.flags.c_contiguous for array in arrays])

    def plain(self, array: Any) -> Any:
        """A C-contiguous copy."""
        return array.copy(order="C")

    def empty(self, shape: tuple[int, ...], native: Any) -> Any:
        """From cupy's pool."""
        return self.cupy.empty(shape, native)

    def device(self, array: Any) -> int:
        """The device's number."""
        return array.device.id

    def stream(self) -> AbstractContextManager[object]:
        """Nothing to change."""
        return nullcontext()


@dataclass(frozen=True, eq=False)
class TorchArrays:
    """torch's CUDA tensors; torch is imported already by whoever made one."""

    cupy: Any = field(repr=False)
    torch: Any = field(repr=False)
    _streams: dict[int, Any] = field(default_factory=dict[int, Any], repr=False)

    @cached_property
    def _to_numpy(self) -> dict[Any, np.dtype[Any]]:
        """torch's data types; those that this release of torch lacks are left out."""
        names = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                 "float64", "complex64", "complex128")  # fmt: skip
        known = {getattr(self.torch, name): np.dtype(name) for name in names if hasattr(self.torch, name)}
        return known | {self.torch.bfloat16: np.dtype(ml_dtypes.bfloat16)}

    @cached_property
    def _to_torch(self) -> dict[np.dtype[Any], Any]:
        return {dtype: native for native, dtype in self._to_numpy.items()}

    def layouts(self, arrays: Sequence[Any]) -> tuple[Layout, ...]:
        """Shapes and torch's data types."""
        return tuple([(array.shape, array.dtype) for array in arrays])

    def dtype(self, native: Any) -> np.dtype[Any]:
        """Raises ArgumentError for a type that kernels do not know."""
        if native not in self._to_numpy:
            raise ArgumentError(f"a kernel takes no tensors of {native}")
        return self._to_numpy[native]

    def native(self, dtype: np.dtype[Any]) -> Any:
        """torch's type of the same name."""
        return self._to_torch[dtype]

    def pointers(self, arrays: Sequence[Any]) -> list[int]:
        """The addresses."""
        return [array.data_ptr() for array in arrays]

    def are_plain(self, arrays: Sequence[Any]) -> bool:
        """Whether the tensors are contiguous and neither conjugate nor negative views."""
        return all(map(is_plain_tensor, arrays))

    def plain(self, array: Any) -> Any:
        """A contiguous copy of the values."""
        return array.detach().resolve_conj().resolve_neg().clone(memory_format=self.torch.contiguous_format)

    def empty(self, shape: tuple[int, ...], native: Any) -> Any:
        """From torch's caching allocator, on cupy's current device."""
        return self.torch.empty(shape, dtype=native, device="cuda")

    def device(self, array: Any) -> int:
        """The device's number."""
        return array.get_device()

    def view(self, array: Any) -> Any:
        """A plain tensor as cupy's array, in the same memory; a tenth of the time that DLPack's protocol takes."""
        cuda = self.cupy.cuda
        memory = cuda.UnownedMemory(array.data_ptr(), array.numel() * array.element_size(), array, array.get_device())
        return self.cupy.ndarray(tuple(array.shape), self.dtype(array.dtype), cuda.MemoryPointer(memory, 0))

    def tensor(self, array: Any) -> Any:
        """cupy's array as a tensor, in the same memory, for whoever works on the stream that made it."""
        return self.torch.from_dlpack(array.__dlpack__(stream=NO_WAITING))

    def stream(self) -> AbstractContextManager[object]:
        """torch's current stream, where it is not cupy's already."""
        pointer = self.torch.cuda.current_stream().cuda_stream
        if self.cupy.cuda.get_current_stream().ptr == pointer:
            return nullcontext()
        if pointer not in self._streams:
            self._streams[pointer] = self.cupy.cuda.ExternalStream(pointer)
        return self._streams[pointer]


def is_plain_tensor(tensor: Any) -> bool:
    """Whether the elements lie in row-major order without gaps, as they are: no conjugate and no negative view."""
    return tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj()


@dataclass(frozen=True, eq=False)
class Border:
    """Which library answers for the arrays of a call, and how the others' arrays become its own."""

    cupy: Any = field(repr=False)

    @cached_property
    def cupy_arrays(self) -> CupyArrays:
        """cupy's."""
        return CupyArrays(self.cupy)

    @cached_property
    def _torch_arrays(self) -> TorchArrays:
        return TorchArrays(self.cupy, sys.modules["torch"])

    def library_of(self, arrays: Sequence[Any]) -> Library | None:
        """The library of all arrays where they are of one that is asked directly, else None."""
        kinds = {type(array) for array in arrays}
        if kinds == {self.cupy.ndarray}:
            return self.cupy_arrays
        torch = sys.modules.get("torch")
        if torch is not None and kinds and all(issubclass(kind, torch.Tensor) for kind in kinds):
            return self._torch_arrays if all(array.is_cuda for array in arrays) else None
        return None

    def stream_of(self, arrays: Sequence[Any]) -> AbstractContextManager[object]:
        """The stream of the caller: torch's current one where a CUDA tensor is among the arrays, else cupy's."""
        torch = sys.modules.get("torch")
        is_torch = torch is not None and any(isinstance(array, torch.Tensor) and array.is_cuda for array in arrays)
        return self._torch_arrays.stream() if is_torch else nullcontext()

    def take(self, given: Any, name: str) -> Any:
        """The array as cupy's, in place where it is on the device; cupy's current stream waits for its producer's. A tensor
        of torch is on the stream that :meth:`stream_of` enters.

        Raises ArgumentError for what is no array.
        """
        if isinstance(given, self.cupy.ndarray):
            return given
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(given, torch.Tensor) and given.is_cuda and is_plain_tensor(given):
            return self._torch_arrays.view(given)
        if hasattr(given, "__dlpack_device__"):
            kind, _ = given.__dlpack_device__()
            if kind in CUDA_DEVICES:
                return self.cupy.from_dlpack(given.detach() if getattr(given, "requires_grad", False) else given)
            return self.cupy.asarray(np.from_dlpack(given) if not isinstance(given, np.ndarray) else given)
        if hasattr(given, "__cuda_array_interface__"):
            return self._from_interface(given)
        try:
            return self.cupy.asarray(np.asarray(given))
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{name}: {type(given).__name__} is no array: {error}") from error

    def lives_on_device(self, array: Any) -> bool:
        """Whether :meth:`take` gives the same memory."""
        if hasattr(array, "__dlpack_device__"):
            return array.__dlpack_device__()[0] in CUDA_DEVICES
        return isinstance(array, self.cupy.ndarray) or hasattr(array, "__cuda_array_interface__")

    def giver(self, arrays: Sequence[Any]) -> Callable[[Any], Any]:
        """The function that turns a cupy result into the kind of array that came in.

        The first array that is not numpy's decides; numpy arrays alone give numpy arrays, for which the caller waits.
        """
        torch = sys.modules.get("torch")
        for array in arrays:
            if isinstance(array, self.cupy.ndarray):
                return _same
            if torch is not None and isinstance(array, torch.Tensor) and array.is_cuda:
                return self._torch_arrays.tensor
            if not isinstance(array, np.ndarray) and hasattr(array, "__dlpack__"):
                back = _reader(array)
                return self._host(back) if array.__dlpack_device__()[0] not in CUDA_DEVICES else back
            if hasattr(array, "__cuda_array_interface__"):
                return _same
        return self.cupy.asnumpy

    def _host(self, back: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda result: back(self.cupy.asnumpy(result))

    def _from_interface(self, given: Any) -> Any:
        """A view of the array's memory, on whose producer our stream waits by an event instead of the calling thread."""
        told = given.__cuda_array_interface__
        if told.get("mask") is not None:
            raise ArgumentError(f"{type(given).__name__} has a mask, which kernels do not know")
        pointer, _ = told["data"]
        cuda, dtype = self.cupy.cuda, np.dtype(told["typestr"])
        strides, shape = told.get("strides"), tuple(told["shape"])
        steps = [abs(step) * (extent - 1) for step, extent in zip(strides or (), shape, strict=True)] if strides else []
        size = dtype.itemsize + sum(steps) if strides else dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        memory = cuda.MemoryPointer(cuda.UnownedMemory(pointer, size, given), 0)
        self._wait_for(told.get("stream"))
        return self.cupy.ndarray(shape, dtype, memory, strides=strides)

    def _wait_for(self, stream: int | None) -> None:
        cuda = self.cupy.cuda
        current = cuda.get_current_stream()
        if stream is None or current.ptr == (0 if stream == LEGACY_STREAM else stream):
            return
        producer = cuda.Stream.null if stream == LEGACY_STREAM else cuda.ExternalStream(stream)
        current.wait_event(producer.record())


def _reader(array: Any) -> Callable[[Any], Any]:
    """``from_dlpack`` of the array's library."""
    if hasattr(array, "__array_namespace__"):
        found = getattr(array.__array_namespace__(), "from_dlpack", None)
    else:
        found = getattr(sys.modules.get(type(array).__module__.partition(".")[0]), "from_dlpack", None)
    return found or _same


def _same(array: Any) -> Any:
    return array
