"""What goes wrong before a kernel can run: text that cannot be read, IR that cannot be printed."""

from __future__ import annotations

from kernelgen.errors import KernelgenError


class AscendError(KernelgenError):
    """AscendC outside of the fixed subset, or a machine description that cannot be used. ``line`` is 0 for no text."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(f"AscendC line {line}: {message}" if line else message)
        self.line = line
