"""Lanes that count: 0, 1, 2, ... made once where the kernel starts, and byte offsets of blocks for Gather.

The scalar unit writes the first block; each Adds doubles what is there: ``ramp[8:16] = ramp[0:8] + 8``, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelgen.dtypes import INT32, UINT32
from kernelgen.targets.ascend.build import Tensor, make_call
from kernelgen.targets.ascend.expressions import wrap
from kernelgen.targets.ascend.instructions import SetValue, Statement
from kernelgen.targets.ascend.lower.writer import Writer
from kernelgen.targets.ascend.types import BLOCK


@dataclass
class Counting:
    """The tile of ``lanes`` numbers and what makes it."""

    writer: Writer
    lanes: int
    body: list[Statement] = field(default_factory=list[Statement])
    _offsets: Tensor | None = None

    def __post_init__(self) -> None:
        self.ramp = self.writer.tile("ramp", INT32, self.lanes)
        first = BLOCK // INT32.itemsize
        self.body += [SetValue(self.ramp.name, wrap(k), wrap(k)) for k in range(first)]
        while first < self.lanes:
            count = min(first, self.lanes - first)
            self.body.append(make_call("Adds", dst=self.ramp[first], src=self.ramp, scalar=first, count=count))
            first += count

    def offsets(self) -> Tensor:
        """Where each block begins, in bytes."""
        if self._offsets is None:
            tile = self.writer.tile("offsets", INT32, self.lanes)
            self.body.append(make_call("Muls", dst=tile, src=self.ramp, scalar=BLOCK, count=self.lanes))
            self._offsets = self.writer.alias(tile, UINT32)
        return self._offsets
