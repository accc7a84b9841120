"""Computes what depends on constants alone once, before all calls, and lays it out in the order in which loops read it.

    nest y(a, b):                                  nest prepare(b) -> (p: f32[N / 32, K, 32]):
      for j0 in 0..N step 32:                        for j0: for k in 0..K: vector j in 0..32:
        for i in 0..M step 8:                          p[j0, k, j] = f(b[k, 32 j0 + j])
          for k in 0..K:                     ->    nest y(a, p):
            vector j in j0..j0 + 32:                 for j0 in 0..N step 32: ...
              y[i, j] += a[i, k] * f(b[k, j])              y[i, j] += a[i, k] * p[j0 / 32, k, j - j0]

An array has a dim for each loop that its value depends on, outermost first: a product reads its weights one after the
other, and packing, transposition and casts are done with. Values that are the same function of the same loops share an
array, wherever they stand. What a vector loop adds up has columns of zeros behind its own, so that vectors are whole. An input
that is not read any more is no argument of the nest.

Legality. The loops have known lengths and no bounds but on each other's variables, so that every element of an array is the
value in one set of iterations, and no guard stands between them, so that it may be computed in all. Inputs named as constants
have the same content in every call, and nobody writes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.substitute import written_out
from kernelgen.nest.walk import loads, loads_of, statements
from kernelgen.tensor.dims import Shape, symbols_of
from kernelgen.transforms.cpu.arrays_of_values import Array, Scope, array_of, dim_name, element, fills, loops_of

MOST_GROWTH = 2
"""How many times the bytes of the constants that it replaces an array may have."""


def prepare(nest: n.Nest, lanes: int) -> n.Nest:
    """The nest that reads such arrays, with the one that computes them as its ``preparation``; or the nest itself.

    ``lanes`` are the elements of the widest vector.
    """
    known = frozenset(b.name for b in nest.buffers if b.name in nest.constants and not symbols_of(b.shape))
    if not known:
        return nest
    found = _Preparation(known, lanes)
    body = found.block(nest.body, Scope())
    return _with_arrays(nest, body, found) if found.arrays else nest


@dataclass
class _Preparation:
    """The arrays found so far, each with its buffer."""

    constants: frozenset[str]
    lanes: int
    arrays: dict[Array, n.Buffer] = field(default_factory=dict[Array, n.Buffer])

    def block(self, block: n.Block, scope: Scope) -> n.Block:
        """The block with its values from arrays."""
        parts: list[n.Statement] = []
        for part in block.statements:
            parts.append(self.statement(part, scope))
            scope = scope.behind(part)
        return n.Block(tuple(parts))

    def statement(self, part: n.Statement, scope: Scope) -> n.Statement:
        """The statement with its values from arrays."""
        match part:
            case n.For():
                return replace(part, body=self.block(part.body, replace(scope, loops=(*scope.loops, part))))
            case n.If():
                return replace(part, body=self.block(part.body, replace(scope, guards=len(scope.loops))))
            case n.Block():
                return self.block(part, scope)
            case n.Let() | n.Store() | n.Accumulate():
                return replace(part, value=self.expression(part.value, scope))
            case _:
                return part

    def expression(self, expr: n.Expr, scope: Scope) -> n.Expr:
        """The expression with its largest parts that depend on constants alone from arrays."""
        read = scope.reads(expr)
        if self.constants.isdisjoint(read.buffers):
            return expr
        if not read.by_data and self.constants.issuperset(read.buffers):
            closed = written_out(expr, scope.bound)
            if _widens(closed):
                return self._widened(expr, scope) if isinstance(expr, n.Call) else expr
            return self._element(closed, scope) or expr
        if isinstance(expr, n.Call):
            return replace(expr, args=tuple(self.expression(each, scope) for each in expr.args))
        return expr

    def _widened(self, expr: n.Expr, scope: Scope) -> n.Expr:
        """The same of elements that are packed as they are, or in pairs of bytes."""
        if isinstance(expr, n.Call):
            inside = self.expression if expr.function == "byte_halves" else self._widened
            return replace(expr, args=tuple(inside(each, scope) for each in expr.args))
        return self.expression(expr, scope)

    def _element(self, value: n.Expr, scope: Scope) -> n.Load | None:
        """The element of an array that holds the value; None where there is to be no such array."""
        loops = loops_of(value, scope)
        if loops is None or not loops:
            return None
        array = array_of(value, loops, self.lanes)
        if not _is_worth(array):
            return None
        if array not in self.arrays:
            name = f"prepared{len(self.arrays)}"
            self.arrays[array] = n.Buffer(name, value.dtype, array.shape, n.Space.INPUT)
        return element(self.arrays[array], loops)


WIDENING = frozenset({"cast", "add", "sub", "mul", "floor_div", "floor_mod", "byte_halves"})
"""Functions that cost less than reading what they make of narrower elements."""


PARTS = frozenset({"bitwise_and"})
"""Functions that take some of the bits of a word, of which others take the rest."""


def _widens(value: n.Expr) -> bool:
    """Whether it is computed cheaply from elements that take less memory together than it does."""
    if not isinstance(value, n.Call):
        return False
    given = sum(load.buffer.dtype.itemsize for load in loads(value))
    return value.function in PARTS or (given < value.dtype.itemsize and _is_cheap(value))


def _is_cheap(value: n.Expr) -> bool:
    return not isinstance(value, n.Call) or (value.function in WIDENING and all(map(_is_cheap, value.args)))


def _is_worth(array: Array) -> bool:
    """It is no copy of a constant as that lies, unless a panel, which begins with a line then; and it is not much larger than
    what it is computed from.
    """
    buffers = {load.buffer for load in loads(array.value)}
    given = sum(prod(_static(buffer)) * buffer.dtype.itemsize for buffer in buffers)
    own = prod(array.shape) * array.value.dtype.itemsize
    return 0 < own <= MOST_GROWTH * given and not _is_copy(array)


def _static(buffer: n.Buffer) -> tuple[int, ...]:
    return tuple(dim for dim in buffer.shape if isinstance(dim, int))


def _is_copy(array: Array) -> bool:
    """Whether it is one constant, whose elements it reads in the order in which they lie."""
    if array.is_panel or not isinstance(array.value, n.Load):
        return False
    index, shape = array.value.index, _static(array.value.buffer)
    scales = [prod(shape[dim + 1 :]) for dim in range(len(shape))]
    for dim in range(len(array.extents)):
        steps = [ix.stride(each, dim_name(dim)) for each in index]
        if None in steps:
            return False
        step = sum(int(each or 0) * scale for each, scale in zip(steps, scales, strict=True))
        if array.extents[dim] > 1 and step != prod(array.extents[dim + 1 :]):
            return False
    return True


def _with_arrays(nest: n.Nest, body: n.Block, found: _Preparation) -> n.Nest:
    """The nest of the body, with the arrays as its last inputs and without constants that are not read any more."""
    read = {load.buffer.name for part in statements(body) for load in loads_of(part)}
    shapes = {b.name: b.shape for b in nest.buffers if b.space is not n.Space.WORKSPACE}
    shapes |= zip((b.name for b in nest.buffers), nest.argument_shapes, strict=False)
    arrays = tuple(found.arrays.values())
    shapes |= {array.name: array.shape for array in arrays}
    inputs = [b for b in nest.buffers if b.space in (n.Space.INPUT, n.Space.INOUT)]
    preparation = _preparation(nest, inputs, found, shapes)
    kept = [b for b in inputs if b.name in read or b not in preparation.buffers]
    others = [b for b in nest.buffers if b not in inputs]
    buffers = (*kept, *arrays, *others)
    return replace(
        nest,
        buffers=buffers,
        body=body,
        argument_shapes=tuple(shapes[b.name] for b in buffers if b.name in shapes),
        preparation=preparation,
        panels=nest.panels | {array.name for array in arrays},
    )


def _preparation(nest: n.Nest, inputs: Sequence[n.Buffer], found: _Preparation, shapes: Mapping[str, Shape]) -> n.Nest:
    """The nest that computes the arrays."""
    read = {load.buffer.name for array in found.arrays for load in loads(array.value)}
    taken = tuple(b for b in inputs if b.name in read)
    made = {array: replace(buffer, space=n.Space.OUTPUT) for array, buffer in found.arrays.items()}
    body = n.Block(tuple(fills(made, n.LoopKind.PARALLEL)))
    buffers = (*taken, *made.values())
    return n.Nest(f"{nest.name}_prepare", (), buffers, body, tuple(shapes[b.name] for b in buffers))
