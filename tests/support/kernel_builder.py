"""Kernels in AscendC that tests write by hand: ``emit("Add", dst=z, first=x, second=y, count=64)``, loops as ``with`` blocks.

What C++ does not convert by itself is converted when the kernel is complete (:mod:`kernelgen.ascendc.conversions`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from kernelgen.ascendc.builder import Given, Tensor, make_call
from kernelgen.ascendc.conversions import converted
from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.expressions import Expression, Field, Name, Scalar, wrap
from kernelgen.ascendc.instructions import (
    AIV_ONLY,
    For,
    GlobalTensor,
    If,
    Kernel,
    Let,
    LocalTensor,
    MaskBits,
    SetValue,
    Statement,
    Tiling,
)
from kernelgen.ascendc.types import POSITION_OF, UB
from kernelgen.tensor.dtypes import DType


class KernelBuilder:
    """A kernel that grows statement by statement; ``build`` gives the frozen value."""

    def __init__(self, name: str, parameters: Sequence[str], tiling: Sequence[str] = (), kind: str = AIV_ONLY) -> None:
        self._name = name
        self._parameters = tuple(parameters)
        self._tiling = Tiling(f"{name}_tiling", "tiling", tuple(tiling)) if tiling else None
        self._kind = kind
        self._blocks: list[list[Statement]] = [[]]
        self.emit("InitSocState")

    def field(self, name: str) -> Expression:
        """A field of the tiling struct. Raises AscendError for a name that it has not."""
        if self._tiling is None or name not in self._tiling.fields:
            raise AscendError(f"the tiling struct has no field {name!r}")
        return Field(self._tiling.name, name)

    def add(self, statement: Statement) -> None:
        """Appends a statement."""
        self._blocks[-1].append(statement)

    def global_tensor(self, name: str, dtype: DType, parameter: str, size: Scalar) -> Tensor:
        """``size`` elements in GM at a parameter of the kernel."""
        self.add(GlobalTensor(name, dtype, parameter, wrap(size)))
        return Tensor(name, dtype)

    def local_tensor(self, name: str, dtype: DType, address: Scalar, size: Scalar, memory: str = UB) -> Tensor:
        """``size`` elements in a memory of the core, from a byte address on."""
        self.add(LocalTensor(name, dtype, POSITION_OF[memory], wrap(address), wrap(size)))
        return Tensor(name, dtype)

    def mask_bits(self, name: str, low: int, high: int = 0) -> Expression:
        """A mask with a bit for each lane, to be given as ``mask=``."""
        self.add(MaskBits(name, low, high))
        return Name(name)

    def let(self, name: str, dtype: DType, value: Scalar) -> Expression:
        """A scalar with a name."""
        self.add(Let(name, dtype, wrap(value)))
        return Name(name)

    def set_value(self, tensor: Tensor, index: Scalar, value: Scalar) -> None:
        """The scalar unit writes one element."""
        self.add(SetValue(tensor.name, wrap(index), wrap(value)))

    def emit(self, operation: str, template: Sequence[str] = (), **arguments: Given) -> None:
        """Appends a call with its arguments by name (:func:`make_call`)."""
        self.add(make_call(operation, template, **arguments))

    def set_flag(self, source: str, target: str, event: Scalar) -> None:
        """What ``source`` did so far is done before ``target`` goes past the wait for the same event."""
        self.emit("SetFlag", (f"HardEvent::{source}_{target}",), id=event)

    def wait_flag(self, source: str, target: str, event: Scalar) -> None:
        """``target`` waits until ``source`` has set the event, and clears it."""
        self.emit("WaitFlag", (f"HardEvent::{source}_{target}",), id=event)

    def barrier(self, pipe: str) -> None:
        """What the pipe did so far is done before it goes on; ``ALL`` is for all pipes."""
        self.emit("PipeBarrier", (f"PIPE_{pipe}",))

    @contextmanager
    def loop(self, variable: str, start: Scalar, stop: Scalar, step: Scalar = 1) -> Generator[Expression]:
        """A loop around what is added inside; gives its variable."""
        self._blocks.append([])
        yield Name(variable)
        body = tuple(self._blocks.pop())
        self.add(For(variable, wrap(start), wrap(stop), wrap(step), body))

    @contextmanager
    def when(self, condition: Expression) -> Generator[None]:
        """A branch around what is added inside."""
        self._blocks.append([])
        yield
        self.add(If(condition, tuple(self._blocks.pop())))

    @contextmanager
    def otherwise(self) -> Generator[None]:
        """The other branch of the ``when`` that was closed last. Raises AscendError where none was."""
        branch = self._blocks[-1].pop()
        if not isinstance(branch, If):
            raise AscendError("otherwise follows no when")
        self._blocks.append([])
        yield
        self.add(If(branch.condition, branch.then, tuple(self._blocks.pop())))

    def build(self) -> Kernel:
        """The kernel, with the barrier for all pipes that a kernel without TPipe must end with."""
        self.barrier("ALL")
        return converted(Kernel(self._name, self._parameters, self._tiling, self._kind, tuple(self._blocks[0])))
