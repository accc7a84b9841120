"""The scop under construction: buffers, statements, and how a tensor's element is read and written.

Every tensor is a dense buffer over its leaf axes (:mod:`kernelgen.poly.model.factored_axes` finds them), dims of extent 1
have no axis. A lowering function says what an operator computes at the points of its result, or where it accumulates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from kernelgen.composite import scalar_rules as vocabulary
from kernelgen.composite.description import KernelDesc, number_of
from kernelgen.errors import UnsupportedError
from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.index import variables
from kernelgen.nest.neutral import neutral_element
from kernelgen.poly.lower.points import Place, Points, nearest_place, unflatten
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.poly.model.scop import Scop, Statement
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT32, INT64, DType
from kernelgen.tensor.graph import Value

ALGEBRA = vocabulary.ExprAlgebra()


@dataclass
class Builder:
    """Collects buffers and statements; ``axes`` relates the dims of all values, and knows their names."""

    desc: KernelDesc
    axes: TensorAxes
    buffers: dict[str, n.Buffer] = field(default_factory=dict)
    renamed: dict[Value, Value] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    assigned: dict[Value, Statement] = field(default_factory=dict)

    def __post_init__(self) -> None:
        updated = self.desc.updates
        for position, value in enumerate(self.desc.graph.inputs):
            space = n.Space.INOUT if position in updated else n.Space.INPUT
            self.buffers[self.axes.name(value)] = self.buffer(value, space)
        self.outputs = set(self.desc.results) - set(self.desc.graph.inputs)

    # ------------------------------------------------------------ buffers

    def buffer(self, tensor: Value, space: n.Space, name: str = "") -> n.Buffer:
        """The dense buffer of a ``tensor`` over its leaf axes, in this ``space``, called ``name`` or like the tensor."""
        shape = tuple(axis.extent for group in self.axes.groups(tensor) for axis in group)
        return n.Buffer(name or self.axes.name(tensor), tensor.dtype, shape, space)

    def target(self, tensor: Value) -> n.Buffer:
        """The buffer that an operator's result is written to."""
        made = self.buffer(tensor, n.Space.OUTPUT if tensor in self.outputs else n.Space.WORKSPACE)
        self.buffers[made.name] = made
        return made

    def temporary(self, name: str, dtype: DType, shape: Sequence[Dim]) -> n.Buffer:
        """A buffer ``name`` of this ``dtype`` and ``shape`` that only this operator knows; extents of 1 are dropped."""
        made = n.Buffer(name, dtype, tuple(dim for dim in shape if dim != 1), n.Space.WORKSPACE)
        self.buffers[name] = made
        return made

    def resolve(self, tensor: Value) -> Value:
        """Follows the results of assignments to the value they stand for."""
        return self.renamed.get(tensor, tensor)

    def literal(self, tensor: Value) -> n.Literal | None:
        """The constant of an inline tensor."""
        number = number_of(tensor)
        return None if number is None else n.Literal(number, tensor.dtype)

    def source(self, tensor: Value) -> n.Buffer:
        """The buffer that holds a computed tensor. Raises UnsupportedError for one that was not computed yet."""
        name = self.axes.name(tensor)
        if name not in self.buffers:
            raise UnsupportedError("defective-input", f"tensor {name!r} is used before it is computed")
        return self.buffers[name]

    # ------------------------------------------------------------ reading

    def points(self, tensor: Value) -> Points:
        """All elements of a tensor."""
        return Points.over(self.axes.groups(tensor))

    def read(self, tensor: Value, points: Points) -> n.Expr:
        """A tensor at a point of an iteration space, aligned on the last dims; dims of extent 1 are broadcast."""
        tensor = self.resolve(tensor)
        if (literal := self.literal(tensor)) is not None:
            return literal
        groups = self.axes.groups(tensor)
        aligned = points.groups[len(points.groups) - len(groups) :] if len(groups) <= len(points.groups) else None
        if aligned is None:  # more dims than the result: the leading ones are 1
            groups, aligned = groups[len(groups) - len(points.groups) :], points.groups
        index = tuple(i for group, indices in zip(groups, aligned, strict=True) if group for i in indices)
        return n.Load(self.source(tensor), index)

    def at(self, tensor: Value, places: Sequence[Place]) -> n.Expr:
        """A tensor at a place, one for each dim."""
        tensor = self.resolve(tensor)
        literal = self.literal(tensor)
        return literal if literal is not None else n.Load(self.source(tensor), self.index(tensor, places))

    def index(self, tensor: Value, places: Sequence[Place]) -> tuple[n.Index, ...]:
        """The index of a place over the leaf axes."""
        index: list[n.Index] = []
        for group, place in zip(self.axes.groups(tensor), places, strict=True):
            extents = [axis.extent for axis in group]
            index += (place if group else ()) if isinstance(place, tuple) else unflatten(place, extents)
        return tuple(index)

    def within(self, tensor: Value, places: Sequence[Place], dims: Sequence[int], otherwise: float) -> n.Expr:
        """A ``tensor`` at ``places``, or the constant ``otherwise`` where one of the ``dims`` is left: the place
        itself is clamped.
        """
        if any(tensor.shape[dim] == 0 for dim in dims):
            return ALGEBRA.literal(otherwise, tensor.dtype)
        held = list(places)
        conditions: list[n.Expr] = []
        for dim in dims:
            place = places[dim]
            assert not isinstance(place, tuple)
            conditions.append(inside(place, tensor.shape[dim]))
            held[dim] = nearest_place(place, tensor.shape[dim])
        return where(conditions, self.at(tensor, held), ALGEBRA.literal(otherwise, tensor.dtype))

    # ------------------------------------------------------------ writing

    def define(self, tensor: Value, points: Points, value: n.Expr, name: str) -> None:
        """``tensor[points] = value``, in a statement called ``name``."""
        target = self.target(tensor)
        self.store(target, points, points.index, value, name)

    def store(self, target: n.Buffer, points: Points, index: tuple[n.Index, ...], value: n.Expr, name: str) -> None:
        """``target[index] = value`` at all ``points``, in a statement called ``name``; none where there is no point."""
        if not points.is_empty:
            body = n.Store(target, index, ALGEBRA.cast(value, target.dtype))
            self.statements.append(Statement(name, points.iterators, (body,)))

    def accumulate(
        self, target: n.Buffer, points: Points, index: tuple[n.Index, ...], function: str, value: n.Expr, name: str
    ) -> None:
        """``target[index] = function(target[index], value)`` at all ``points``, from the neutral element on; ``name``
        is the statement's.

        A reduction over nothing is the neutral element; one over a single term is that term.
        """
        kept = {each for i in index for each in variables(i)}
        value = ALGEBRA.cast(value, target.dtype)
        if points.is_empty or len(kept) == len(points.iterators):
            if points.is_empty:
                value = neutral_element(function, target.dtype)
            points = replace(points, iterators=tuple(it for it in points.iterators if it.name in kept))
            self.store(target, points, index, value, name)
        else:
            self.statements.append(Statement(name, points.iterators, (n.Accumulate(target, index, function, value),)))

    def reduce(
        self,
        tensor: Value,
        points: Points,
        places: Sequence[Place],
        value: tuple[str, n.Expr, DType],
        name: str,
        finish: Callable[[n.Expr], n.Expr] | None = None,
    ) -> None:
        """A result that is accumulated: ``tensor[places]`` over ``points``; ``value`` is the function, its terms and
        the data type that it runs in.

        Where that is not the result's, or where ``finish`` makes something of the total, the total has a buffer of its
        own. Statements are called after ``name``.
        """
        function, term, wide = value
        index = self.index(tensor, places)
        if finish is None and wide == tensor.dtype:
            self.accumulate(self.target(tensor), points, index, function, term, name)
            return
        partial = replace(self.buffer(tensor, n.Space.WORKSPACE, f"{self.axes.name(tensor)}_{wide.short}"), dtype=wide)
        self.buffers[partial.name] = partial
        self.accumulate(partial, points, index, function, term, name)
        result = self.points(tensor)
        total: n.Expr = n.Load(partial, result.index)
        self.define(tensor, result, finish(total) if finish else total, f"{name}_cast")

    def scatter(
        self,
        tensor: Value,
        start: Callable[[Points], n.Expr],
        points: Points,
        places: Sequence[Place],
        term: tuple[Sequence[n.Expr], n.Expr],
        name: str,
    ) -> None:
        """``tensor = start; tensor[places] += term`` over ``points``, where all conditions hold, which are the first
        of the pair.

        Statements are called after ``name``.
        """
        wide = wide_type(tensor.dtype)
        result, conditions, value = self.points(tensor), *term
        partial = replace(self.buffer(tensor, n.Space.WORKSPACE, f"{self.axes.name(tensor)}_{wide.short}"), dtype=wide)
        target = self.target(tensor) if wide == tensor.dtype else partial
        self.buffers[target.name] = target
        self.store(target, result, result.index, start(result), f"{name}_start")
        if not points.is_empty and not result.is_empty:
            added = where(conditions, ALGEBRA.cast(value, wide), ALGEBRA.literal(0, wide))
            body = n.Accumulate(target, self.index(tensor, places), "add", added)
            self.statements.append(Statement(name, points.iterators, (body,)))
        if wide != tensor.dtype:
            self.define(tensor, result, n.Load(partial, result.index), f"{name}_cast")

    # ------------------------------------------------------------ the whole

    def finish(self) -> Scop:
        """The scop of all statements; updates of inputs come last."""
        arguments = [self.source(value) for value in self.desc.graph.inputs]
        for position in range(len(self.desc.results)):
            arguments.append(self.output(position, {b.name for b in arguments}))
        names = {buffer.name for buffer in arguments}
        temporaries = [b for b in self.buffers.values() if b.name not in names]
        shapes = tuple(tensor.shape for tensor in (*self.desc.inputs, *self.desc.outputs))
        statements = (*self.statements, *self.assigned.values())
        return Scop(self.desc.name, self.desc.symbols, (*arguments, *temporaries), statements, shapes)

    def output(self, position: int, taken: set[str]) -> n.Buffer:
        """The buffer of the kernel's output at ``position``; one that is an input, a constant or
        ``taken`` by an earlier output is copied.
        """
        value = self.desc.results[position]
        computed = self.buffers.get(self.axes.name(value)) if value.constant is None else None
        if computed is not None and computed.space is n.Space.OUTPUT and computed.name not in taken:
            return computed
        target = self.buffer(value, n.Space.OUTPUT, f"{self.desc.outputs[position].name}_out{position}")
        points = self.points(value)
        self.store(target, points, points.index, self.read(value, points), f"Output_{position}")
        return target


def wide_type(dtype: DType) -> DType:
    """What sums and products of a data type run in: half precision in float32, as in AKG."""
    return FLOAT32 if dtype in (FLOAT16, BFLOAT16) else dtype


def where(conditions: Sequence[n.Expr], value: n.Expr, otherwise: n.Expr) -> n.Expr:
    """The ``value`` where all ``conditions`` hold, else ``otherwise``."""
    if not conditions:
        return value
    both = conditions[0]
    for condition in conditions[1:]:
        both = ALGEBRA.call("logical_and", both, condition)
    return ALGEBRA.call("select", both, value, otherwise)


def inside(place: n.Index, extent: Dim) -> n.Expr:
    """``0 <= place < extent``."""
    values = list(ix.values(place))
    number = values[0] if values and place == n.ValueIndex(values[0]) else n.IndexValue(place, INT64)
    if number.dtype not in (INT32, INT64):
        number = ALGEBRA.cast(number, INT64)
    limit = n.IndexValue(ix.from_dim(extent), number.dtype) if not isinstance(extent, int) else extent
    return ALGEBRA.call("logical_and", ALGEBRA.call("greater_equal", number, 0), ALGEBRA.call("less", number, limit))
