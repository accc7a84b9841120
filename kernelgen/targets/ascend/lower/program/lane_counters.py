"""Lanes that count: 0, 1, 2, ... made once where the kernel starts, byte offsets at equal distances for Gather, tables.

The scalar unit writes the first block; each Adds doubles what is there: ``ramp[8:16] = ramp[0:8] + 8``, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelgen.ascendc.builder import Tensor, make_call
from kernelgen.ascendc.expressions import wrap
from kernelgen.ascendc.instructions import SetValue, Statement
from kernelgen.ascendc.types import BLOCK
from kernelgen.targets.ascend.lower.program.writer import Writer
from kernelgen.tensor.dtypes import INT32, UINT32


@dataclass
class Counting:
    """The tile of ``lanes`` numbers and what makes it; nothing where nobody asks."""

    writer: Writer
    lanes: int
    body: list[Statement] = field(default_factory=list[Statement])
    _ramp: Tensor | None = None
    _offsets: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    _pairs: dict[int, Tensor] = field(default_factory=dict[int, Tensor])
    _tables: dict[tuple[int, ...], Tensor] = field(default_factory=dict[tuple[int, ...], Tensor])

    @property
    def ramp(self) -> Tensor:
        """0, 1, 2, ..."""
        if self._ramp is None:
            self._ramp = self.writer.tile("ramp", INT32, self.lanes)
            self.body += self._counted(self._ramp)
        return self._ramp

    def _counted(self, ramp: Tensor) -> list[Statement]:
        first = BLOCK // INT32.itemsize
        body: list[Statement] = [SetValue(ramp.name, wrap(k), wrap(k)) for k in range(first)]
        while first < self.lanes:
            count = min(first, self.lanes - first)
            body.append(make_call("Adds", dst=ramp[first], src=ramp, scalar=first, count=count))
            first += count
        return body

    def offsets(self, step: int = BLOCK) -> Tensor:
        """0, step, 2 step, ...: where each block begins, in bytes."""
        if step not in self._offsets:
            ramp = self.ramp
            tile = self.writer.tile("offsets", INT32, self.lanes)
            self.body.append(make_call("Muls", dst=tile, src=ramp, scalar=step, count=self.lanes))
            self._offsets[step] = self.writer.alias(tile, UINT32)
        return self._offsets[step]

    def pairs(self, lanes: int) -> Tensor:
        """0, n, 4, n + 4, 8, ...: where one word behind ``lanes`` others goes with each of these, in bytes."""
        if lanes not in self._pairs:
            ramp, size = self.ramp, INT32.itemsize
            half, odd = (self.writer.tile("pairs", INT32, self.lanes) for _ in range(2))
            self.body += [
                make_call("ShiftRight", dst=half, src=ramp, scalar=1, count=self.lanes),
                make_call("Muls", dst=odd, src=half, scalar=-2, count=self.lanes),
                make_call("Add", dst=odd, first=odd, second=ramp, count=self.lanes),
                make_call("Muls", dst=odd, src=odd, scalar=lanes * size, count=self.lanes),
                make_call("Muls", dst=half, src=half, scalar=size, count=self.lanes),
                make_call("Add", dst=half, first=half, second=odd, count=self.lanes),
            ]
            self._pairs[lanes] = self.writer.alias(half, UINT32)
        return self._pairs[lanes]

    def table(self, numbers: Sequence[int]) -> Tensor:
        """Known numbers, of 32 bits with their signs."""
        key = tuple(numbers)
        if key not in self._tables:
            tile = self.writer.tile("table", INT32, len(key), primed=True)
            self.body += [SetValue(tile.name, wrap(k), wrap(number)) for k, number in enumerate(key)]
            self._tables[key] = tile
        return self._tables[key]
