"""Kernels as lists that JSON can hold, beside their machine code, and back."""

from __future__ import annotations

from collections.abc import Iterable

from kernelgen.errors import ArgumentError, CodegenError
from kernelgen.native.call import NativeKernel
from kernelgen.native.code import Code
from kernelgen.native.entry import ENTRY, CpuEntry
from kernelgen.native.library import Library
from kernelgen.native.mapped import load_code
from kernelgen.native.signature import Argument, Described, Signature
from kernelgen.native.team import Team
from kernelgen.system.json_parts import Items, flag, items, text, texts, whole, wholes
from kernelgen.tensor.types import TensorType, parse_type


def code_items(code: Code, start: int) -> Items:
    """Code that begins at ``start`` of a larger piece of bytes: its size, and the tables of :class:`Code`."""
    return [start, len(code.content), *code[1:]]


def read_code(given: object, content: memoryview) -> Code:
    """The code in the larger piece. Raises ValueError for a list that is none."""
    start, size, constants, variables, exports, imports, pointers = items(given)
    return Code(
        bytes(content[whole(start) : start + whole(size)]), whole(constants), whole(variables),
        tuple((text(name), whole(offset)) for name, offset in items(exports)),
        tuple((whole(cell), text(name)) for cell, name in items(imports)),
        tuple((whole(cell), whole(offset)) for cell, offset in items(pointers)),
    )  # fmt: skip


def kernel_items(kernel: NativeKernel, start: int) -> Items:
    """How a kernel is called, and its code, which begins there.

    Raises ArgumentError for a kernel that has none, see :func:`code_of`.
    """
    signature, entry = kernel.signature, entry_of(kernel)
    return [
        signature.name, _described(signature.inputs), _described(signature.outputs), signature.updated_inputs,
        [[*_tensor_items(argument), argument.is_written] for argument in entry.arguments],
        entry.sizes, entry.releases_lock, code_items(code_of(kernel), start),
    ]  # fmt: skip


def read_kernel(
    given: object, content: memoryview, caller: Library, team: Team | None, flags: tuple[str, ...]
) -> NativeKernel:
    """The kernel, loaded, which is called through ``caller``. Raises CodegenError, ArgumentError and ValueError for a list
    that is none.
    """
    name, inputs, outputs, updated, arguments, sizes, releases_lock, code = items(given)
    signature = Signature(
        text(name), _arguments(inputs), _arguments(outputs), wholes(updated), _arguments(arguments), texts(sizes)
    )
    ends = len(signature.inputs) + len(signature.outputs)
    if len(signature.arguments) < ends or any(k >= len(signature.inputs) for k in signature.updated_inputs):
        raise ArgumentError(f"kernel {name} takes other arrays than its code")
    library = load_code(read_code(code, content), {} if team is None else team.functions)
    if ENTRY not in library.addresses:
        raise CodegenError(f"kernel {name} has no code to call")
    lock = flag(releases_lock)
    entry = CpuEntry(name, signature.arguments, signature.sizes, library, caller, lock, True, team, flags)
    return NativeKernel(signature, entry)


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


def _described(tensors: Iterable[Described]) -> Items:
    return [_tensor_items(tensor) for tensor in tensors]


def _tensor_items(tensor: Described) -> Items:
    return [tensor.name, str(TensorType(tensor.shape, tensor.dtype))]


def _arguments(given: object) -> tuple[Argument, ...]:
    return tuple(map(_argument, items(given)))


def _argument(given: object) -> Argument:
    name, of, *is_written = items(given)
    type_ = parse_type(text(of))
    return Argument(text(name), type_.dtype, type_.shape, bool(is_written) and flag(*is_written))
