"""Lays out once what all turns of a serial loop read of the columns of a product: panels in the order in which loops read them.

    for b in blocks of rows:                           alloc p[N / 32, K, 32]
      for j0 in 0..N step 32:                          for j0: for k: vector j in 0..32: p[j0, k, j] = f(x[j, k])
        for i in block b step 8:                       for b in blocks of rows:
          for k: vector j in j0..j0 + 32:        ->      for j0 in 0..N step 32:
            y[i, j] += a[i, k] * f(x[j, k])                for i in block b step 8:
                                                             for k: vector j: y[i, j] += a[i, k] * p[j0 / 32, k, j - j0]

Packing inside would be done again for every block. A panel is worth it where the rows of a block pass it too: a loop beside
those that its place depends on lies inside. What other rows read of the same values comes from there as well.

Legality. What is loaded is not written in the loop, so that it is the same in all turns; loops have known lengths, as for
constants (:mod:`kernelgen.transforms.cpu.arrays_of_values`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

from kernelgen.nest import nodes as n
from kernelgen.nest.bindings import needed
from kernelgen.nest.substitute import written_out
from kernelgen.nest.walk import stored_buffers
from kernelgen.transforms.cpu.arrays_of_values import Array, Scope, array_of, element, fills, loops_of, sums_columns

MOST_BYTES = 1 << 20
"""Of an array: the second cache of usual processors."""


def share_panels(nest: n.Nest, lanes: int) -> n.Nest:
    """The nest with such arrays before its serial loops; ``lanes`` are the elements of the widest vector."""
    sharing = _Sharing(lanes, nest.panels)
    body = sharing.block(nest.body, frozenset())
    return replace(nest, body=body, panels=nest.panels | sharing.made) if sharing.made else nest


@dataclass
class _Sharing:
    """Names the arrays that were ``made``; buffers called ``laid`` lie well already."""

    lanes: int
    laid: frozenset[str]
    made: set[str] = field(default_factory=set[str])

    def block(self, block: n.Block, around: frozenset[str]) -> n.Block:
        """The block inside of loops over these variables, outer loops first."""
        parts: list[n.Statement] = []
        for part in block.statements:
            if isinstance(part, n.For):
                before, loop = self.shared(part, around)
                parts += [*before, replace(loop, body=self.block(loop.body, around | {loop.var}))]
            elif isinstance(part, n.If):
                parts.append(replace(part, body=self.block(part.body, around)))
            else:
                parts.append(part)
        return n.Block(tuple(parts))

    def shared(self, loop: n.For, around: frozenset[str]) -> tuple[list[n.Statement], n.For]:
        """What lays out the panels that all turns of the loop read, and the loop that reads those."""
        if loop.kind is not n.LoopKind.SERIAL:
            return [], loop
        scope = Scope(same=around)
        panels = _Panels(stored_buffers(loop) | self.laid | self.made, self.lanes)
        panels.block(loop.body, scope)
        for array in dict.fromkeys(panels.wanted):
            buffer = n.Buffer(f"shared{len(self.made)}", array.value.dtype, array.shape, n.Space.LOCAL)
            panels.arrays[array] = buffer
            self.made.add(buffer.name)
        before = [*map(n.Alloc, panels.arrays.values()), *fills(panels.arrays)]
        return before, replace(loop, body=panels.block(loop.body, scope)) if before else loop


@dataclass
class _Panels:
    """The arrays that turns of a loop share; none is of what the buffers called ``others`` hold.

    A first walk finds what is ``wanted``, a second one puts elements of ``arrays`` where their values stand.
    """

    others: frozenset[str]
    lanes: int
    wanted: list[Array] = field(default_factory=list[Array])
    arrays: dict[Array, n.Buffer] = field(default_factory=dict[Array, n.Buffer])

    def block(self, block: n.Block, scope: Scope) -> n.Block:
        """The block with values from arrays."""
        parts: list[n.Statement] = []
        for part in block.statements:
            parts.append(self.statement(part, scope))
            scope = scope.behind(part)
        return n.Block(tuple(needed(parts)) if scope.loops and sums_columns(scope.loops[-1]) else tuple(parts))

    def statement(self, part: n.Statement, scope: Scope) -> n.Statement:
        """The statement; what a vector loop adds up to columns with values from arrays."""
        match part:
            case n.For():
                return replace(part, body=self.block(part.body, replace(scope, loops=(*scope.loops, part))))
            case n.If():
                return replace(part, body=self.block(part.body, replace(scope, guards=len(scope.loops))))
            case n.Accumulate() if scope.loops and sums_columns(scope.loops[-1]):
                return replace(part, value=self.expression(part.value, scope))
            case _:
                return part

    def expression(self, expr: n.Expr, scope: Scope) -> n.Expr:
        """The expression with its largest parts that are the same in all turns from arrays."""
        read = scope.reads(expr)
        if self.others.issuperset(read.buffers):
            return expr
        closed = None if read.by_data or not self.others.isdisjoint(read.buffers) else written_out(expr, scope.bound)
        loops = None if closed is None else loops_of(closed, scope)
        if closed is not None and loops and loops[-1] is scope.loops[-1]:
            array = array_of(closed, loops, self.lanes)
            if array in self.arrays:
                return element(self.arrays[array], loops)
            if len(loops) < len(scope.loops) and prod(array.shape) * closed.dtype.itemsize <= MOST_BYTES:
                self.wanted.append(array)
            return expr
        if isinstance(expr, n.Ref) and isinstance(value := scope.bound.get(expr.name), n.Call):
            moved = self.expression(value, scope)
            return expr if moved == value else moved
        if isinstance(expr, n.Call):
            return replace(expr, args=tuple(self.expression(each, scope) for each in expr.args))
        return expr
