"""Kernel: a compiled description, called with arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from kernelgen.desc import KernelDesc, TensorDesc
from kernelgen.desc_bind import bind
from kernelgen.dims import evaluate
from kernelgen.errors import ArgumentError
from kernelgen.nest.nodes import Nest, Space
from kernelgen.poly.proof import Proof
from kernelgen.stages import Lowered
from kernelgen.targets.base import Entry


@dataclass(frozen=True)
class Resources:
    """What a kernel takes: compilation in milliseconds by stage, bytes of arguments and workspaces (None if symbolic)."""

    milliseconds: Mapping[str, float]
    argument_bytes: int | None
    workspace_bytes: int | None

    @property
    def compile_ms(self) -> float:
        """All stages together."""
        return sum(self.milliseconds.values())


@dataclass(frozen=True, eq=False)
class Kernel:
    """``kernel(*inputs, out=None) -> tuple of outputs``: numpy arrays in the order of the description.

    Inputs that the description assigns to (``desc.updated_inputs``) are changed in place. ``out`` gives the output
    arrays, which must not overlap inputs. ``source`` is the target's text, ``proof`` the certificate, ``stages`` the
    text of every stage by name.
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
    def cached(self) -> bool:
        """Whether the machine code came from the cache on disk."""
        return bool(getattr(self.entry, "from_disk", False))

    @property
    def proof(self) -> Proof:
        """What was proved about the schedule: legality, bounds, parallel and vector loops."""
        return self.lowered.proof

    @cached_property
    def stages(self) -> Mapping[str, str]:
        """Stage name -> text, in order; ends with the source."""
        return {name: text() for name, text in self.lowered.trail.texts.items() if name != "load"}

    def __call__(self, *inputs: Any, out: Sequence[Any] | None = None) -> tuple[np.ndarray, ...]:
        """Runs the kernel. Raises ArgumentError when an array does not fit the description."""
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
        if len(inputs) != len(self.desc.inputs):
            raise ArgumentError(f"{self.desc.name} takes {len(self.desc.inputs)} arrays, {len(inputs)} were given")
        symbols = bind(self.desc, [np.shape(array) for array in inputs])
        arrays = [self.input(k, array, symbols) for k, array in enumerate(inputs)]
        outputs = self.outputs(out, symbols)
        values = tuple(symbols[name] for name in self.nest.symbols)
        self.entry((*map(_as_real, arrays), *map(_as_real, outputs), *self.workspaces(symbols)), values)
        return tuple(outputs)

    @cached_property
    def _direct(self) -> Callable[..., None] | None:
        """The target's own call, which checks its arguments itself; None when the kernel needs workspaces."""
        needs_workspace = any(buffer.space is Space.WORKSPACE for buffer in self.nest.buffers)
        return None if needs_workspace else getattr(self.entry, "fast", None)

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
        """A row-major array of the declared dtype; arrays that are updated in place must be so already."""
        tensor = self.desc.inputs[position]
        given = np.asarray(array)
        if given.dtype != tensor.dtype.numpy:
            raise ArgumentError(f"{tensor.name} has dtype {given.dtype}, expected {tensor.dtype.name}")
        if position in self.desc.updated_inputs:
            if not (given is array and given.flags.c_contiguous and given.flags.writeable):
                raise ArgumentError(f"{tensor.name} is updated in place: give a writeable, C-contiguous numpy array")
            return given
        return np.ascontiguousarray(given).reshape(_shape(tensor, symbols))

    def outputs(self, out: Sequence[Any] | None, symbols: Mapping[str, int]) -> list[np.ndarray]:
        """The arrays to write: those given, checked, or new ones."""
        if out is None:
            return [np.empty(_shape(tensor, symbols), tensor.dtype.numpy) for tensor in self.desc.outputs]
        if isinstance(out, np.ndarray):
            raise ArgumentError("out= takes a tuple of arrays, one for each output: out=(array,)")
        if len(out) != len(self.desc.outputs):
            raise ArgumentError(f"{self.desc.name} has {len(self.desc.outputs)} outputs, out= holds {len(out)}")
        for tensor, array in zip(self.desc.outputs, out, strict=True):
            fits = isinstance(array, np.ndarray) and array.flags.c_contiguous and array.flags.writeable
            if not fits or array.shape != _shape(tensor, symbols) or array.dtype != tensor.dtype.numpy:
                raise ArgumentError(
                    f"out for {tensor.name} must be a writeable, C-contiguous {tensor.dtype.name} array "
                    f"of shape {list(tensor.shape)}"
                )
        return list(out)

    def workspaces(self, symbols: Mapping[str, int]) -> list[np.ndarray]:
        """Scratch arrays for temporaries that do not fit a stack."""
        wanted = (b for b in self.nest.buffers if b.space is Space.WORKSPACE)
        return [np.empty([evaluate(dim, symbols) for dim in b.shape], b.dtype.numpy) for b in wanted]


def _shape(tensor: TensorDesc, symbols: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(dim, symbols) for dim in tensor.shape)


def _as_real(array: np.ndarray) -> np.ndarray:
    """A complex array as its real and imaginary parts, which is how the nest addresses it: a view."""
    if array.dtype.kind != "c":
        return array
    return array.reshape(-1).view(f"f{array.itemsize // 2}").reshape(*array.shape, 2)
