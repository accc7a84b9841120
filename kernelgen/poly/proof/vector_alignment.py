"""Proof about a grid as it is printed: what moves several elements at once starts at a multiple of their number.

    bind first = (bx * 256 + tx) * 4
    copy 4: wide[0] = x[i, first]            x: f32[N, 1024]     1024 i + 4 (..) = 0 modulo 4

Arrays start at multiples of 16 bytes: the entry checks it of arguments, the printer writes it before its own arrays. So a
copy of ``count`` neighbours, whose bytes are a power of two up to 16, is aligned where its first element's number is a
multiple of ``count``; a row of a fragment where it is one of 16 bytes. The check takes bindings, steps of loops and
conditions as they stand in the finished nest; why the passes made them so plays no part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelgen.errors import ProofError
from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.congruence import residue
from kernelgen.nest.text import show_statement
from kernelgen.poly.proof.schedule_proof import Fact

ROW_BYTES = 16
"""Of a matrix of fragments."""


@dataclass(frozen=True)
class Known:
    """What holds at a statement: ``values`` of bindings and loop variables, and indices that are ``zeros``."""

    values: Mapping[str, n.Index]
    zeros: tuple[n.Index, ...] = ()

    def bound(self, name: str, index: n.Index) -> Known:
        """With a binding."""
        return Known({**self.values, name: ix.substitute(index, self.values)}, self.zeros)

    def where(self, conditions: tuple[n.Compare, ...]) -> Known:
        """With conditions that hold."""
        equal = [ix.subtract(each.left, each.right) for each in conditions if each.op == "=="]
        return Known(self.values, (*self.zeros, *(ix.substitute(each, self.values) for each in equal)))


def prove_alignment(nest: n.Nest) -> tuple[Fact, ...]:
    """A fact for every grid that moves several elements at once. Raises ProofError with the place that is not shown."""
    grids = [part for part in nest.body.statements if isinstance(part, n.Grid)]
    counts = [
        (grid, sum(1 for claim in _claims(grid.body, Known({}).where(grid.when)) if _shown(claim))) for grid in grids
    ]
    return tuple(
        Fact("alignment", f"{grid.name}: {count} places", "{ place : is no multiple }")
        for grid, count in counts
        if count
    )


@dataclass(frozen=True)
class _Claim:
    """An element of a buffer whose number a statement takes for a multiple of ``count``."""

    statement: n.Statement
    buffer: n.Buffer
    index: tuple[n.Index, ...]
    count: int
    known: Known


def _claims(statement: n.Statement, known: Known) -> Iterator[_Claim]:
    match statement:
        case n.Block(parts):
            for part in parts:
                yield from _claims(part, known)
                known = known.bound(part.var, part.index) if isinstance(part, n.Bind) else known
        case n.For():
            moving = ix.add(statement.lower, ix.multiply(n.Var(f"turn of {statement.var}"), n.Num(statement.step)))
            yield from _claims(statement.body, known.bound(statement.var, moving))
        case n.If(conditions, body):
            yield from _claims(body, known.where(conditions))
        case n.Copy() | n.AsyncCopy():
            inner = known.where(statement.conditions) if isinstance(statement, n.AsyncCopy) else known
            yield _Claim(statement, statement.source, statement.start, statement.count, inner)
            yield _Claim(statement, statement.target, statement.to, statement.count, inner)
        case n.LoadFragments():
            count = ROW_BYTES // statement.source.dtype.itemsize
            yield _Claim(statement, statement.source, statement.start, count, known)
        case _:
            pass


def _shown(claim: _Claim) -> bool:
    """True. Raises ProofError where the element's number may be no multiple."""
    number: n.Index = n.Num(0)
    for position, extent in zip(claim.index, claim.buffer.shape, strict=True):
        number = ix.add(ix.multiply(number, ix.from_dim(extent)), position)
    if residue(number, claim.count, claim.known.values, claim.known.zeros) == 0:
        return True
    message = f"the element of {claim.buffer.name} is not shown to be a multiple of {claim.count}"
    raise ProofError("alignment", message, show_statement(claim.statement))
