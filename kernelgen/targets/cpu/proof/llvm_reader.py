"""LLVM assembly read back: functions as blocks with what must have held for a block to run. Knows what the printer writes.

then.1:  is entered from entry where %t3 is true; after.2 by both ways, so all it knows is what entry knows
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kernelgen.errors import ProofError

Condition = tuple[str, bool]
"""A value of type i1 by its name, and what it is."""

_FUNCTION = re.compile(r"^define [^\n]*@([\w.]+)\(([^\n]*)\) \{\n(.*?)^\}", re.M | re.S)
_POINTER = re.compile(r"\bptr (?:noalias )?(%\w+)")
_LABEL = re.compile(r"^([\w.]+):$")
_JUMP = re.compile(r"^  br label %(\S+)$")
_BRANCH = re.compile(r"^  br i1 (\S+), label %(\S+), label %(\S+)$")


@dataclass
class Block:
    """Instructions under a label. ``dominator`` is the block that runs before it in any case; ``held`` how it was left."""

    label: str
    lines: list[str] = field(default_factory=list[str])
    dominator: Block | None = None
    held: Condition | None = None


@dataclass(frozen=True)
class Body:
    """A function: blocks by label in the order of the text, and ``name -> instruction`` for all values.

    ``pointers`` are the addresses that come from outside: parameters, and what is loaded or allocated.
    """

    name: str
    blocks: Mapping[str, Block]
    definitions: Mapping[str, str]
    pointers: frozenset[str]

    def conditions(self, block: Block) -> Iterator[Condition]:
        """What holds wherever the block runs, the nearest first."""
        place: Block | None = block
        while place is not None:
            if place.held is not None:
                yield place.held
            place = place.dominator


def functions(text: str) -> Iterator[tuple[str, str, str]]:
    """Name, parameters and text of every function's body."""
    for found in _FUNCTION.finditer(text):
        yield found[1], found[2], found[3]


def read(name: str, parameters: str, text: str) -> Body:
    """A function's body with its dominators. Raises ProofError where its loops are not entered at one place each."""
    blocks = _blocks(text)
    entries = _entries(blocks)
    seen: list[str] = []
    for label, block in blocks.items():
        ways = [way for way in entries.get(label, ()) if way[0] in seen]
        block.dominator = _common([blocks[source] for source, _ in ways])
        block.held = ways[0][1] if len(ways) == 1 else None
        seen.append(label)
    for label, ways in entries.items():
        for source, _ in ways:
            if seen.index(source) >= seen.index(label) and not _dominates(blocks[label], blocks[source]):
                raise ProofError("alignment", f"a loop of {name} has two entries", label)
    lines = (line for block in blocks.values() for line in block.lines)
    definitions = dict(line.strip().split(" = ", 1) for line in lines if line.startswith("  %"))
    pointers = set(_POINTER.findall(parameters))
    pointers |= {value for value, made in definitions.items() if made.startswith(("load ptr", "call ptr"))}
    return Body(name, blocks, definitions, frozenset(pointers))


def _blocks(text: str) -> dict[str, Block]:
    found: dict[str, Block] = {}
    current = Block("")
    for line in text.splitlines():
        label = _LABEL.match(line)
        if label:
            current = found[label[1]] = Block(label[1])
        else:
            current.lines.append(line)
    return found


def _entries(blocks: Mapping[str, Block]) -> dict[str, list[tuple[str, Condition | None]]]:
    """Label -> the labels from which it is entered, with what holds then."""
    found: dict[str, list[tuple[str, Condition | None]]] = {}
    for label, block in blocks.items():
        last = block.lines[-1] if block.lines else ""
        if jump := _JUMP.match(last):
            found.setdefault(jump[1], []).append((label, None))
        elif branch := _BRANCH.match(last):
            for target, way in ((branch[2], True), (branch[3], False)):
                found.setdefault(target, []).append((label, (branch[1], way)))
    return found


def _common(blocks: list[Block]) -> Block | None:
    """The nearest block that all of these stand behind."""
    if not blocks:
        return None
    shared = list(_upwards(blocks[0]))
    for block in blocks[1:]:
        above = {each.label for each in _upwards(block)}
        shared = [each for each in shared if each.label in above]
    return shared[0] if shared else None


def _dominates(block: Block, other: Block) -> bool:
    return any(each is block for each in _upwards(other))


def _upwards(block: Block | None) -> Iterator[Block]:
    while block is not None:
        yield block
        block = block.dominator
