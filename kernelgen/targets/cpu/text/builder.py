"""Text of LLVM functions: fresh names, blocks, stack slots, declarations. Knows syntax, no meaning."""

from __future__ import annotations

import re

from kernelgen.targets.cpu.text.host import Host


class Module:
    """One LLVM module: functions in the order they were finished, declarations sorted by name."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._declarations: dict[str, str] = {}
        self._functions: list[str] = []
        self._names: dict[str, int] = {}

    def declare(self, name: str, result: str, parameters: str) -> str:
        """Declares the external function ``name`` once, with the LLVM types of its ``result`` and ``parameters``;
        returns ``name`` with its sigil.
        """
        self._declarations[name] = f"declare {result} @{name}({parameters})"
        return f"@{name}"

    def add(self, function: str) -> None:
        """Appends the text of a finished function."""
        self._functions.append(function)

    def unique(self, name: str) -> str:
        """``name``, or ``name.N`` when it was asked for before."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return f"{name}.{count}" if count else name

    def text(self) -> str:
        """The module as LLVM assembly."""
        declarations = [self._declarations[name] for name in sorted(self._declarations)]
        return "\n\n".join([*self._functions, "\n".join(declarations), "!0 = !{i32 1}"]) + "\n"


class Function:
    """One LLVM function under construction; instructions go to the current block."""

    def __init__(self, module: Module, name: str, parameters: str, header: str = "define void") -> None:
        self.module = module
        self.name = name
        self.block = "entry"
        self._header = f"{header} @{name}({parameters})"
        self._slots: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._labels = 0

    def assign(self, instruction: str, hint: str = "") -> str:
        """Appends ``%name = instruction`` and returns the name."""
        self._count += 1
        name = f"%{_clean(hint)}.{self._count}" if hint else f"%t{self._count}"
        self._lines.append(f"  {name} = {instruction}")
        return name

    def perform(self, instruction: str) -> None:
        """Appends an instruction without a result."""
        self._lines.append(f"  {instruction}")

    def slot(self, llvm_type: str, hint: str = "slot", align: int = 64) -> str:
        """A stack slot of ``llvm_type``, aligned to ``align`` bytes, allocated once at function entry; ``hint`` is
        part of its name.
        """
        name = f"%{_clean(hint)}.slot{len(self._slots)}"
        self._slots.append(f"  {name} = alloca {llvm_type}, align {align}")
        return name

    def label(self, hint: str) -> str:
        """A fresh block label."""
        self._labels += 1
        return f"{_clean(hint)}.{self._labels}"

    def begin(self, label: str) -> None:
        """Starts the block of that label; the current one must have been closed."""
        self._lines.append(f"{label}:")
        self.block = label

    def jump(self, label: str) -> None:
        """Closes the block with a jump."""
        self.perform(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str) -> None:
        """Closes the block with a branch on ``condition`` to the label ``yes`` or to ``no``."""
        self.perform(f"br i1 {condition}, label %{yes}, label %{no}")

    def finish(self) -> None:
        """Returns void and hands the text to the module."""
        self.perform("ret void")
        body = "\n".join(["entry:", *self._slots, *self._lines])
        self.module.add(f"{self._header} {{\n{body}\n}}")


def _clean(hint: str) -> str:
    return re.sub(r"\W", "_", hint, flags=re.ASCII)
