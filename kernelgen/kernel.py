"""Kernel: a compiled description, called with arrays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any

import numpy as np

from kernelgen.desc import KernelDesc, TensorDesc
from kernelgen.desc_bind import bind
from kernelgen.desc_write import dump_desc
from kernelgen.dims import evaluate
from kernelgen.dtypes import Category
from kernelgen.errors import ArgumentError
from kernelgen.nest.nodes import Grid, Nest, Space
from kernelgen.plan import Plan
from kernelgen.poly.proof import Proof
from kernelgen.stages import Lowered
from kernelgen.targets.base import Entry, Sample, SampledEntry
from kernelgen.targets.gpu.model import Estimate

_TEXTLESS = frozenset({"claims", "load"})
"""What follows the source: its claims stand in the proof, and what was loaded has no text."""


@dataclass(frozen=True)
class Resources:
    """What a kernel takes: compilation in milliseconds by stage, bytes of arguments and workspaces (None if symbolic)."""

    milliseconds: Mapping[str, float]
    argument_bytes: int | None
    workspace_bytes: int | None
    entry: Entry | None = field(default=None, repr=False, compare=False)

    @cached_property
    def estimate(self) -> Estimate | None:
        """Registers, shared memory, spills and the estimated time of each launch; None for targets without launches.

        The time is an estimate for an H200, :mod:`kernelgen.targets.gpu.model`. Sizes must be known: see
        :meth:`Kernel.estimate` for others. Raises BackendUnavailable without the target's compiler.
        """
        offer = getattr(self.entry, "estimate", None)
        return None if offer is None or self.argument_bytes is None else offer()

    @property
    def compile_ms(self) -> float:
        """All stages together."""
        return sum(self.milliseconds.values())


@dataclass(frozen=True, eq=False)
class Kernel:
    """``kernel(*inputs, out=None) -> tuple of outputs``: numpy arrays in the order of the description.

    Inputs that the description assigns to (``desc.updated_inputs``) are changed in place. ``out`` gives the output
    arrays; an input that overlaps one, or one that is changed, is copied first. ``source`` is the target's text, ``proof``
    the certificate, ``stages`` the text of every stage by name.
    """

    desc: KernelDesc
    target: str
    source: str
    lowered: Lowered
    entry: Entry = field(repr=False)
    resources: Resources

    def __repr__(self) -> str:
        return f"<Kernel {self.desc.name} for {self.target}: {', '.join(op.name for op in self.desc.ops)}>"

    @property
    def nest(self) -> Nest:
        """The loop nest that the source prints."""
        return self.lowered.nest

    @property
    def launches(self) -> int:
        """How many launches a call is: the grids of a device's nest; a machine without grids is called once."""
        return max(1, sum(isinstance(part, Grid) for part in self.nest.body.statements))

    @property
    def cached(self) -> bool:
        """Whether the machine code came from the cache on disk."""
        return bool(getattr(self.entry, "from_disk", False))

    @property
    def proof(self) -> Proof:
        """What was proved about the schedule: legality, bounds, parallel and vector loops."""
        return self.lowered.proof

    @cached_property
    def plan(self) -> Plan:
        """Every choice of the mapping and the printing: ``compile(kernel.desc, kernel.target, kernel.plan)`` repeats them."""
        return replace(self.lowered.plan, subject=fingerprint(self.desc))

    @cached_property
    def stages(self) -> Mapping[str, str]:
        """Stage name -> text, in order; ends with the source."""
        return {name: text() for name, text in self.lowered.trail.texts.items() if name not in _TEXTLESS}

    def __call__(self, *inputs: Any, out: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """Runs the kernel. Raises ArgumentError when an array does not fit the description.

        On a device the arrays may be of any library that speaks DLPack or ``__cuda_array_interface__``, and the results
        are of the same one.
        """
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
        """What an entry is called with, arrays and values of symbols, and between them the outputs among the arrays."""
        if len(inputs) != len(self.desc.inputs):
            raise ArgumentError(f"{self.desc.name} takes {len(self.desc.inputs)} arrays, {len(inputs)} were given")
        symbols = bind(self.desc, [np.shape(array) for array in inputs])
        arrays = [self.input(k, array, symbols) for k, array in enumerate(inputs)]
        outputs = self.outputs(out, symbols)
        arrays = self._apart(arrays, outputs)
        values = tuple(symbols[name] for name in self.nest.symbols)
        return (*map(_as_real, arrays), *map(_as_real, outputs), *self.workspaces(symbols)), tuple(outputs), values

    def _apart(self, arrays: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The inputs, of which those that are only read are copies where they overlap what is written."""
        updated = self.desc.updated_inputs
        written = [*(arrays[k] for k in updated), *outputs]
        for one, other in combinations(written, 2):
            if np.may_share_memory(one, other):
                raise ArgumentError(f"two arrays that {self.desc.name} writes, of out= or updated in place, overlap")
        return [
            array.copy() if k not in updated and any(np.may_share_memory(array, one) for one in written) else array
            for k, array in enumerate(arrays)
        ]

    def estimate(self, machine: str = "H200", **sizes: int) -> Estimate | None:
        """How long the kernel would take on a device, for these sizes of its symbols; an estimate, not a measurement.

        ``machine`` is one of :data:`kernelgen.targets.gpu.machines.MACHINES`. None for targets without launches.
        """
        offer = getattr(self.entry, "estimate", None)
        return None if offer is None else offer(tuple(sizes[name] for name in self.nest.symbols), machine)

    @property
    def runs_on_device(self) -> bool:
        """Whether a call goes to a device."""
        return self._on_device is not None

    def load(self) -> None:
        """Does at once what the first call on the current device would do; nothing without one.

        Raises UnsupportedError("device") where that device refuses the kernel.
        """
        prepare: Callable[[], None] | None = getattr(self._on_device, "load", None)
        if prepare is not None:
            prepare()

    def without_device(self) -> Kernel:
        """The same kernel, run by what stands in for a device; itself where the target needs none."""
        standing_in: Entry | None = getattr(self.entry, "interpreter", None)
        return self if standing_in is None else replace(self, entry=standing_in)

    def sample(self, inputs: Sequence[Any], out: Sequence[Any]) -> Sample | None:
        """Runs a part of the kernel's blocks on large arrays; None where the target has no such thing.

        The masks of the sample are those of the outputs, then of the inputs that are updated in place.
        """
        if not isinstance(self.entry, SampledEntry):
            return None
        arrays, _, values = self.arguments(inputs, out)
        found, count = self.entry.sample(arrays, values), len(inputs)
        places = (*range(count, count + len(out)), *self.desc.updated_inputs)
        tensors = (*self.desc.outputs, *(self.desc.inputs[k] for k in self.desc.updated_inputs))
        masks = [_by_element(found.written[k], tensor) for k, tensor in zip(places, tensors, strict=True)]
        return replace(found, written=tuple(masks))

    @cached_property
    def _on_device(self) -> Callable[[Sequence[Any], Sequence[Any] | None], tuple[Any, ...]] | None:
        """The call of an entry that takes arrays of any library and makes its outputs itself; None for numpy alone."""
        offer = getattr(self.entry, "on_device", None)
        return None if offer is None else offer(self.desc)

    @cached_property
    def _direct(self) -> Callable[..., None] | None:
        """The target's own call, which checks its arguments itself, with workspaces made for it where it needs any."""
        fast: Callable[..., None] | None = getattr(self.entry, "fast", None)
        wanted = [buffer for buffer in self.nest.buffers if buffer.space is Space.WORKSPACE]
        if fast is None or not wanted:
            return fast
        if not self.nest.symbols:
            makers = [partial(np.empty, tuple(evaluate(dim, {}) for dim in b.shape), b.dtype.numpy) for b in wanted]
            return lambda *arrays: fast(*arrays, *[make() for make in makers])
        shapes = enumerate(tensor.shape for tensor in self.desc.inputs)
        places = {str(dim): (k, d) for k, shape in shapes for d, dim in enumerate(shape)}
        if not places.keys() >= set(self.nest.symbols):
            return None
        return lambda *arrays: fast(*arrays, *self.workspaces(_sizes(arrays, places, self.nest.symbols)))

    @cached_property
    def _output_makers(self) -> tuple[Callable[[], np.ndarray], ...] | None:
        if self.nest.symbols:
            return None
        return tuple(partial(np.empty, _shape(tensor, {}), tensor.dtype.numpy) for tensor in self.desc.outputs)

    def _fresh_outputs(self) -> tuple[np.ndarray, ...] | None:
        """New arrays for the outputs of a static kernel."""
        makers = self._output_makers
        return None if makers is None else tuple([make() for make in makers])

    def input(self, position: int, array: Any, symbols: Mapping[str, int]) -> np.ndarray:
        """A row-major, aligned array of the declared dtype; arrays that are updated in place must be so already."""
        tensor = self.desc.inputs[position]
        given = np.asarray(array)
        if given.dtype != tensor.dtype.numpy:
            raise ArgumentError(f"{tensor.name} has dtype {given.dtype}, expected {tensor.dtype.name}")
        if position in self.desc.updated_inputs:
            if not (given is array and given.flags.carray):
                raise ArgumentError(
                    f"{tensor.name} is updated in place: give a writeable, aligned, C-contiguous numpy array"
                )
            return given
        return np.require(given, requirements=("C", "A")).reshape(_shape(tensor, symbols))

    def outputs(self, out: Sequence[Any] | None, symbols: Mapping[str, int]) -> list[np.ndarray]:
        """The arrays to write: those given, checked, or new ones."""
        if out is None:
            return [np.empty(_shape(tensor, symbols), tensor.dtype.numpy) for tensor in self.desc.outputs]
        if isinstance(out, np.ndarray):
            raise ArgumentError("out= takes a tuple of arrays, one for each output: out=(array,)")
        if len(out) != len(self.desc.outputs):
            raise ArgumentError(f"{self.desc.name} has {len(self.desc.outputs)} outputs, out= holds {len(out)}")
        for tensor, array in zip(self.desc.outputs, out, strict=True):
            fits = isinstance(array, np.ndarray) and array.flags.carray
            if not fits or array.shape != _shape(tensor, symbols) or array.dtype != tensor.dtype.numpy:
                raise ArgumentError(
                    f"out for {tensor.name} must be a writeable, aligned, C-contiguous {tensor.dtype.name} array "
                    f"of shape {list(tensor.shape)}"
                )
        return list(out)

    def workspaces(self, symbols: Mapping[str, int]) -> list[np.ndarray]:
        """Scratch arrays for temporaries that do not fit a stack."""
        wanted = (b for b in self.nest.buffers if b.space is Space.WORKSPACE)
        return [np.empty([evaluate(dim, symbols) for dim in b.shape], b.dtype.numpy) for b in wanted]


def fingerprint(desc: KernelDesc) -> str:
    """The name of a description and a hash of all of it, which plans are made for."""
    text = json.dumps(dump_desc(desc), sort_keys=True)
    return f"{desc.name} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _sizes(arrays: Sequence[Any], places: Mapping[str, tuple[int, int]], symbols: Sequence[str]) -> Mapping[str, int]:
    """What the symbols are, read off arrays that nobody has checked: (array, dim) for each."""
    try:
        return {name: arrays[place[0]].shape[place[1]] for name in symbols if (place := places[name])}
    except (AttributeError, IndexError) as error:
        raise ArgumentError(f"an argument is no array of the described rank: {error}") from error


def _shape(tensor: TensorDesc, symbols: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(dim, symbols) for dim in tensor.shape)


def _by_element(mask: np.ndarray | None, tensor: TensorDesc) -> np.ndarray | None:
    """A mask of the nest's elements as one of the tensor's: a complex number is two of the nest's."""
    if mask is None or tensor.dtype.category is not Category.COMPLEX:
        return mask
    return np.logical_and(mask[0::2], mask[1::2])


def _as_real(array: np.ndarray) -> np.ndarray:
    """A complex array as its real and imaginary parts, which is how the nest addresses it: a view."""
    if array.dtype.kind != "c":
        return array
    return array.reshape(-1).view(f"f{array.itemsize // 2}").reshape(*array.shape, 2)
