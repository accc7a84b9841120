"""Scops as text, for dumps and golden tests."""

from __future__ import annotations

from kernelgen.nest.text import show_buffer, show_statement
from kernelgen.poly.model.scop import Iterator, Scop, Statement


def show_scop(scop: Scop) -> str:
    """The buffers, then each statement with its box and body."""
    lines = [f"scop {scop.name}[{', '.join(scop.symbols)}]"]
    lines += [f"  {buffer.space.value} {show_buffer(buffer)}" for buffer in scop.buffers]
    for statement in scop.statements:
        lines += _show(statement)
    return "\n".join(lines) + "\n"


def _show(statement: Statement) -> list[str]:
    header = ", ".join(map(_show_iterator, statement.iterators))
    order = " in order" if statement.ordered else ""
    return [f"  {statement.name}[{header}]{order}:", *(f"    {show_statement(part)}" for part in statement.body)]


def _show_iterator(iterator: Iterator) -> str:
    blocks = iterator.blocks
    if blocks is None:
        return f"{iterator.name} < {iterator.extent}"
    if blocks.overlapping is not None:
        step, start = blocks.overlapping
        return f"{iterator.name} < {iterator.extent}, {step} {iterator.name} + {start} <= {blocks.of} < .. + {blocks.length}"
    number = (
        f" = {blocks.of} / {blocks.length}" if blocks.of else f", {blocks.length} * {iterator.name} < {blocks.extent}"
    )
    return f"{iterator.name} < {iterator.extent}{number}"
