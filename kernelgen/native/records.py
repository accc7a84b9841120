"""Kernels as plain values that a file can hold, beside their machine code, and back."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from kernelgen.errors import ArgumentError, CodegenError
from kernelgen.native.call import NativeKernel
from kernelgen.native.code import Code
from kernelgen.native.entry import ENTRY, CpuEntry
from kernelgen.native.mapped import load_code
from kernelgen.native.signature import Argument, Signature
from kernelgen.native.team import Team
from kernelgen.native.wrapper import caller_of
from kernelgen.tensor.dims import Shape, parse_dim
from kernelgen.tensor.dtypes import dtype


class CodeRecord(NamedTuple):
    """Machine code in a larger piece of bytes: where it begins, how long it is, its digest, and the tables of :class:`Code`."""

    start: int
    size: int
    sha256: str
    constants: int
    variables: int
    exports: tuple[tuple[str, int], ...]
    imports: tuple[tuple[int, str], ...]
    pointers: tuple[tuple[int, int], ...]

    @staticmethod
    def of(code: Code, start: int) -> CodeRecord:
        """The record of code that begins there."""
        digest = hashlib.sha256(code.content).hexdigest()
        return CodeRecord(
            start, len(code.content), digest, code.constants, code.variables, code.exports, code.imports, code.pointers
        )

    def code(self, content: memoryview) -> Code:
        """The code in the larger piece. Raises CodegenError where it does not fit its digest."""
        own = bytes(content[self.start : self.start + self.size]) if min(self.start, self.size) >= 0 else b""
        if hashlib.sha256(own).hexdigest() != self.sha256:
            raise CodegenError("machine code is damaged: it does not fit its digest")
        return Code(own, self.constants, self.variables, self.exports, self.imports, self.pointers)


class TensorRecord(NamedTuple):
    """An array: its name, type and extents as texts; for machine code also whether it is written."""

    name: str
    dtype: str
    shape: tuple[str, ...]
    is_written: bool = False


class KernelRecord(NamedTuple):
    """How a kernel is called, see :class:`Signature`, and its code."""

    name: str
    inputs: tuple[TensorRecord, ...]
    outputs: tuple[TensorRecord, ...]
    updated_inputs: tuple[int, ...]
    arguments: tuple[TensorRecord, ...]
    sizes: tuple[str, ...]
    releases_lock: bool
    code: CodeRecord

    @staticmethod
    def of(kernel: NativeKernel, start: int) -> KernelRecord:
        """The record of a kernel whose code begins there. Raises ArgumentError for one that has none, see :func:`code_of`."""
        signature, entry = kernel.signature, entry_of(kernel)
        return KernelRecord(
            signature.name,
            tuple(TensorRecord(t.name, t.dtype.name, _texts(t.shape)) for t in signature.inputs),
            tuple(TensorRecord(t.name, t.dtype.name, _texts(t.shape)) for t in signature.outputs),
            signature.updated_inputs,
            tuple(TensorRecord(a.name, a.dtype.name, _texts(a.shape), a.is_written) for a in entry.arguments),
            entry.sizes,
            entry.releases_lock,
            CodeRecord.of(code_of(kernel), start),
        )

    def kernel(self, content: memoryview, caller: Code, team: Team | None, flags: tuple[str, ...]) -> NativeKernel:
        """The kernel, loaded. Raises CodegenError and ArgumentError for a record that is none."""
        signature = self._signature()
        code = self.code.code(content)
        library = load_code(code, {} if team is None else team.functions)
        if ENTRY not in library.addresses:
            raise CodegenError(f"kernel {self.name} has no code to call")
        entry = CpuEntry(
            self.name,
            signature.arguments,
            self.sizes,
            library,
            caller_of(caller),
            self.releases_lock,
            True,
            team,
            flags,
        )
        return NativeKernel(signature, entry)

    def _signature(self) -> Signature:
        try:
            inputs, outputs = (
                tuple(Argument(t.name, dtype(t.dtype), _shape(t.shape), False) for t in tensors)
                for tensors in (self.inputs, self.outputs)
            )
            arguments = tuple(Argument(a.name, dtype(a.dtype), _shape(a.shape), a.is_written) for a in self.arguments)
        except ValueError as error:
            raise ArgumentError(f"kernel {self.name}: {error}") from error
        if len(arguments) < len(inputs) + len(outputs) or not all(0 <= k < len(inputs) for k in self.updated_inputs):
            raise ArgumentError(f"kernel {self.name} takes other arrays than its code")
        return Signature(self.name, inputs, outputs, self.updated_inputs, arguments, self.sizes)


def entry_of(kernel: NativeKernel) -> CpuEntry:
    """The loaded machine code of a kernel. Raises ArgumentError for one of another target."""
    if not isinstance(kernel.entry, CpuEntry):
        raise ArgumentError(f"kernel {kernel.signature.name} is no machine code for a CPU")
    return kernel.entry


def code_of(kernel: NativeKernel) -> Code:
    """The machine code of a kernel. Raises ArgumentError where LLVM linked it, which gives it away no more."""
    code = entry_of(kernel).library.code
    if code is None:
        raise ArgumentError("machine code can be kept on x86-64 Linux alone")
    return code


def _texts(shape: Shape) -> tuple[str, ...]:
    return tuple(map(str, shape))


def _shape(texts: tuple[str, ...]) -> Shape:
    return tuple(int(text) if text.isdecimal() else parse_dim(text) for text in texts)
