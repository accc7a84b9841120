"""What follows a block of results element by element is computed while these are in registers: bias, activation, residual.

    for i in 0..56 step 8:                                     for i in 0..56 step 8:
      held0[0..48] = 0; ...                                      held0[0..48] = 0; ...
      for k: held0[j] += x[i, k] * w[k, j]; ...                  for k: held0[j] += x[i, k] * w[k, j]; ...
      vector for j in 0..48: t[i, j] = held0[j]         ->       vector for j in 0..48: y[i, j] = maximum(held0[j] + b[j], 0)
      vector for j in 0..48: t[i + 1, j] = held1[j]; ...         ...
    for i in 0..56: vector for j in 0..48:
      y[i, j] = maximum(t[i, j] + b[j], 0)

The temporary is neither stored nor loaded again, and goes.
Legality. Only these stores and that loop touch the temporary. The loop runs over all of its elements, each once, so that the
place of a store is that of one iteration: ``{ t[p] -> [i, j] : p = read(i, j) }`` is a bijection. A store runs once for each of
its places, so that the element is final, and what the iteration reads besides is written by nobody in between, what it
writes is touched by nobody in between.
What gains: arithmetic that is cheap, which runs beside the sums of the next block. Functions that take polynomials need the
registers that hold the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.cost import arithmetic_cost, function_cost
from kernelgen.nest.substitute import renamed, substituted
from kernelgen.nest.walk import (
    accesses,
    accesses_by_buffer,
    accesses_of,
    calls,
    loads_of,
    map_blocks,
    map_expressions,
    statements,
    stored_buffers,
)
from kernelgen.transforms.common.scalarize import scalarized

MOST_COST = 0.45
"""Nanoseconds of arithmetic for an element (:func:`arithmetic_cost`): a hard swish and a residual, no exponential function."""

MORE_COST = 2.0
"""The same where results leave half of the registers free: a residual between two quantizers."""

MANY_REGISTERS = 32
"""Of which results take no more than half, or little more."""

POLYNOMIAL = 0.5
"""The same of one function from which on it takes a polynomial, or several divisions."""

TEMPORARY = (n.Space.WORKSPACE, n.Space.LOCAL)

Along = Mapping[int, n.For]
"""The dims of a temporary that loops run along, each with its loop."""


def fuse_epilogues(nest: n.Nest, registers: int) -> n.Nest:
    """The ``nest`` with such loops where blocks of results are stored, and without the temporaries between.

    The processor has so many vector ``registers``.
    """
    most = MORE_COST if registers >= MANY_REGISTERS else MOST_COST
    joining = _Joining({name: len(found) for name, found in accesses_by_buffer(nest.body).items()}, most)
    body = map_blocks(nest.body, joining.joined)
    if not joining.gone:
        return nest
    buffers = tuple(buffer for buffer in nest.buffers if buffer.name not in joining.gone)
    return replace(nest, buffers=buffers, body=map_blocks(body, joining.without_storage))


@dataclass(frozen=True)
class _Epilogue:
    """Loops around bindings and stores that read one ``element`` of a temporary in each iteration, a vector loop inside.

    ``along`` holds the dims of the temporary that the loops run along.
    """

    vector: n.For
    element: n.Load
    along: Along

    @staticmethod
    def of(part: n.Statement, name: str, most: float) -> _Epilogue | None:
        """What ``part`` is to the temporary called ``name``; None where it is no epilogue of it that costs ``most`` or less."""
        loops = _nest_of(part)
        if not loops or loops[-1].kind is not n.LoopKind.VECTOR:
            return None
        vector = replace(loops[-1], body=scalarized(loops[-1].body))
        loops, body = (*loops[:-1], vector), vector.body.statements
        elements = {load for each in body for load in loads_of(each) if load.buffer.name == name}
        if not all(isinstance(each, n.Let | n.Store) for each in body) or len(elements) != 1:
            return None
        values = [each.value for each in body if isinstance(each, n.Let | n.Store)]
        by_data = any(ix.is_by_data(*index) for each in body for _, index in accesses_of(each))
        (element,) = elements
        along = _along(element, loops)
        return None if by_data or not _is_cheap(values, most) or along is None else _Epilogue(vector, element, along)

    def is_final(self, store: n.Store, loops: Sequence[n.For]) -> bool:
        """Whether a ``store`` in these ``loops`` runs once for each element, by vectors along the same dim."""
        if not loops or loops[-1].kind is not n.LoopKind.VECTOR:
            return False
        moving = {name for at in store.index for name in ix.variables(at)}
        lanes = [dim for dim, at in enumerate(store.index) if loops[-1].var in ix.variables(at)]
        if len(lanes) != 1 or self.along.get(lanes[0]) is not self.vector:
            return False
        return ix.stride(store.index[lanes[0]], loops[-1].var) == 1 and moving >= {loop.var for loop in loops}

    def iteration(self, place: Sequence[n.Index]) -> dict[str, n.Index] | None:
        """The iteration that reads the element at ``place``; None where another dim is not seen to be the same."""
        values: dict[str, n.Index] = {}
        for dim, (stored, read) in enumerate(zip(place, self.element.index, strict=True)):
            loop = self.along.get(dim)
            if loop is None and stored != read:
                return None
            if loop is not None:
                values[loop.var] = _behind(stored, _start(read, loop.var) or n.Num(0))
        return values

    def may_pass(self, between: Sequence[n.Statement]) -> bool:
        """Whether its iterations may run among statements that stand before it."""
        body = self.vector.body
        written, read = stored_buffers(body), {load.buffer.name for part in body.statements for load in loads_of(part)}
        touched = {b.name for root in between for part in statements(root) for b, _ in accesses_of(part)}
        stored = {name for root in between for name in stored_buffers(root)} - {self.element.buffer.name}
        return written.isdisjoint(touched | read) and read.isdisjoint(stored)


@dataclass(frozen=True)
class _Joining:
    """How often each buffer is touched in the whole nest, what epilogues cost at ``most``, numbers for new names, and the
    temporaries that are ``gone``.
    """

    touched: Mapping[str, int]
    most: float
    numbers: Iterator[int] = field(default_factory=count)
    gone: set[str] = field(default_factory=set[str])

    def joined(self, block: n.Block) -> n.Block:
        """The block with epilogues where the stores before them stand."""
        parts: list[n.Statement] = []
        for part in block.statements:
            parts = self._with_epilogue(parts, part) or [*parts, part]
        return n.Block(tuple(parts))

    def without_storage(self, block: n.Block) -> n.Block:
        """The block without memory for what is gone."""
        kept = (each for each in block.statements if not (isinstance(each, n.Alloc) and each.buffer.name in self.gone))
        return n.Block(tuple(kept))

    def _with_epilogue(self, before: Sequence[n.Statement], part: n.Statement) -> list[n.Statement] | None:
        """What stands ``before`` with the loops of ``part`` inside; None where that is impossible."""
        for name in sorted({name for each in _nest_of(part) for name in _temporaries_in(each)}):
            epilogue = _Epilogue.of(part, name, self.most)
            first = None if epilogue is None else self._first_store(name, before, part)
            if epilogue is None or first is None or not epilogue.may_pass(before[first:]):
                continue
            made = [self._in(root, (), epilogue) for root in before]
            done = [root for root in made if root is not None]
            if len(done) == len(made):
                self.gone.add(name)
                return done
        return None

    def _first_store(self, name: str, before: Sequence[n.Statement], part: n.Statement) -> int | None:
        """Which statement ``before`` is the first that stores to a temporary that nobody but ``part`` reads; else None."""
        first, made = None, 0
        for place in reversed(range(len(before))):  # from the end: another one that reads it mostly stands right before
            for each, _ in accesses(before[place], name):
                if not _only_stores(each, name):
                    return None
                first, made = place, made + 1
        read = sum(1 for _ in accesses(part, name))
        return first if made + read == self.touched[name] and name not in stored_buffers(part) else None

    def _in(self, root: n.Statement, loops: tuple[n.For, ...], epilogue: _Epilogue) -> n.Statement | None:
        """The statement with the ``epilogue`` at every store to its temporary; None where a store is not final."""
        if not isinstance(root, n.For | n.If):
            return None if _only_stores(root, epilogue.element.buffer.name) else root
        around = (*loops, root) if isinstance(root, n.For) else loops
        parts: list[n.Statement] = []
        for part in root.body.statements:
            if isinstance(part, n.Store) and part.buffer.name == epilogue.element.buffer.name:
                values = epilogue.iteration(part.index) if epilogue.is_final(part, around) else None
                if values is None:
                    return None
                parts += self._of_element(part, epilogue, values)
                continue
            inner = self._in(part, around, epilogue)
            if inner is None:
                return None
            parts.append(inner)
        return replace(root, body=n.Block(tuple(parts)))

    def _of_element(
        self, store: n.Store, epilogue: _Epilogue, values: Mapping[str, n.Index]
    ) -> tuple[n.Statement, ...]:
        """The epilogue's statements for the element that a ``store`` gives its value."""

        def held(expr: n.Expr) -> n.Expr:
            return store.value if isinstance(expr, n.Load) and expr.buffer.name == store.buffer.name else expr

        body = map_expressions(substituted(epilogue.vector.body, values), held)
        return renamed(body, f"_at{next(self.numbers)}").statements


