"""PTX text to nodes: what NVRTC and LLVM write for kernels, device functions in the place of their calls."""

from __future__ import annotations

from kernelgen.simulators.ptx.language.cursor import END, Cursor
from kernelgen.simulators.ptx.language.declarations import LINKING, SPACES, read_parameter, read_variable
from kernelgen.simulators.ptx.language.inline_calls import Function, without_calls
from kernelgen.simulators.ptx.language.kernel_body import BodyParser
from kernelgen.simulators.ptx.language.nodes import Kernel, Module, Variable
from kernelgen.simulators.ptx.language.tokens import tokens


def parse(text: str) -> Module:
    """The module of a PTX text. Raises PtxError with the line that cannot be read."""
    cursor = Cursor(tuple(tokens(text)))
    target, kernels, variables = "", list[Kernel](), list[Variable]()
    functions: dict[str, Function] = {}
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
                functions |= _function(cursor)
            case ".entry":
                kernels.append(_kernel(cursor))
            case text if text in LINKING:
                cursor.take()
            case text if text in SPACES:
                variables += read_variable(cursor)
            case text:
                raise cursor.error(f"{text!r} begins nothing that is known here")
    return Module(target, {kernel.name: without_calls(kernel, functions) for kernel in kernels}, tuple(variables))


def _function(cursor: Cursor) -> dict[str, Function]:
    """``.func (results) name (parameters) { ... }`` by its name; a declaration, which ends in a semicolon, gives none."""
    cursor.expect(".func")
    results = _parameters(cursor)
    name = cursor.take()
    parameters = _parameters(cursor)
    while cursor.token is not END and cursor.text not in (";", "{"):
        cursor.take()
    if cursor.accept(";"):
        return {}
    return {name: Function(_body(cursor, name, parameters), results)}


def _parameters(cursor: Cursor) -> tuple[Variable, ...]:
    """A list in parentheses; none where there is no list."""
    found = list[Variable]()
    if cursor.accept("("):
        while not cursor.accept(")"):
            found.append(read_parameter(cursor))
            cursor.accept(",")
    return tuple(found)


def _kernel(cursor: Cursor) -> Kernel:
    cursor.expect(".entry")
    name = cursor.take()
    parameters = _parameters(cursor)
    while cursor.text != "{":  # .maxntid and other launch bounds
        cursor.take()
    return _body(cursor, name, parameters)


def _body(cursor: Cursor, name: str, parameters: tuple[Variable, ...]) -> Kernel:
    body = BodyParser(cursor)
    body.block()
    return Kernel(
        name,
        parameters,
        body.registers,
        tuple(body.variables),
        tuple(body.instructions),
        body.labels,
        body.tables,
    )
