"""A nest as the text of one LLVM module with the entry ``void kernel(ptr arguments, ptr symbols)``.

``arguments`` is an array of the buffers' addresses, ``symbols`` one of 64-bit sizes, both in the nest's order.
"""

from __future__ import annotations

from dataclasses import replace

from kernelgen.native.entry import ENTRY
from kernelgen.nest.nodes import Nest
from kernelgen.plan import CodePlan
from kernelgen.system.identifiers import comment
from kernelgen.targets.cpu.loops.code_plan import choose, with_choices
from kernelgen.targets.cpu.loops.loops import block
from kernelgen.targets.cpu.loops.streaming import IS_LARGE, streaming_conditions
from kernelgen.targets.cpu.text.builder import Function, Module
from kernelgen.targets.cpu.text.formats import register_kind
from kernelgen.targets.cpu.text.host import Host
from kernelgen.targets.cpu.text.indices import condition_value
from kernelgen.targets.cpu.text.outline_function import captured, outlined
from kernelgen.targets.cpu.text.scope import Frame, Memory
from kernelgen.targets.cpu.text.values import Value


def emit_for(nest: Nest, host: Host, code: CodePlan | None = None) -> str:
    """The module for a processor, printed as ``code`` says, else as is chosen for it.

    Raises UnsupportedError when a data type has no arithmetic here, ArgumentError when ``code`` does not fit the nest.
    """
    code = choose(nest, host) if code is None else code
    nest = with_choices(nest, code, host)
    for buffer in nest.buffers:
        register_kind(buffer.dtype)
    module = Module(host)
    function = Function(module, module.unique(ENTRY), "ptr %arguments, ptr %symbols")
    memory = {
        buffer.name: Memory(buffer, _load(function, "ptr", "%arguments", number))
        for number, buffer in enumerate(nest.buffers)
    }
    sizes = {
        name: Value(function, _load(function, "i64", "%symbols", number), "i64")
        for number, name in enumerate(nest.symbols)
    }
    frame = _with_streaming(
        Frame(function, sizes, {}, memory, nonnegative=frozenset(nest.symbols)), nest, code.streamed
    )
    body = outlined(frame, "body", (), lambda inner, _: block(inner, nest.body))
    function.perform(f"call void {body}({', '.join(f'{type_} {text}' for type_, text in captured(frame))})")
    function.finish()
    return f"; {comment(nest.name)}\n{module.text()}"


def _with_streaming(frame: Frame, nest: Nest, streamed: str | None) -> Frame:
    """The frame that knows which output goes past the caches, and where sizes decide it, whether these sizes say so."""
    if streamed is None:
        return frame
    frame = replace(frame, streamed=streamed)
    conditions = streaming_conditions(nest, streamed)
    if not conditions:
        return frame
    return frame.with_variable(IS_LARGE, condition_value(frame, conditions).convert("zext", "i64"), True)


def _load(function: Function, type_: str, array: str, number: int) -> str:
    address = function.assign(f"getelementptr i64, ptr {array}, i64 {number}")
    return function.assign(f"load {type_}, ptr {address}")