def _nest_of(part: n.Statement) -> tuple[n.For, ...]:
    """Serial loops, each with one loop inside and nothing else, down to one with something else; none for other statements."""
    loops: list[n.For] = []
    inner: n.Statement | None = part
    while isinstance(inner, n.For) and inner.step == 1 and (not loops or loops[-1].kind is n.LoopKind.SERIAL):
        loops.append(inner)
        inner = inner.body.statements[0] if len(inner.body.statements) == 1 else None
    return tuple(loops) if not isinstance(inner, n.For) else ()


def _is_cheap(values: Sequence[n.Expr], most: float) -> bool:
    """Whether registers that hold results leave room for these, which cost ``most`` or less, and none of them a polynomial."""
    dearest = max((function_cost(call) for value in values for call in calls(value)), default=0.0)
    return dearest < POLYNOMIAL and sum(map(arithmetic_cost, values)) <= most


def _only_stores(part: n.Statement, name: str) -> bool:
    """Whether a statement stores to a temporary of this name, and does not read it."""
    is_stored = isinstance(part, n.Store) and part.buffer.name == name and part.buffer.space in TEMPORARY
    return is_stored and all(load.buffer.name != name for load in loads_of(part))


def _temporaries_in(loop: n.For) -> Iterator[str]:
    """The names of those that the loop's own statements load."""
    for part in loop.body.statements:
        yield from (load.buffer.name for load in loads_of(part) if load.buffer.space in TEMPORARY)


