"""What an owner of a card takes home of a kernel: its text, its kernel_meta JSON, and the script that compiles and runs it.

    NAME.cpp    AscendC                        NAME.json    how to launch it, in MindSpore's form
    launch.py   compiles with the toolkit, runs on the card, compares (:mod:`launch_on_card`)

No binary can be made without the vendor's compiler: ``sha256``, which MindSpore's loader compares with NAME.o, stays empty
until the script has made that file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kernelgen.ascendc.expressions import Number
from kernelgen.ascendc.instructions import AIC_ONLY, AIV_ONLY, Call, For, If, Kernel, LocalTensor, Statement
from kernelgen.ascendc.reader import read_kernel
from kernelgen.ascendc.types import POSITIONS, UB
from kernelgen.machines.ascend.description import Machine
from kernelgen.nest.nodes import Alloc, Buffer, Nest, Space
from kernelgen.nest.walk import statements
from kernelgen.targets.ascend.lower.launch import blocks_of, copies_of_locals
from kernelgen.targets.ascend.lower.program.scope import local_size, parameter_of
from kernelgen.targets.ascend.package import launch_on_card
from kernelgen.tensor.dims import Dim, Sym, product

SCRIPT = "launch.py"
UNKNOWN = -1
"""Bytes of a workspace whose size depends on symbols."""

CORE_TYPES: Mapping[str, tuple[str, str]] = {
    AIV_ONLY: ("VectorCore", "RT_DEV_BINARY_MAGIC_ELF_AIVEC"),
    AIC_ONLY: ("AiCore", "RT_DEV_BINARY_MAGIC_ELF_AICUBE"),
}
"""Kind of a kernel -> core type and magic name where cores are split; all others run on whole cores."""
WHOLE_CORES = ("AiCore", "RT_DEV_BINARY_MAGIC_ELF")
BOTH_CORES = ("MIX", "RT_DEV_BINARY_MAGIC_ELF")
ROLES = {Space.INPUT: "input", Space.OUTPUT: "output", Space.INOUT: "updated"}


def kernel_files(source: str, nest: Nest, machine: Machine) -> Mapping[str, str]:
    """File name -> text of a kernel for ``machine``: ``source``, its kernel_meta JSON, the launch script. ``nest``
    gives the arguments.
    """
    meta = kernel_meta(source, nest, machine)
    script = Path(launch_on_card.__file__).read_text(encoding="utf-8")
    name = meta["binFileName"]
    return {f"{name}.cpp": source, f"{name}.json": json.dumps(meta, indent=1) + "\n", SCRIPT: script}


def kernel_meta(source: str, nest: Nest, machine: Machine) -> dict[str, Any]:
    """The kernel_meta document of a kernel's text: MindSpore's keys first, then what the launch script needs to know.

    ``opParaSize`` is the bytes of the tiling struct. ``blockDim`` of a kernel for all sizes is the machine's cores: blocks
    without work end at once. A workspace whose size depends on symbols has the size -1 and its formula in ``arguments``.
    """
    kernel = read_kernel(source)
    most = machine.cores if kernel.kind == AIV_ONLY else machine.cube_cores
    blocks = most if nest.symbols else blocks_of(nest, machine, {})
    core_type, magic = _core_type(kernel, machine)
    meets = any(isinstance(s, Call) and s.operation.startswith("CrossCore") for s in flat(kernel.body))
    arguments = list(_arguments(nest, kernel, blocks))
    spaces = [a["bytes"] for a in arguments if a["role"] == "workspace"]
    document: dict[str, Any] = {
        "binFileName": kernel.name,
        "binFileSuffix": ".o",
        "blockDim": blocks,
        "kernelName": kernel.name,
        "magic": magic,
        "sha256": "",
        "coreType": core_type,
        "intercoreSync": int(meets or core_type == "MIX"),
        "opParaSize": 4 * len(nest.symbols),
    }
    if core_type == "MIX":
        document["taskRation"] = "1:2"
    if spaces:
        sizes = [size if isinstance(size, int) else UNKNOWN for size in spaces]
        document["workspace"] = {"num": len(sizes), "size": sizes}
    tiling = kernel.tiling
    return document | {
        "sourceFileName": f"{kernel.name}.cpp",
        "sourceSha256": hashlib.sha256(source.encode()).hexdigest(),
        "machine": machine.name,
        "npuArch": f"dav-{machine.architecture}",
        "ubBytes": unified_buffer(kernel),
        "arguments": arguments,
        "tiling": {"struct": tiling.type_name if tiling else "", "fields": list(tiling.fields) if tiling else []},
    }


def unified_buffer(kernel: Kernel) -> int:
    """Bytes of the unified buffer up to the end of the last tensor in it."""
    ends = [0]
    for statement in flat(kernel.body):
        if isinstance(statement, LocalTensor) and POSITIONS[statement.position] == UB:
            address, size = statement.address, statement.size
            if isinstance(address, Number) and isinstance(size, Number):
                ends.append(int(address.value) + int(size.value) * statement.dtype.itemsize)
    return max(ends)


def flat(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements, those inside of loops and branches too."""
    for statement in body:
        yield statement
        match statement:
            case For(body=inner):
                yield from flat(inner)
            case If(then=then, otherwise=otherwise):
                yield from flat(then)
                yield from flat(otherwise)
            case _:
                pass


def _core_type(kernel: Kernel, machine: Machine) -> tuple[str, str]:
    if not machine.split_cores:
        return WHOLE_CORES
    return CORE_TYPES.get(kernel.kind, BOTH_CORES)


def _arguments(nest: Nest, kernel: Kernel, blocks: int) -> Iterator[dict[str, Any]]:
    """The kernel's parameters in order, with the shapes that callers know; neither input nor output: memory of its own."""
    own = {parameter_of(b): (b, 1) for b in nest.buffers}
    for part in statements(nest.body):
        if isinstance(part, Alloc):
            own.setdefault(parameter_of(part.buffer), (part.buffer, copies_of_locals(kernel, blocks)))
    given = {parameter_of(b): shape for b, shape in zip(nest.buffers, nest.argument_shapes, strict=False)}
    for parameter in kernel.parameters:
        buffer, copies = own[parameter]
        yield {
            "name": parameter,
            "role": ROLES.get(buffer.space, "workspace"),
            "dtype": buffer.dtype.name,
            "shape": [_plain(dim) for dim in given.get(parameter, buffer.shape)],
            "bytes": _plain(_elements(buffer) * copies * buffer.dtype.itemsize),
        }


def _elements(buffer: Buffer) -> Dim:
    return local_size(buffer) if buffer.space is Space.LOCAL else product(buffer.shape)


def _plain(dim: Dim) -> int | str:
    """A size as JSON: a number, or a polynomial over the fields of the tiling struct."""
    return str(dim) if isinstance(dim, Sym) else dim
