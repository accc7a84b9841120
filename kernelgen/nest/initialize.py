"""Puts the neutral element into every accumulator just before its reduction starts.

    for i:                          for i:
      for k: s[i] += x[i, k]          s[i] = 0
                                      for k: s[i] += x[i, k]

    for k:                          for j: s[j] = 0
      for j: s[j] += x[k, j]        for k:
                                      for j: s[j] += x[k, j]

The reduction starts at the outermost loop around the accumulation that does not help to address the target: its
variable occurs neither in the index nor, transitively, in the bounds of a loop whose variable does. Inner loops that
do address the target are repeated around the store. Where no loop is left, because the reduction is unrolled as a whole,
its first term is stored instead of accumulated. A buffer that the nest stores to already starts from what is there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from kernelgen.dtypes import DType
from kernelgen.errors import NestError
from kernelgen.nest.index import variables
from kernelgen.nest.nodes import Accumulate, Block, For, If, Index, Literal, Nest, Statement, Store
from kernelgen.nest.walk import loads_of, statements


def initialize(nest: Nest) -> Nest:
    """The nest with all accumulators initialised."""
    started = frozenset(s.buffer.name for s in statements(nest.body) if isinstance(s, Store))
    return replace(nest, body=_block(nest.body, (), started))


def neutral_element(function: str, dtype: DType) -> Literal:
    """The value that changes nothing: 0, 1, the lowest or the greatest value of the dtype."""
    match function:
        case "add" | "logical_or":
            return Literal(False if dtype.name == "bool" else 0.0 if dtype.is_float else 0, dtype)
        case "mul" | "logical_and":
            return Literal(True if dtype.name == "bool" else 1.0 if dtype.is_float else 1, dtype)
        case "maximum" | "minimum":
            return Literal(_extreme(dtype, lowest=function == "maximum"), dtype)
        case _:
            raise NestError(f"{function!r} has no neutral element")


def _extreme(dtype: DType, lowest: bool) -> bool | int | float:
    if dtype.is_float:
        return -math.inf if lowest else math.inf
    if dtype.name == "bool":
        return not lowest
    signed = dtype.category.value == "int"
    if lowest:
        return -(2 ** (dtype.bits - 1)) if signed else 0
    return 2 ** (dtype.bits - 1) - 1 if signed else 2**dtype.bits - 1


def _block(block: Block, around: tuple[For, ...], running: frozenset[str]) -> Block:
    """``running`` names the buffers that have their first values."""
    parts: list[Statement] = list(_read_first(block, around, running))
    started = {(part.buffer.name, part.index) for part in parts if isinstance(part, Store)}
    for part in block.statements:
        parts.extend(dict.fromkeys(_starts(part, around, running)))  # unrolled rows share a target: it starts once
        if isinstance(part, For):
            parts.append(replace(part, body=_block(part.body, (*around, part), running)))
        elif isinstance(part, If):
            parts.append(replace(part, body=_block(part.body, around, running)))
        elif isinstance(part, Accumulate) and part.buffer.name in running:
            parts.append(part)
        elif isinstance(part, Accumulate) and not _starts_outside(around, (), part):
            target = (part.buffer.name, part.index)
            parts.append(part if target in started else Store(part.buffer, part.index, part.value))
            started.add(target)
        else:
            parts.append(part)
    return Block(tuple(parts))


def _read_first(block: Block, around: tuple[For, ...], running: frozenset[str]) -> Iterator[Store]:
    """Starts for the targets of unrolled reductions that are read before their first term: exclusive scans."""
    begun: set[tuple[str, tuple[Index, ...]]] = set()
    loaded: set[str] = set()
    for part in block.statements:
        loaded |= {load.buffer.name for inner in statements(part) for load in loads_of(inner)}
        if not isinstance(part, Accumulate) or part.buffer.name in running or _starts_outside(around, (), part):
            continue
        target = (part.buffer.name, part.index)
        if target not in begun and part.buffer.name in loaded:
            yield Store(part.buffer, part.index, neutral_element(part.function, part.buffer.dtype))
        begun.add(target)


def _starts(part: Statement, around: tuple[For, ...], running: frozenset[str]) -> Iterator[Statement]:
    """The starting values of the reductions whose first loop is this statement."""
    if not isinstance(part, For):
        return
    for path, accumulation, is_guarded in _accumulations(part, (), running):
        if _start(path, accumulation) == 0 and not _starts_outside(around, path, accumulation):
            if is_guarded:
                raise NestError("a reduction under a guard cannot be initialised")
            yield _store(path, accumulation)


def _accumulations(
    part: Statement, path: tuple[For, ...], running: frozenset[str], is_guarded: bool = False
) -> Iterator[tuple[tuple[For, ...], Accumulate, bool]]:
    """Each accumulation inside that must be started, with the loops that lead to it, and whether a guard does too."""
    if isinstance(part, Accumulate) and part.buffer.name not in running:
        yield path, part, is_guarded
    elif isinstance(part, For):
        for inner in part.body.statements:
            yield from _accumulations(inner, (*path, part), running, is_guarded)
    elif isinstance(part, If):
        for inner in part.body.statements:
            yield from _accumulations(inner, path, running, True)


def _addressing(path: tuple[For, ...], index: tuple[Index, ...]) -> frozenset[str]:
    """The variables that the index depends on, directly or through loop bounds."""
    found = frozenset(name for i in index for name in variables(i))
    for loop in reversed(path):
        if loop.var in found:
            found |= variables(loop.lower) | variables(loop.upper)
    return found


def _start(path: tuple[For, ...], accumulation: Accumulate) -> int | None:
    """The position of the first loop that does not address the target."""
    addressing = _addressing(path, accumulation.index)
    return next((k for k, loop in enumerate(path) if loop.var not in addressing), None)


def _starts_outside(around: tuple[For, ...], path: tuple[For, ...], accumulation: Accumulate) -> bool:
    """Whether a loop further out already belongs to the reduction."""
    addressing = _addressing((*around, *path), accumulation.index)
    return any(loop.var not in addressing for loop in around)


def _store(path: tuple[For, ...], accumulation: Accumulate) -> Statement:
    value = neutral_element(accumulation.function, accumulation.buffer.dtype)
    body: Statement = Store(accumulation.buffer, accumulation.index, value)
    addressing = _addressing(path, accumulation.index)
    for loop in reversed(path):
        if loop.var in addressing:
            body = replace(loop, body=Block((body,)))
    return body