def _along(element: n.Load, loops: Sequence[n.For]) -> Along | None:
    """The dim that each loop runs along, over all of its extent; None where it is not so."""
    found: dict[int, n.For] = {}
    for loop in loops:
        dims = [dim for dim, at in enumerate(element.index) if loop.var in ix.variables(at)]
        if len(dims) != 1 or dims[0] in found or _start(element.index[dims[0]], loop.var) is None:
            return None
        at, extent = element.index[dims[0]], ix.from_dim(element.buffer.shape[dims[0]])
        if [ix.substitute(at, {loop.var: bound}) for bound in (loop.lower, loop.upper)] != [n.Num(0), extent]:
            return None
        found[dims[0]] = loop
    return found


def _start(at: n.Index, variable: str) -> n.Index | None:
    """What is taken off a variable to give an index: 0 for itself; None for other indices."""
    match at:
        case n.Var(name) if name == variable:
            return n.Num(0)
        case n.IndexBinary(n.IndexOp.SUB, n.Var(name), start) if name == variable:
            return None if variable in ix.variables(start) else start
        case _:
            return None


def _behind(at: n.Index, start: n.Index) -> n.Index:
    """``at + start``, where ``at`` may be something less that start."""
    if isinstance(at, n.IndexBinary) and at.op is n.IndexOp.SUB and at.right == start:
        return at.left
    return ix.add(at, start)
