"""Where the arrays of a plan lie: in the host's memory; ``device`` has the same for a CUDA device."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, Protocol

import numpy as np

from graphkernel.runtime.inputs.arrays import to_numpy, wrapper_for
from graphkernel.runtime.plan.buffers import aligned_array, aligned_bytes
from graphkernel.runtime.steps.program import Program, Segment
from graphkernel.runtime.steps.steps import Action, Slots


class Memory(Protocol):
    """What an executable asks of the memory that its plan runs in. Its arrays have numpy's methods."""

    @property
    def kind(self) -> type:
        """The class of its arrays."""
        ...

    @property
    def is_made_by_kernels(self) -> bool:
        """Whether kernels themselves make arrays of this memory for their results."""
        ...

    @property
    def joins_steps(self) -> bool:
        """Whether kernels run one after the other without anything in between."""
        ...

    def key(self, inputs: Sequence[Any]) -> Hashable:
        """What a call must share with an earlier one to take over its buffers."""
        ...

    def take(self, given: object, name: str) -> Any:
        """Any library's array as one of this memory. ``name`` is said in errors."""
        ...

    def giver(self, arrays: Sequence[object]) -> Callable[[Any], Any] | None:
        """The function that turns a result into the kind of array that came in; None where it is that already."""
        ...

    def bytes(self, size: int) -> Any:
        """Uninitialised bytes for all intermediates together."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An uninitialised array of its own."""
        ...

    def constant(self, content: np.ndarray) -> Any:
        """A constant of the graph; asked for again it is the same array."""
        ...

    def is_writeable(self, array: Any) -> bool:
        """Whether the array may be written."""
        ...

    def actions(self, program: Program, part: Segment, slots: Slots, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        """What runs the steps of a segment, watched where that was asked for. ``slots`` holds the frame's arrays."""
        ...

    def wait(self) -> None:
        """Returns when everything is done that was started so far."""
        ...


class HostMemory:
    """numpy arrays."""

    kind: type = np.ndarray

    def __init__(self, is_made_by_kernels: bool = True, joins_steps: bool = True) -> None:
        self.is_made_by_kernels: Final = is_made_by_kernels
        self.joins_steps: Final = joins_steps

    def key(self, inputs: Sequence[Any]) -> Hashable:
        """Shapes and data types."""
        return tuple([(array.shape, array.dtype) for array in inputs])

    def take(self, given: object, name: str) -> Any:
        """See :func:`graphkernel.runtime.inputs.arrays.to_numpy`."""
        return to_numpy(given, name)

    def giver(self, arrays: Sequence[object]) -> Callable[[Any], Any] | None:
        """See :func:`graphkernel.runtime.inputs.arrays.wrapper_for`."""
        return wrapper_for(arrays)

    def bytes(self, size: int) -> Any:
        """From a cache line on, large ones from a huge page on."""
        return aligned_bytes(size)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """The same."""
        return aligned_array(shape, dtype)

    def constant(self, content: np.ndarray) -> Any:
        """The content itself."""
        return content

    def is_writeable(self, array: Any) -> bool:
        """numpy's flag."""
        return array.flags.writeable

    def actions(self, program: Program, part: Segment, slots: Slots, actions: tuple[Action, ...]) -> tuple[Action, ...]:
        """The actions themselves."""
        return actions

    def wait(self) -> None:
        """Nothing: what was called is done."""


HOST = HostMemory()
