"""What the interpreter raises for PTX that it cannot read or does not know."""

from __future__ import annotations

from kernelgen.errors import KernelgenError


class PtxError(KernelgenError):
    """The PTX text is malformed, or uses what the interpreter does not implement; ``line`` is its line in the text."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"PTX line {line}: {message}" if line else message)
        self.line = line
