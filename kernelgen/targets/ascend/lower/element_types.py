"""Whether the machine has an instruction for the types of every call: a kernel that would stop when it runs is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelgen.ascendc.instructions import (
    Call,
    For,
    GlobalTensor,
    If,
    Kernel,
    LocalTensor,
    Statement,
    TensorRef,
)
from kernelgen.ascendc.intrinsics import ELEMENT, form_of
from kernelgen.errors import UnsupportedError
from kernelgen.machines.ascend.description import Machine
from kernelgen.tensor.dtypes import DType

OTHER = "U"
"""The type parameter of casts' sources and of Mmad's factors."""


def check_element_types(kernel: Kernel, machine: Machine) -> None:
    """Raises UnsupportedError for a call whose tensors are of types that the operation does not take on the machine."""
    _check(kernel.body, machine, {})


def _check(body: Sequence[Statement], machine: Machine, types: dict[str, DType]) -> None:
    for statement in body:
        match statement:
            case GlobalTensor(name, dtype) | LocalTensor(name, dtype):
                types[name] = dtype
            case For(body=inner):
                _check(inner, machine, types)
            case If(then=then, otherwise=otherwise):
                _check((*then, *otherwise), machine, types)
            case Call():
                _check_call(statement, machine, types)
            case _:
                pass


def _check_call(call: Call, machine: Machine, types: Mapping[str, DType]) -> None:
    found: dict[str, DType] = {}
    for slot, given in zip(form_of(call).slots, call.arguments, strict=True):
        if isinstance(given, TensorRef):
            dtype = types[given.tensor]
            if found.setdefault(slot.type, dtype) is not dtype:
                raise _refused(f"{call.operation} of {found[slot.type].name} and {dtype.name}", machine)
    if call.operation == "Cast":
        if (found[OTHER], found[ELEMENT]) not in machine.casts:
            raise _refused(f"Cast of {found[OTHER].name} to {found[ELEMENT].name}", machine)
        return
    computed = found.get(OTHER if call.operation == "Mmad" else ELEMENT)
    if computed and computed not in machine.operations.get(call.operation, ()):
        raise _refused(f"{call.operation} of {computed.name}", machine)


def _refused(what: str, machine: Machine) -> UnsupportedError:
    return UnsupportedError("unsupported-dtype", f"{what} on {machine.name}")
