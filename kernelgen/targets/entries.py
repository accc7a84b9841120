"""What a loaded kernel may be able to do beside being called: one protocol for each ability, and what it gives.

``isinstance(entry, SampledEntry)`` asks; an entry has an ability by having its methods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from kernelgen.native.call import Entry
from kernelgen.native.signature import Signature


@dataclass(frozen=True)
class Sample:
    """What a run of a part of a kernel's threads has shown.

    ``written`` has a mask for each buffer of the nest, of the buffer's elements in row-major order: those that have their
    final value; None where all have. ``blocks`` is how many blocks of threads ran, ``blocks_in_all`` how many there are.
    """

    written: tuple[np.ndarray | None, ...]
    blocks: int
    blocks_in_all: int


@runtime_checkable
class SampledEntry(Protocol):
    """An entry that can run a part of its threads, for arrays that are too large to run them all."""

    def sample(self, arrays: tuple[object, ...], symbols: tuple[int, ...]) -> Sample:
        """Runs some blocks, spread over each grid. Raises UnsupportedError("too-large") where some are not enough."""
        ...


@runtime_checkable
class FeaturedEntry(Protocol):
    """An entry that knows more of what its kernel does than the nest tells."""

    def features(self, symbols: tuple[int, ...]) -> frozenset[str]:
        """What the kernel does at these sizes, in words that do not depend on them: loops, instructions, ways taken."""
        ...


@runtime_checkable
class CachedEntry(Protocol):
    """An entry that knows whether its machine code came from the cache on disk."""

    @property
    def from_disk(self) -> bool:
        """Whether it did."""
        ...


@dataclass(frozen=True)
class LaunchEstimate:
    """One launch on a machine. ``seconds`` of each resource; ``occupancy`` is the share of warps that can be resident.

    ``moved`` are the distinct bytes, ``sectors`` the 32-byte pieces that come from the L2 or go there.
    """

    kernel: str
    machine: str
    blocks: int
    threads: int
    registers: int
    shared_bytes: int
    spill_bytes: int
    occupancy: float
    moved: int
    sectors: int
    conflicts: int
    limits: Mapping[str, float]
    start: float

    @property
    def bound(self) -> str:
        """The resource that takes longest."""
        return max(self.limits, key=lambda name: self.limits[name])

    @property
    def seconds(self) -> float:
        """The estimate."""
        return self.start + self.limits[self.bound]

    @property
    def warm_seconds(self) -> float:
        """The estimate where all arrays are in the L2, as in a run that is repeated."""
        return self.start + max(limit for name, limit in self.limits.items() if name != "memory")

    def __str__(self) -> str:
        return (
            f"{self.kernel}: {self.blocks} x {self.threads} threads, {self.registers} registers, {self.shared_bytes} bytes"
            f" shared, {self.spill_bytes} bytes spilled; estimated on {self.machine}: {self.seconds * 1e6:.1f} us,"
            f" bound by {self.bound}, occupancy {self.occupancy:.0%}"
        )


@dataclass(frozen=True)
class Estimate:
    """All launches of a kernel, one after the other; an estimate, not a measurement."""

    machine: str
    launches: tuple[LaunchEstimate, ...]

    @property
    def seconds(self) -> float:
        """Of all launches."""
        return sum(launch.seconds for launch in self.launches)

    def __str__(self) -> str:
        return "\n".join(map(str, self.launches))


@runtime_checkable
class EstimatingEntry(Protocol):
    """An entry of a target with launches, whose time on a device can be estimated."""

    def estimate(self, symbols: tuple[int, ...] = (), machine: str = "H200") -> Estimate:
        """How long the kernel would take there at these sizes. Raises UnsupportedError for what takes too long to count,
        BackendUnavailable without the target's compiler.
        """
        ...


class BoundCall(Protocol):
    """A kernel on a device for known shapes, so that little is left of a call but its launches."""

    def __call__(self, arrays: Sequence[Any]) -> bool:
        """Runs on inputs and outputs; False, and nothing ran, where one lies as the kernel cannot use it."""
        ...


class DeviceCall(Protocol):
    """A kernel on a device: takes arrays of any library, and makes its outputs itself where none are given."""

    def __call__(self, inputs: Sequence[Any], out: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """Runs the kernel."""
        ...

    def bound(self, arrays: Sequence[Any], moving: Sequence[int]) -> BoundCall:
        """The kernel for inputs and outputs of these shapes, of the device's library; those at the positions ``moving`` are
        others in each call. Raises ArgumentError for those that do not fit.
        """
        ...

    def load(self) -> None:
        """Does at once what the first call would do. Raises UnsupportedError("device") where the device refuses it."""
        ...


@runtime_checkable
class DeviceEntry(Protocol):
    """An entry that runs on a device where there is one."""

    @property
    def interpreter(self) -> Entry:
        """The same kernel, run by what stands in for the device."""
        ...

    def on_device(self, signature: Signature) -> DeviceCall | None:
        """The kernel on the current device; None where there is none."""
        ...
