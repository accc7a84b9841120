"""A kernel on the device: arrays of any library in, the same kind out, launches on the caller's stream, no waiting.

Everything that depends on shapes and data types alone is worked out once and kept: sizes of symbols, grids, the places of
pointers among the arguments. What is left for a call is to look at each array and to launch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from kernelgen.composite.bind_sizes import bind
from kernelgen.errors import ArgumentError, CodegenError, UnsupportedError
from kernelgen.native.signature import Described, Signature
from kernelgen.nest.extents import extent
from kernelgen.nest.nodes import Nest, Space
from kernelgen.system.cached_property import cached_property
from kernelgen.targets.gpu.dialects.program import Launch
from kernelgen.targets.gpu.launch.arrays import Border, Layout, Library
from kernelgen.targets.gpu.launch.bound import ALIGNMENT, BoundKernel, Call, launch
from kernelgen.targets.gpu.launch.cubins import cached_cubin
from kernelgen.targets.gpu.launch.device import ARCH, Device, Function, load_functions
from kernelgen.tensor.dims import evaluate

KEPT_SIGNATURES = 64
"""Sets of shapes for which the sizes of a launch are kept."""


@dataclass(frozen=True)
class Prepared:
    """What is known about calls with arrays of these shapes and types: launches, outputs to make, workspaces in bytes.

    ``sizes`` are the bytes of the inputs and outputs, ``written`` the positions of those that are written.
    """

    calls: tuple[Call, ...]
    outputs: tuple[Layout, ...]
    workspaces: tuple[int, ...]
    byte: Any  # the library's data type of one byte
    sizes: tuple[int, ...]
    written: tuple[int, ...]

    def overlapping(self, pointers: Sequence[int]) -> set[int]:
        """The positions of arrays that overlap another one, which is written."""
        found = set[int]()
        spans = [(start, start + size) for start, size in zip(pointers, self.sizes, strict=False)]
        for w in self.written:
            begin, end = spans[w]
            found.update([k for k, (start, stop) in enumerate(spans) if start < end and begin < stop and k != w])
        return found


@dataclass(eq=False)
class DeviceKernel:
    """``kernel(inputs, out)``: runs the launches of a program on the current device."""

    signature: Signature
    nest: Nest
    source: str
    launches: Sequence[Launch]
    device: Device
    _prepared: OrderedDict[Any, Prepared] = field(default_factory=OrderedDict[Any, Prepared], repr=False)
    _functions: dict[int, tuple[Function, ...]] = field(default_factory=dict[int, "tuple[Function, ...]"], repr=False)

    def __call__(self, inputs: Sequence[Any], out: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """Runs the kernel. Raises ArgumentError for arrays that do not fit the description."""
        self._check_count(inputs, out)
        given = (*inputs, *out) if out is not None else inputs
        library = self._border.library_of(given)
        if library is None:
            return self._at_the_border(inputs, out)
        with library.stream():
            return self.run(library, inputs, out)

    def run(self, library: Library, inputs: Sequence[Any], out: Sequence[Any] | None) -> tuple[Any, ...]:
        """Runs on arrays of one library, on cupy's current stream.

        Raises ArgumentError where arrays that are written overlap.
        """
        prepared = self._prepare(library, inputs)
        if out is None:
            outputs = tuple([library.empty(*layout) for layout in prepared.outputs])
        else:
            outputs = tuple(out)
            self._check_outputs(library, outputs, prepared)
        workspaces = [library.empty((size,), prepared.byte) for size in prepared.workspaces]
        pointers = library.pointers([*inputs, *outputs, *workspaces])
        is_apart = out is None and len(prepared.written) == len(outputs)  # what is made here overlaps nothing
        overlap = set[int]() if is_apart else prepared.overlapping(pointers)
        if not overlap.isdisjoint(prepared.written):
            raise ArgumentError(f"two arrays that {self.signature.name} writes, of out= or updated in place, overlap")
        if overlap or not library.are_plain(inputs) or any([pointer & (ALIGNMENT - 1) for pointer in pointers]):
            inputs = self._plain_inputs(library, inputs, overlap)  # copies, which live until all is launched
            pointers[: len(inputs)] = library.pointers(inputs)
        launch(prepared.calls, pointers)
        return outputs

    def bound(self, arrays: Sequence[Any], moving: Sequence[int]) -> BoundKernel:
        """The kernel for cupy arrays of these shapes, inputs and outputs, on the current device; those at the positions
        ``moving`` are others in each call. Raises ArgumentError for those that do not fit.
        """
        library = self._border.cupy_arrays
        prepared = self._prepare(library, arrays[: len(self.signature.inputs)])
        workspaces = tuple(library.empty((size,), prepared.byte) for size in prepared.workspaces)
        pointers = tuple(library.pointers([*arrays, *workspaces]))
        return BoundKernel(prepared.calls, pointers, tuple(moving), workspaces)

    @cached_property
    def _border(self) -> Border:
        return Border(self.device.cupy)

    def _check_count(self, inputs: Sequence[Any], out: Sequence[Any] | None) -> None:
        if len(inputs) != len(self.signature.inputs):
            raise ArgumentError(
                f"{self.signature.name} takes {len(self.signature.inputs)} arrays, {len(inputs)} were given"
            )
        if out is not None and (not isinstance(out, Sequence) or len(out) != len(self.signature.outputs)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError(f"out= takes a tuple of {len(self.signature.outputs)} arrays, one for each output")

    def _plain_inputs(self, library: Library, inputs: Sequence[Any], overlap: Collection[int]) -> Sequence[Any]:
        """The inputs, with copies for those that are not row-major, start between two vectors, or overlap what is written."""
        return [self._plain(library, k, array, copied=k in overlap) for k, array in enumerate(inputs)]

    def _plain(self, library: Library, position: int, array: Any, copied: bool) -> Any:
        complaint = self._complaint(library, array)
        if complaint and position in self.signature.updated_inputs:
            raise ArgumentError(f"{self.signature.inputs[position].name} is updated in place, but it {complaint}")
        return library.plain(array) if complaint or copied else array

    def _complaint(self, library: Library, array: Any) -> str:
        """What keeps a kernel from using the array's memory; empty when nothing does."""
        if not library.are_plain((array,)):
            return "is not C-contiguous"
        (pointer,) = library.pointers((array,))
        return f"starts at address {pointer:#x}, no multiple of {ALIGNMENT} bytes" if pointer % ALIGNMENT else ""

    def _check_outputs(self, library: Library, outputs: Sequence[Any], prepared: Prepared) -> None:
        layouts = library.layouts(outputs)
        for tensor, array, layout, expected in zip(
            self.signature.outputs, outputs, layouts, prepared.outputs, strict=True
        ):
            if layout != expected:
                found = f"{library.dtype(layout[1])}{list(layout[0])}"
                raise ArgumentError(
                    f"out for {tensor.name} is {found}, expected {tensor.dtype.name}{list(expected[0])}"
                )
            complaint = self._complaint(library, array)
            if complaint:
                raise ArgumentError(f"out for {tensor.name} {complaint}")

    def _prepare(self, library: Library, inputs: Sequence[Any]) -> Prepared:
        """What is known about these shapes and types on this device, worked out the first time."""
        number = self.device.cupy.cuda.runtime.getDevice()
        key = (number, library, library.layouts(inputs))
        found = self._prepared.get(key)
        if found is None:
            found = self._prepared[key] = self._worked_out(library, inputs, number)
            while len(self._prepared) > KEPT_SIGNATURES:
                self._prepared.popitem(last=False)
        if inputs and library.device(inputs[0]) != number:
            self._check_device(library, inputs, number)
        return found

    def _check_device(self, library: Library, inputs: Sequence[Any], number: int) -> None:
        for tensor, array in zip(self.signature.inputs, inputs, strict=True):
            if library.device(array) != number:
                raise ArgumentError(f"{tensor.name} is on device {library.device(array)}, the current one is {number}")

    def _worked_out(self, library: Library, inputs: Sequence[Any], number: int) -> Prepared:
        layouts = library.layouts(inputs)
        self._check_device(library, inputs, number)
        for tensor, (_, native) in zip(self.signature.inputs, layouts, strict=True):
            if library.dtype(native) != tensor.dtype.numpy:
                raise ArgumentError(f"{tensor.name} has dtype {library.dtype(native)}, expected {tensor.dtype.name}")
        symbols = bind(self.signature, [tuple(shape) for shape, _ in layouts])
        sizes = tuple(symbols[name] for name in self.nest.symbols)
        functions = self._loaded(number)
        calls = [
            Call(function, (extent(launch.blocks, symbols), 1, 1), launch.threads, launch.dynamic_shared(symbols),
                 launch.buffers, sizes)
            for function, launch in zip(functions, self.launches, strict=True)
        ]  # fmt: skip
        outputs = tuple(
            (_shape(tensor, symbols), library.native(tensor.dtype.numpy)) for tensor in self.signature.outputs
        )
        scratch = [buffer for buffer in self.nest.buffers if buffer.space is Space.WORKSPACE]
        workspaces = tuple(
            int(np.prod([evaluate(dim, symbols) for dim in b.shape], dtype=np.int64)) * b.dtype.itemsize
            for b in scratch
        )
        launched = tuple(call for call in calls if call.grid[0] > 0)
        arguments = (*self.signature.inputs, *self.signature.outputs)
        sizes = tuple(prod(_shape(each, symbols)) * each.dtype.itemsize for each in arguments)
        written = (*self.signature.updated_inputs, *range(len(self.signature.inputs), len(arguments)))
        return Prepared(launched, outputs, workspaces, library.native(np.dtype(np.uint8)), sizes, written)

    def load(self) -> None:
        """Compiles and loads what a call on the current device needs. Raises UnsupportedError("device") if it refuses it."""
        self._loaded(self.device.cupy.cuda.runtime.getDevice())

    def _loaded(self, number: int) -> tuple[Function, ...]:
        """The functions on a device, compiled for its architecture and loaded when they are first needed there."""
        if number not in self._functions:
            cupy = self.device.cupy
            arch = f"{ARCH}{cupy.cuda.Device(number).compute_capability}"
            try:
                compiled, _ = cached_cubin(self.source, self.nest.name, arch)
                self._functions[number] = load_functions(cupy, compiled.cubin, self.launches)
            except (CodegenError, RuntimeError) as error:  # cupy's errors of the driver are RuntimeErrors
                raise UnsupportedError("device", f"{self.nest.name} on device {number}, {arch}: {error}") from error
        return self._functions[number]

    def _at_the_border(self, inputs: Sequence[Any], out: Sequence[Any] | None) -> tuple[Any, ...]:
        """Arrays of several libraries, or of the host's memory: copied to the device and back where they are not there."""
        border = self._border
        with border.stream_of((*inputs, *(out or ()))):
            own = [border.take(a, t.name) for a, t in zip(inputs, self.signature.inputs, strict=True)]
            places = None if out is None else [self._place(array) for array in out]
            results = self.run(border.cupy_arrays, own, places)
            for position in self.signature.updated_inputs:
                self._bring_back(own[position], inputs[position])
            if out is None:
                give = border.giver(inputs)
                return tuple([give(result) for result in results])
            for result, array in zip(results, out, strict=True):
                self._bring_back(result, array)
            return tuple(out)

    def _place(self, array: Any) -> Any:
        """Where a result is computed that goes to ``array``: there, or in memory of the device of the same layout."""
        if self._border.lives_on_device(array):
            return self._border.take(array, "out")
        host = np.asarray(array)
        return self.device.cupy.empty(host.shape, host.dtype)

    def _bring_back(self, result: Any, array: Any) -> None:
        """Copies a result into an array of the host's memory; the caller waits for it."""
        if not self._border.lives_on_device(array):
            np.copyto(np.asarray(array), self.device.cupy.asnumpy(result))


def _shape(tensor: Described, symbols: dict[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(dim, symbols) for dim in tensor.shape)
