"""PTX text to nodes: what NVRTC and LLVM write for kernels, device functions that were not inlined left out."""

from __future__ import annotations

from kernelgen.targets.gpu.ptx.body import BodyParser
from kernelgen.targets.gpu.ptx.cursor import END, Cursor
from kernelgen.targets.gpu.ptx.declarations import LINKING, SPACES, read_parameter, read_variable
from kernelgen.targets.gpu.ptx.nodes import Kernel, Module, Variable
from kernelgen.targets.gpu.ptx.tokens import tokens


def parse(text: str) -> Module:
    """The module of a PTX text. Raises PtxError with the line that cannot be read."""
    cursor = Cursor(tuple(tokens(text)))
    target, kernels, variables = "", list[Kernel](), list[Variable]()
    while cursor.token is not END:
        match cursor.text:
            case ".target":
                cursor.take()
                target = cursor.take()
                while cursor.accept(","):
                    cursor.take()
            case ".section":
                cursor.take()
                cursor.take()
                cursor.skip_braces()
            case ".func":
                _skip_function(cursor)
            case ".entry":
                kernels.append(_kernel(cursor))
            case text if text in LINKING:
                cursor.take()
            case text if text in SPACES:
                variables += read_variable(cursor)
            case text:
                raise cursor.error(f"{text!r} begins nothing that is known here")
    return Module(target, {kernel.name: kernel for kernel in kernels}, tuple(variables))


def _skip_function(cursor: Cursor) -> None:
    """A device function's declaration ends in a semicolon, its definition in a block."""
    while cursor.token is not END and cursor.text not in (";", "{"):
        cursor.take()
    if cursor.text == "{":
        cursor.skip_braces()
    else:
        cursor.take()


def _kernel(cursor: Cursor) -> Kernel:
    cursor.expect(".entry")
    name = cursor.take()
    parameters = list[Variable]()
    if cursor.accept("("):
        while not cursor.accept(")"):
            parameters.append(read_parameter(cursor))
            cursor.accept(",")
    while cursor.text != "{":  # .maxntid and other launch bounds
        cursor.take()
    body = BodyParser(cursor)
    body.block()
    return Kernel(
        name,
        tuple(parameters),
        body.registers,
        tuple(body.variables),
        tuple(body.instructions),
        body.labels,
        body.tables,
    )
