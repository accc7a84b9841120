"""Where the tensors of a program lie, and the blocks of a launch between which its loops and branches differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kernelgen.ascendc.expressions import Expression
from kernelgen.ascendc.instructions import GlobalTensor, Statement
from kernelgen.ascendc.types import GM
from kernelgen.simulators.ascendc.core.scalars import BadScalar, Evaluate, Scope, evaluator
from kernelgen.targets.ascend.lower.program.loop_facts import (
    Decided,
    decided_by_block,
    mixed_buffers,
    sure_loops,
)
from kernelgen.targets.ascend.lower.program.writer import Tile

SAMPLE = (32771, 32779, 32783, 32789, 32797, 32801)
MOST_BLOCKS = 64
"""More than a machine has cores."""


@dataclass(frozen=True)
class Layout:
    """Where tensors lie: tiles by byte address, others in GM; ``mixed`` buffers count as one place.

    ``sure`` names the variables of loops that have a turn at least. ``exact`` are loops and branches that the block's
    index decides, ``blocks`` the indices between which they differ.
    """

    tiles: Mapping[str, Tile]
    addresses: Mapping[str, int]
    tensors: Mapping[str, GlobalTensor]
    fields: Mapping[str, int]
    mixed: frozenset[str] = frozenset()
    sure: frozenset[str] = frozenset()
    exact: frozenset[Decided] = frozenset()
    blocks: tuple[int, ...] = (0,)
    evaluators: dict[int, tuple[Expression, Evaluate]] = field(
        default_factory=dict[int, "tuple[Expression, Evaluate]"], compare=False
    )

    def evaluate(self, expression: Expression) -> Evaluate:
        """What gives the value of an expression, made once: a program asks for it in every turn."""
        kept = self.evaluators.get(id(expression))
        if kept is None:
            kept = self.evaluators[id(expression)] = expression, evaluator(expression)
        return kept[1]

    def memory_of(self, name: str) -> str:
        """The memory of a tensor."""
        return self.tiles[name].memory if name in self.tiles else GM


def layout_of(
    body: Sequence[Statement],
    tiles: Mapping[str, Tile],
    addresses: Mapping[str, int],
    tensors: Mapping[str, GlobalTensor],
    fields: Mapping[str, int],
) -> Layout:
    """The layout of a program's tensors; ``fields`` are sample values of the tiling struct."""
    deciding = decided_by_block(body)
    return Layout(
        tiles,
        addresses,
        tensors,
        fields,
        mixed_buffers(body, tuple(tensors)),
        sure_loops(body),
        frozenset(deciding),
        _blocks(deciding),
    )


def _blocks(deciding: Mapping[Decided, tuple[Expression, ...]]) -> tuple[int, ...]:
    """A block for each way in which blocks differ: turns beyond four count modulo 2."""
    found: dict[tuple[int, ...], int] = {}
    for block in range(MOST_BLOCKS):
        scope = Scope({"GetBlockIdx": block}, {}, data_is_unknown)
        way: list[int] = []
        for parts in deciding.values():
            values = [scope.integer(part) for part in parts]
            turns = values[0] if len(values) == 1 else max(0, -(-(values[1] - values[0]) // max(values[2], 1)))
            way.append(turns if turns <= 4 else 4 + turns % 2)
        found.setdefault(tuple(way), block)
    return tuple(found.values())


def data_is_unknown(tensor: str, index: int) -> int:
    """What data decides has no value. Raises BadScalar."""
    raise BadScalar(f"{tensor}[{index}] is data")
