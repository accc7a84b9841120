"""How much a turn does: the longest one whose tiles fit, short enough that turns of one core overlap.

65536 lanes a core, tiles for 8192 twice:     8 turns of 8192
8192 lanes a core                             4 turns of 2048: while one computes, the next is loaded, the last stored
1024 lanes a core                             1 turn, no second copy of its tiles
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernelgen.ascendc.expressions import BLOCK_COUNT, Number
from kernelgen.ascendc.instructions import SELECT, Call, For, If, Statement
from kernelgen.ascendc.types import UB
from kernelgen.errors import UnsupportedError
from kernelgen.machines.ascend.description import Machine
from kernelgen.nest.nodes import Alloc, Nest
from kernelgen.nest.walk import statements
from kernelgen.targets.ascend.lower.program import storage
from kernelgen.targets.ascend.lower.program.block_copies import copy_whole_blocks
from kernelgen.targets.ascend.lower.program.copy_order import order_copies
from kernelgen.targets.ascend.lower.program.dead_tiles import without_unread
from kernelgen.targets.ascend.lower.program.double_buffer import double_buffer
from kernelgen.targets.ascend.lower.program.loop_facts import turns_of
from kernelgen.targets.ascend.lower.program.redundant_copies import without_idle
from kernelgen.targets.ascend.lower.program.scope import Unaligned, local_size
from kernelgen.targets.ascend.lower.program.writer import Program
from kernelgen.targets.ascend.lower.promote_tiles import promote

TURNS = (8192, 4096, 2048, 1024, 512, 256, 128)
"""Lanes of a turn that are tried: 8192 of float32 are copies of 32 KB, twice what reaches the full bandwidth."""
LEAST_DOUBLED = 1024
"""Lanes below which one long turn is better than two short ones that overlap."""
SHORT, ENOUGH = 2048, 4
"""A core has so many turns at least where they are longer than ``SHORT``: the first load and the last store overlap nothing."""
MANY = 1 << 20
"""Turns of a loop where sizes decide."""


def fitted(nest: Nest, machine: Machine, doubled: bool, levels: tuple[str, ...]) -> tuple[Program, storage.Layout]:
    """The program of a ``nest`` on ``machine`` with the largest turn that fits, and where its tiles lie.

    If ``doubled``, with two copies of what is copied where they fit too; ``levels`` say how tiles may share memory.
    Raises UnsupportedError when none fits.
    """
    outside: frozenset[str] = frozenset()
    locals_ = sorted(
        (part.buffer for part in statements(nest.body) if isinstance(part, Alloc)),
        key=lambda b: (-local_size(b), b.name),
    )
    while True:
        try:
            found = _first_fit(nest, machine, outside, doubled, levels)
        except Unaligned as local:
            outside |= {local.name}
            continue
        left = [buffer.name for buffer in locals_ if buffer.name not in outside]
        if found is not None:
            return found
        if not left:
            raise UnsupportedError("too-large", f"the tiles of {nest.name} do not fit the unified buffer")
        outside |= {left[0]}


def _first_fit(
    nest: Nest, machine: Machine, outside: frozenset[str], doubled: bool, levels: tuple[str, ...]
) -> tuple[Program, storage.Layout] | None:
    """Two copies where pipes share nothing and turns are long enough and enough; else one copy, as much as fits."""
    apart = tuple(level for level in levels if level != storage.ALL)
    long = [turn for turn in TURNS if turn >= LEAST_DOUBLED]
    ways = [(turn, True, apart) for turn in long if doubled] + [(turn, False, apart) for turn in long]
    ways += [(turn, False, levels) for turn in TURNS]
    programs: dict[int, Program] = {}
    for turn, twice, allowed in ways:
        if turn not in programs:
            needed = without_unread(without_idle(promote(nest, machine, turn, outside)))
            ordered = order_copies(needed)
            programs[turn] = ordered if machine.has_copy_pad else copy_whole_blocks(ordered)
        program = programs[turn]
        if twice and not _overlaps(program, turn, machine):
            continue
        program = double_buffer(program) if twice else program
        layout = storage.place(program, _room(program, machine), allowed)
        if layout is not None:
            return program, layout
    return None


def _overlaps(program: Program, turn: int, machine: Machine) -> bool:
    """Whether a core has turns enough."""
    turns = max(_turns(program.body, 1, machine), default=1)
    return turns >= ENOUGH or (turn <= SHORT and turns > 1)


def _turns(body: Sequence[Statement], outer: int, machine: Machine) -> Iterator[int]:
    """For each copy how often a core does it."""
    for statement in body:
        match statement:
            case For():
                yield from _turns(statement.body, outer * _turns_on_core(statement, machine), machine)
            case If(then=then, otherwise=otherwise):
                yield from _turns((*then, *otherwise), outer, machine)
            case Call(operation) if operation.startswith("DataCopy"):
                yield outer
            case _:
                pass


def _turns_on_core(loop: For, machine: Machine) -> int:
    if loop.step == BLOCK_COUNT:
        return -(-int(loop.stop.value) // machine.cores) if isinstance(loop.stop, Number) else MANY
    known = turns_of(loop)
    return MANY if known is None else known


def _room(program: Program, machine: Machine) -> int:
    """Bytes of the unified buffer; a Select takes the end of it."""
    selects = any(isinstance(s, Call) and s.operation == SELECT for s in _flat(program.body))
    return machine.memories[UB] - (machine.select_reserve if selects else 0)


def _flat(body: tuple[Statement, ...]) -> Iterator[Statement]:
    for statement in body:
        yield statement
        if isinstance(statement, For):
            yield from _flat(statement.body)
        elif isinstance(statement, If):
            yield from _flat(statement.then)
