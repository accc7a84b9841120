"""Calling a kernel: the fast way, or the careful one that converts what can be converted and says what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

import numpy as np

from kernelgen.composite.bind_sizes import bind
from kernelgen.errors import ArgumentError
from kernelgen.native.signature import Described, Signature
from kernelgen.system.cached_property import cached_property
from kernelgen.tensor.dims import evaluate


class Entry(Protocol):
    """A loaded kernel body.

    Called with one aligned, C-contiguous array per argument of the signature, in order (inputs, outputs, workspaces), each of
    its dtype and shape, and the values of the signature's sizes in order. It writes outputs in place and returns None.
    """

    def __call__(self, arrays: tuple[object, ...], symbols: tuple[int, ...]) -> None:
        """Runs the kernel."""
        ...


@runtime_checkable
class CheckingEntry(Protocol):
    """An entry with a call of its own that checks its arguments itself."""

    @property
    def fast(self) -> Callable[..., None]:
        """``fast(*arrays)`` binds the sizes and runs; raises ArgumentError when an array does not fit."""
        ...


class NativeKernel:
    """``kernel(*inputs, out=None) -> tuple of outputs``: numpy arrays in the order of the signature.

    Inputs that are updated are changed in place. ``out`` gives the output arrays; an input that overlaps one, or one that
    is changed, is copied first.
    """

    signature: Signature
    entry: Entry

    def __init__(self, signature: Signature, entry: Entry) -> None:
        self.signature, self.entry = signature, entry

    def __call__(self, *inputs: Any, out: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """Runs the kernel. Raises ArgumentError when an array does not fit the signature."""
        if self._on_device is not None:
            return self._on_device(inputs, out)
        outputs = self._fresh_outputs() if out is None else out
        if self._direct is not None and outputs is not None:
            try:
                self._direct(*inputs, *outputs)
                return tuple(outputs)
            except ArgumentError:
                pass  # the careful way converts what can be converted and says what does not fit
        return self._careful(inputs, out)

    def _careful(self, inputs: Sequence[Any], out: Sequence[Any] | None) -> tuple[np.ndarray, ...]:
        """Checks and converts every argument in Python, binds symbols, makes workspaces."""
        arrays, outputs, values = self.arguments(inputs, out)
        self.entry(arrays, values)
        return outputs

    def arguments(
        self, inputs: Sequence[Any], out: Sequence[Any] | None
    ) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], tuple[int, ...]]:
        """What an entry is called with, arrays and values of symbols, and between them the outputs among the arrays.

        Raises ArgumentError for another number of arrays.
        """
        if len(inputs) != len(self.signature.inputs):
            raise ArgumentError(
                f"{self.signature.name} takes {len(self.signature.inputs)} arrays, {len(inputs)} were given"
            )
        symbols = bind(self.signature, [np.shape(array) for array in inputs])
        arrays = [self.input(k, array, symbols) for k, array in enumerate(inputs)]
        outputs = self.outputs(out, symbols)
        arrays = self._apart(arrays, outputs)
        values = tuple(symbols[name] for name in self.signature.sizes)
        return (*map(_as_real, arrays), *map(_as_real, outputs), *self.workspaces(symbols)), tuple(outputs), values

    def _apart(self, arrays: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The inputs, of which those that are only read are copies where they overlap what is written."""
        updated = self.signature.updated_inputs
        written = [*(arrays[k] for k in updated), *outputs]
        for one, other in combinations(written, 2):
            if np.may_share_memory(one, other):
                raise ArgumentError(
                    f"two arrays that {self.signature.name} writes, of out= or updated in place, overlap"
                )
        return [
            array.copy() if k not in updated and any(np.may_share_memory(array, one) for one in written) else array
            for k, array in enumerate(arrays)
        ]

    @cached_property
    def _on_device(self) -> Callable[[Sequence[Any], Sequence[Any] | None], tuple[Any, ...]] | None:
        """The call of an entry that takes arrays of any library and makes its outputs itself; None for numpy alone."""
        return None

    @cached_property
    def _direct(self) -> Callable[..., None] | None:
        """The target's own call, which checks its arguments itself, with workspaces made for it where it needs any."""
        if not isinstance(self.entry, CheckingEntry):
            return None
        fast, wanted = self.entry.fast, self.signature.workspaces
        if not wanted:
            return fast
        if not self.signature.sizes:
            makers = [partial(np.empty, tuple(evaluate(dim, {}) for dim in b.shape), b.dtype.numpy) for b in wanted]
            return lambda *arrays: fast(*arrays, *[make() for make in makers])
        shapes = enumerate(tensor.shape for tensor in self.signature.inputs)
        places = {str(dim): (k, d) for k, shape in shapes for d, dim in enumerate(shape)}
        if not places.keys() >= set(self.signature.sizes):
            return None
        return lambda *arrays: fast(*arrays, *self.workspaces(_sizes(arrays, places, self.signature.sizes)))

    @cached_property
    def _output_makers(self) -> tuple[Callable[[], np.ndarray], ...] | None:
        if self.signature.sizes:
            return None
        return tuple(partial(np.empty, _shape(tensor, {}), tensor.dtype.numpy) for tensor in self.signature.outputs)

    def _fresh_outputs(self) -> tuple[np.ndarray, ...] | None:
        """New arrays for the outputs of a static kernel."""
        makers = self._output_makers
        return None if makers is None else tuple([make() for make in makers])

    def input(self, position: int, array: Any, symbols: Mapping[str, int]) -> np.ndarray:
        """A row-major, aligned array of the declared dtype; arrays that are updated in place must be so already.

        Raises ArgumentError for an array of another data type, or one that cannot be updated in place.
        """
        tensor = self.signature.inputs[position]
        given = np.asarray(array)
        if given.dtype != tensor.dtype.numpy:
            raise ArgumentError(f"{tensor.name} has dtype {given.dtype}, expected {tensor.dtype.name}")
        if position in self.signature.updated_inputs:
            if not (given is array and given.flags.carray):
                raise ArgumentError(
                    f"{tensor.name} is updated in place: give a writeable, aligned, C-contiguous numpy array"
                )
            return given
        return np.require(given, requirements=("C", "A")).reshape(_shape(tensor, symbols))

    def outputs(self, out: Sequence[Any] | None, symbols: Mapping[str, int]) -> list[np.ndarray]:
        """The arrays to write: those given, checked, or new ones.

        Raises ArgumentError for arrays that do not fit the outputs.
        """
        if out is None:
            return [np.empty(_shape(tensor, symbols), tensor.dtype.numpy) for tensor in self.signature.outputs]
        if isinstance(out, np.ndarray):
            raise ArgumentError("out= takes a tuple of arrays, one for each output: out=(array,)")
        if len(out) != len(self.signature.outputs):
            raise ArgumentError(
                f"{self.signature.name} has {len(self.signature.outputs)} outputs, out= holds {len(out)}"
            )
        for tensor, array in zip(self.signature.outputs, out, strict=True):
            fits = isinstance(array, np.ndarray) and array.flags.carray
            if not fits or array.shape != _shape(tensor, symbols) or array.dtype != tensor.dtype.numpy:
                raise ArgumentError(
                    f"out for {tensor.name} must be a writeable, aligned, C-contiguous {tensor.dtype.name} array "
                    f"of shape {list(tensor.shape)}"
                )
        return list(out)

    def workspaces(self, symbols: Mapping[str, int]) -> list[np.ndarray]:
        """Scratch arrays for temporaries that do not fit a stack."""
        wanted = self.signature.workspaces
        return [np.empty([evaluate(dim, symbols) for dim in b.shape], b.dtype.numpy) for b in wanted]


def _sizes(arrays: Sequence[Any], places: Mapping[str, tuple[int, int]], symbols: Sequence[str]) -> Mapping[str, int]:
    """What the symbols are, read off arrays that nobody has checked: (array, dim) for each."""
    try:
        return {name: arrays[place[0]].shape[place[1]] for name in symbols if (place := places[name])}
    except (AttributeError, IndexError) as error:
        raise ArgumentError(f"an argument is no array of the described rank: {error}") from error


def _shape(tensor: Described, symbols: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(dim, symbols) for dim in tensor.shape)


def _as_real(array: np.ndarray) -> np.ndarray:
    """A complex array as its real and imaginary parts, which is how the nest addresses it: a view."""
    if array.dtype.kind != "c":
        return array
    return array.reshape(-1).view(f"f{array.itemsize // 2}").reshape(*array.shape, 2)
