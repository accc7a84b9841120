"""Machine code that runs wherever it lies: what an object becomes when all that can be linked before it is loaded is linked."""

from __future__ import annotations

from kernelgen.errors import CodegenError
from kernelgen.system.named_tuples import NamedTuple

PAGE = 4096
"""Bytes; memory is protected by pages, so constants and variables begin at a multiple."""

CELL = 8
"""Bytes of an address."""


class Code(NamedTuple):
    """Bytes to copy anywhere: code, constants from offset ``constants`` on, variables from ``variables`` on.

    ``exports`` are functions and variables with their offsets. ``imports`` are cells among the constants that take the
    address of a function of the process, ``pointers`` cells that take the address of an offset.
    """

    content: bytes
    constants: int
    variables: int
    exports: tuple[tuple[str, int], ...] = ()
    imports: tuple[tuple[int, str], ...] = ()
    pointers: tuple[tuple[int, int], ...] = ()

    def checked(self) -> Code:
        """The code itself. Raises CodegenError for offsets that do not fit."""
        size = len(self.content)
        starts = (self.constants, self.variables, size)
        if any(start % PAGE for start in starts) or not 0 <= self.constants <= self.variables <= size:
            raise CodegenError("machine code whose parts do not begin at pages")
        if not all(0 <= offset < size for _, offset in (*self.exports, *self.pointers)):
            raise CodegenError("machine code with names beyond its end")
        if not all(self.constants <= cell <= size - CELL for cell, _ in (*self.imports, *self.pointers)):
            raise CodegenError("machine code with addresses beyond its constants")
        return self
