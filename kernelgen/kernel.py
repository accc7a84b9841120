"""Kernel: a compiled description, called with arrays."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.composite.write import dump_desc
from kernelgen.native.call import Entry, NativeKernel
from kernelgen.native.lines import prepared
from kernelgen.native.signature import Signature
from kernelgen.nest.nodes import Grid, Nest, Space
from kernelgen.nest.preparation import with_preparation
from kernelgen.plan import Plan
from kernelgen.poly.proof.schedule_proof import Proof
from kernelgen.stages import Lowered
from kernelgen.system.cached_property import cached_property
from kernelgen.targets.base import arguments
from kernelgen.targets.entries import (
    BoundCall,
    CachedEntry,
    DeviceCall,
    DeviceEntry,
    Estimate,
    EstimatingEntry,
    Sample,
    SampledEntry,
)
from kernelgen.tensor.dtypes import Category

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

        The time is an estimate for an H200, :mod:`kernelgen.targets.gpu.launch.time_model`. Sizes must be known: see
        :meth:`Kernel.estimate` for others. Raises BackendUnavailable without the target's compiler.
        """
        if self.argument_bytes is None or not isinstance(self.entry, EstimatingEntry):
            return None
        return self.entry.estimate()

    @property
    def compile_ms(self) -> float:
        """All stages together."""
        return sum(self.milliseconds.values())


@dataclass(frozen=True, eq=False, repr=False)
class Kernel(NativeKernel):
    """``kernel(*inputs, out=None) -> tuple of outputs``: arrays in the order of the description, see :class:`NativeKernel`.

    On a device the arrays may be of any library that speaks DLPack or ``__cuda_array_interface__``, and the results are of
    the same one. ``source`` is the target's text, ``proof`` the certificate, ``stages`` the text of every stage by name.
    """

    signature: Signature
    entry: Entry
    desc: KernelDesc
    target: str
    source: str
    lowered: Lowered
    resources: Resources
    preparation: NativeKernel | None = None
    """From inputs of the description that are constant it computes what the kernel takes in their place."""
    constants: tuple[int, ...] = ()
    """The positions of the description's inputs that hold the same in every call."""

    def __repr__(self) -> str:
        return f"<Kernel {self.desc.name} for {self.target}: {', '.join(node.op.name for node in self.desc.operators)}>"

    @cached_property
    def taken(self) -> tuple[int, ...]:
        """The positions of the description's inputs that a call takes, before what :meth:`prepare` gives."""
        names = {buffer.name for buffer in self.nest.buffers}
        return tuple(position for position, name in enumerate(self.lowered.inputs) if name in names)

    @cached_property
    def prepares(self) -> tuple[int, ...]:
        """The positions of the description's inputs that :meth:`prepare` takes."""
        nest = self.nest.preparation
        names = {buffer.name for buffer in nest.buffers} if nest is not None else set[str]()
        return tuple(position for position, name in enumerate(self.lowered.inputs) if name in names)

    def prepare(self, *constants: Any) -> tuple[Any, ...]:
        """What a call takes behind the inputs of :attr:`taken`, from the constants at :attr:`prepares`: computed once.

        Raises ArgumentError when an array does not fit.
        """
        return prepared(self.preparation, constants)

    def call_inputs(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """What a call takes, from all inputs of the description, the constants among them prepared."""
        if self.preparation is None:
            return tuple(inputs)
        return (*(inputs[k] for k in self.taken), *self.prepare(*(inputs[k] for k in self.prepares)))

    @property
    def nest(self) -> Nest:
        """The loop nest that the source prints."""
        return self.lowered.nest

    @property
    def whole_nest(self) -> Nest:
        """The same behind what :meth:`prepare` runs: from the description's own inputs."""
        return with_preparation(self.nest, self.lowered.inputs)

    @property
    def launches(self) -> int:
        """How many launches a call is: the grids of a device's nest; a machine without grids is called once."""
        return max(1, sum(isinstance(part, Grid) for part in self.nest.body.statements))

    @property
    def cached(self) -> bool:
        """Whether the machine code came from the cache on disk."""
        return isinstance(self.entry, CachedEntry) and self.entry.from_disk

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

    def estimate(self, machine: str = "H200", **sizes: int) -> Estimate | None:
        """How long the kernel would take on a device, for these sizes of its symbols; an estimate, not a measurement.

        ``machine`` is one of :data:`kernelgen.machines.gpu.timed.MACHINES`. None for targets without launches.
        """
        if not isinstance(self.entry, EstimatingEntry):
            return None
        return self.entry.estimate(tuple(sizes[name] for name in self.nest.symbols), machine)

    @property
    def runs_on_device(self) -> bool:
        """Whether a call goes to a device."""
        return self._on_device is not None

    def load(self) -> None:
        """Does at once what the first call on the current device would do; nothing without one.

        Raises UnsupportedError("device") where that device refuses the kernel.
        """
        if self._on_device is not None:
            self._on_device.load()

    def bound(self, arrays: Sequence[Any], moving: Sequence[int]) -> BoundCall | None:
        """The kernel for inputs and outputs of these shapes on the current device, those at the positions ``moving`` others
        in each call; None where it runs on none.
        """
        return None if self._on_device is None else self._on_device.bound(arrays, moving)

    def without_device(self) -> Kernel:
        """The same kernel, run by what stands in for a device; itself where the target needs none."""
        return replace(self, entry=self.entry.interpreter) if isinstance(self.entry, DeviceEntry) else self

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
    def _on_device(self) -> DeviceCall | None:
        """The call of an entry that takes arrays of any library and makes its outputs itself; None for numpy alone."""
        return self.entry.on_device(self.signature) if isinstance(self.entry, DeviceEntry) else None


def signature_of(desc: KernelDesc, lowered: Lowered) -> Signature:
    """How the kernel of a description is called that became this nest."""
    nest = lowered.nest
    if nest.preparation is None:
        return Signature(desc.name, desc.inputs, desc.outputs, desc.updated_inputs, arguments(nest), nest.symbols)
    names = {buffer.name for buffer in nest.buffers}
    taken = [position for position, name in enumerate(lowered.inputs) if name in names]
    inputs = (*(desc.inputs[position] for position in taken), *_prepared(nest.preparation))
    updated = tuple(taken.index(position) for position in desc.updated_inputs)
    return Signature(desc.name, inputs, desc.outputs, updated, arguments(nest), nest.symbols)


def preparation_signature(desc: KernelDesc, lowered: Lowered, nest: Nest) -> Signature:
    """How the preparation of the kernel of ``desc`` is called, whose stages gave ``lowered`` and ``nest``."""
    names = {buffer.name for buffer in nest.buffers}
    inputs = tuple(tensor for tensor, name in zip(desc.inputs, lowered.inputs, strict=True) if name in names)
    return Signature(nest.name, inputs, _prepared(nest), (), arguments(nest), nest.symbols)


def _prepared(nest: Nest) -> tuple[Tensor, ...]:
    """What a preparation gives."""
    return tuple(Tensor(b.name, b.shape, b.dtype) for b in nest.buffers if b.space is Space.OUTPUT)


def fingerprint(desc: KernelDesc) -> str:
    """The name of a description and a hash of all of it, which plans are made for."""
    text = json.dumps(dump_desc(desc), sort_keys=True)
    return f"{desc.name} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _by_element(mask: np.ndarray | None, tensor: Tensor) -> np.ndarray | None:
    """A mask of the nest's elements as one of the tensor's: a complex number is two of the nest's."""
    if mask is None or tensor.dtype.category is not Category.COMPLEX:
        return mask
    return np.logical_and(mask[0::2], mask[1::2])
