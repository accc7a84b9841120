"""Control flow: an entry's instructions as chunks that run without a branch, in an order that lets lanes meet again.

Lanes that went apart run lowest chunk first, so those that are behind catch up (re-convergence at the thread frontier,
Diamos and others, 2011). That needs an order in which every forward edge goes up and a loop's chunks come before its
exits; the text's own order need not be one, so it is computed (a weak topological order, Bourdoncle 1993).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelgen.simulators.ptx.language.errors import PtxError
from kernelgen.simulators.ptx.language.nodes import (
    Instruction,
    Kernel,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Vector,
)
from kernelgen.simulators.ptx.machine.speculation import only_computes

BLOCK_BARRIERS = ("bar", "barrier")
WARP_TOGETHER = ("shfl", "vote", "match", "redux", "mma", "ldmatrix")
ENDS = ("ret", "exit", "trap")
STORES = ("st", "red", "bra", "brx", "bar", "barrier", "cp", "membar", "fence", "prefetch", "discard")


@dataclass(frozen=True)
class Chunk:
    """Instructions ``start`` to ``stop``; ``following`` is where lanes go that do not branch, ``targets`` the others.

    ``meeting`` says who must arrive together before it runs: "" nobody, "warp" or "block".
    """

    start: int
    stop: int
    following: int | None
    targets: tuple[int, ...]
    meeting: str


def meeting_of(instruction: Instruction) -> str:
    """Whether an instruction waits for other lanes, and for which."""
    first, *rest = instruction.opcode
    if first in BLOCK_BARRIERS:
        return "warp" if "warp" in rest else "block"
    return "warp" if first in WARP_TOGETHER else ""


def chunks_of(kernel: Kernel) -> tuple[Chunk, ...]:
    """The chunks of a kernel, in the order in which lanes that went apart run them; the first is the entry."""
    starts = _starts(kernel)
    order = _ranks(_graph(kernel, starts))
    rank = {start: number for number, start in enumerate(order)}
    ends = dict(zip(starts, [*starts[1:], len(kernel.instructions)], strict=True))
    return tuple(_chunk(kernel, start, ends[start], rank) for start in order)


def unsure_registers(kernel: Kernel, chunks: Sequence[Chunk]) -> frozenset[str]:
    """Registers that some path from the entry may read before any instruction wrote them, and what is made of those."""
    everything = frozenset(kernel.registers)
    before = [everything for _ in chunks]
    before[0] = frozenset()
    waiting, unsure = [0], set[str]()
    while waiting:
        number = waiting.pop()
        chunk, known = chunks[number], set(before[number])
        for instruction in kernel.instructions[chunk.start : chunk.stop]:
            known |= _written(instruction) if instruction.guard is None else set()
        for target in (*chunk.targets, *([] if chunk.following is None else [chunk.following])):
            if not before[target] <= known:
                before[target] &= known
                waiting.append(target)
    for chunk, entering in zip(chunks, before, strict=True):
        known = set(entering)
        for instruction in kernel.instructions[chunk.start : chunk.stop]:
            unsure |= _read(instruction) & everything - known
            known |= _written(instruction) if instruction.guard is None else set()
    return frozenset(_made_of(unsure, kernel))


def _made_of(unsure: set[str], kernel: Kernel) -> set[str]:
    found, before = set(unsure), set[str]()
    while found != before:
        before = set(found)
        for instruction in kernel.instructions:
            found |= _written(instruction) if only_computes(instruction) and found & _read(instruction) else set()
    return found


def _starts(kernel: Kernel) -> list[int]:
    starts = {0, *kernel.labels.values()}
    for position, instruction in enumerate(kernel.instructions):
        if instruction.opcode[0] in ("bra", "brx", *ENDS):
            starts.add(position + 1)
        if meeting_of(instruction):
            starts |= {position, position + 1}
    return sorted(start for start in starts if start < len(kernel.instructions))


def _branch_targets(kernel: Kernel, instruction: Instruction) -> tuple[int, ...]:
    """Positions of the labels that a branch may go to."""
    names = [operand.name for operand in instruction.operands if isinstance(operand, Symbol)]
    if instruction.opcode[0] == "brx":
        names = list(kernel.tables[names[-1]])
    try:
        return tuple(kernel.labels[name] for name in names)
    except KeyError as error:
        raise PtxError(f"no label {error} for `{instruction}`", instruction.place.line) from error


def _edges(kernel: Kernel, start: int, stop: int) -> tuple[tuple[int, ...], int | None]:
    last = kernel.instructions[stop - 1]
    following = stop if stop < len(kernel.instructions) else None
    kind = last.opcode[0]
    targets = _branch_targets(kernel, last) if kind in ("bra", "brx") else ()
    if kind in ("bra", "brx", *ENDS) and last.guard is None:
        following = None
    return targets, following


def _graph(kernel: Kernel, starts: Sequence[int]) -> Mapping[int, tuple[int, ...]]:
    """Successors of each chunk by start, of those that can be reached."""
    ends = dict(zip(starts, [*starts[1:], len(kernel.instructions)], strict=True))
    graph = dict[int, tuple[int, ...]]()
    waiting = [0]
    while waiting:
        start = waiting.pop()
        if start not in graph:
            targets, following = _edges(kernel, start, ends[start])
            graph[start] = (*targets, *(() if following is None else (following,)))
            waiting += graph[start]
    return graph


def _chunk(kernel: Kernel, start: int, stop: int, rank: Mapping[int, int]) -> Chunk:
    targets, following = _edges(kernel, start, stop)
    return Chunk(
        start,
        stop,
        None if following is None else rank[following],
        tuple(rank[target] for target in targets),
        meeting_of(kernel.instructions[start]),
    )


def _ranks(graph: Mapping[int, tuple[int, ...]]) -> list[int]:
    edges = [(start, target) for start, targets in graph.items() for target in targets]
    return _weak_order(set(graph), edges, 0)


def _weak_order(nodes: set[int], edges: Sequence[tuple[int, int]], head: int) -> list[int]:
    """Loops as wholes in topological order; within a loop its head first, then the rest without edges to the head."""
    import networkx as nx  # hundreds of modules, for interpreted kernels alone

    graph = nx.DiGraph()
    graph.add_nodes_from(sorted(nodes))
    graph.add_edges_from(edges)
    loops = nx.condensation(graph)
    members: Mapping[int, set[int]] = nx.get_node_attributes(loops, "members")
    order = list[int]()
    for number in nx.lexicographical_topological_sort(loops, key=lambda loop: min(members[loop])):
        inside = members[number]
        if len(inside) == 1:
            order += inside
            continue
        entries = [target for start, target in edges if target in inside and start not in inside]
        first = head if head in inside else min(entries, default=min(inside))
        kept = [(start, target) for start, target in edges if {start, target} <= inside and target != first]
        order += _weak_order(inside, kept, first)
    return order


def _names(operands: Iterable[Operand]) -> set[str]:
    """The registers among operands, those in addresses and braces included."""
    found = set[str]()
    for operand in operands:
        match operand:
            case Register(name):
                found.add(name)
            case Negated(register):
                found.add(register.name)
            case Vector(parts):
                found |= _names(parts)
            case Pair(first, second):
                found |= {first.name, second.name}
            case _:
                base = getattr(operand, "base", None)
                found |= {base.name} if isinstance(base, Register) else set()
    return found


def _written(instruction: Instruction) -> set[str]:
    if instruction.opcode[0] in STORES and "red" not in instruction.opcode[1:]:
        return set()
    return _names(instruction.operands[:1])


def _read(instruction: Instruction) -> set[str]:
    sources = instruction.operands if not _written(instruction) else instruction.operands[1:]
    guard = () if instruction.guard is None else (instruction.guard,)
    return _names((*sources, *guard))
