"""Moving code into a function of its own, which takes everything that is in scope as parameters.

Buffers arrive as ``noalias`` pointers: distinct buffers of a nest never overlap, and this is how LLVM learns it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kernelgen.targets.cpu.text.builder import Function
from kernelgen.targets.cpu.text.scope import Frame
from kernelgen.targets.cpu.text.values import Value

Slots = list[tuple[str, str]]


def captured(frame: Frame) -> Slots:
    """LLVM type and text of all that is in scope, in a fixed order: buffers, variables, bindings."""
    return [
        *(("ptr", memory.pointer) for memory in frame.memory.values()),
        *((value.type, value.text) for value in frame.variables.values()),
        *((value.type, value.text) for value in frame.bindings.values()),
    ]


def outlined(frame: Frame, name: str, more: tuple[str, ...], body: Callable[[Frame, tuple[Value, ...]], None]) -> str:
    """Prints ``body`` as an internal function, called ``name``, of what is in scope in ``frame`` and of ``more``
    64-bit integers; returns its name.
    """
    module = frame.function.module
    types = [type_ for type_, _ in captured(frame)]
    parameters = [f"{'ptr noalias' if t == 'ptr' else t} %p{i}" for i, t in enumerate(types)]
    parameters += [f"i64 %{extra}" for extra in more]
    unique = module.unique(name)
    function = Function(module, unique, ", ".join(parameters), "define internal void")
    inner = _renamed(frame, function, [f"%p{i}" for i in range(len(types))])
    body(inner, tuple(Value(function, f"%{extra}", "i64") for extra in more))
    if frame.streamed:
        function.perform(f"call void {module.declare('llvm.x86.sse.sfence', 'void', '')}()")
    function.finish()
    return f"@{unique}"


def _renamed(frame: Frame, function: Function, names: list[str]) -> Frame:
    remaining = iter(names)
    memory = {n: replace(m, pointer=next(remaining)) for n, m in frame.memory.items()}
    variables = {n: replace(v, function=function, text=next(remaining)) for n, v in frame.variables.items()}
    bindings = {n: replace(v, function=function, text=next(remaining)) for n, v in frame.bindings.items()}
    return replace(frame, function=function, memory=memory, variables=variables, bindings=bindings)
