"""KernelDesc -> Scop: one statement per operator.

Every tensor is a dense buffer over its leaf axes (:mod:`kernelgen.poly.pairing` finds them), dims of extent 1 have no
axis, and every operator is a statement over the leaf axes of its result (of its operand, for a reduction). Views are
copies here; grouping removes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

from kernelgen import vocabulary
from kernelgen.desc import KernelDesc, OpDesc, TensorDesc
from kernelgen.dims import Dim, Sym
from kernelgen.dtypes import BFLOAT16, FLOAT16, FLOAT32
from kernelgen.errors import UnsupportedError
from kernelgen.nest import index as ix
from kernelgen.nest.initialize import neutral_element
from kernelgen.nest.nodes import Accumulate, Buffer, Expr, Index, Literal, Load, Num, Space, Store, Var
from kernelgen.poly.axes import Axis
from kernelgen.poly.pairing import BROADCASTS, COPIES, TensorAxes, permutation, reduced_dims
from kernelgen.poly.scop import Iterator, Scop, Statement

ALGEBRA = vocabulary.ExprAlgebra()


def to_scop(desc: KernelDesc) -> Scop:
    """The statements of a checked description. Raises UnsupportedError with a reason code."""
    builder = _Builder(desc, TensorAxes.of_ops(desc.ops))
    for position, op in enumerate(desc.ops):
        builder.lower(op, f"{op.name}_{position}")
    return builder.finish()


@dataclass(frozen=True)
class _Space:
    """An iteration space made of groups of axes, one group per dim: iterators are numbered through."""

    iterators: tuple[Iterator, ...]
    groups: tuple[tuple[Index, ...], ...]

    @staticmethod
    def over(groups: Sequence[Sequence[Axis]]) -> _Space:
        counter = 0
        iterators: list[Iterator] = []
        named: list[tuple[Index, ...]] = []
        for group in groups:
            names = [f"i{counter + k}" for k in range(len(group))]
            iterators += [Iterator(name, axis.extent) for name, axis in zip(names, group, strict=True)]
            named.append(tuple(Var(name) for name in names))
            counter += len(group)
        return _Space(tuple(iterators), tuple(named))

    @property
    def index(self) -> tuple[Index, ...]:
        return tuple(index for group in self.groups for index in group)


@dataclass
class _Builder:
    desc: KernelDesc
    axes: TensorAxes
    buffers: dict[str, Buffer] = field(default_factory=dict)
    renamed: dict[str, TensorDesc] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    assigned: dict[str, Statement] = field(default_factory=dict)

    def __post_init__(self) -> None:
        updated = self.desc.updated_inputs
        for position, tensor in enumerate(self.desc.inputs):
            space = Space.INOUT if position in updated else Space.INPUT
            self.buffers[tensor.name] = self.buffer(tensor, space)
        self.outputs = {tensor.name for tensor in self.desc.outputs} - set(self.buffers)

    def buffer(self, tensor: TensorDesc, space: Space, name: str = "") -> Buffer:
        """The dense buffer of a tensor over its leaf axes."""
        shape = tuple(axis.extent for group in self.axes.groups(tensor) for axis in group)
        return Buffer(name or tensor.name, tensor.dtype, shape, space)

    def lower(self, op: OpDesc, name: str) -> None:
        if op.name in ("Assign", "InplaceAssign"):
            self.assign(op, name)
        elif op.name in vocabulary.REDUCTIONS:
            self.reduce(op, name)
        elif op.name == "Transpose":
            self.transpose(op, name)
        elif op.name in COPIES:
            self.reshape(op, name)
        else:
            self.pointwise(op, name)

    def pointwise(self, op: OpDesc, name: str) -> None:
        """``out[i] = f(operands at the broadcast of i)``."""
        space = _Space.over(self.axes.groups(op.output))
        if op.name in BROADCASTS:
            value = self.read(op.inputs[0], space)
        else:
            operands = [self.read(operand, space) for operand in op.inputs]
            value = vocabulary.ELEMENTWISE[op.name](ALGEBRA, operands, op)
        self.define(op.output, space, value, name)

    def reshape(self, op: OpDesc, name: str) -> None:
        """The identity on leaf axes, or ``out[i] = in[unflatten(flatten(i))]`` where the axes do not line up."""
        source, result = self.resolve(op.inputs[0]), op.output
        space = _Space.over(self.axes.groups(result))
        if self.literal(source) is not None:
            self.define(result, space, self.read(source, space), name)
            return
        index = space.index
        if (op.inputs[0].name, result.name) in self.axes.opaque:
            index = _unflatten(_flatten(space), self.source(source).shape)
        self.define(result, space, Load(self.source(source), index), name)

    def transpose(self, op: OpDesc, name: str) -> None:
        """``out[i_0, ...] = in[...]`` where dim d of the result is dim perm[d] of the operand."""
        space = _Space.over(self.axes.groups(op.output))
        groups: dict[int, tuple[Index, ...]] = dict(zip(permutation(op), space.groups, strict=True))
        source = self.resolve(op.inputs[0])
        if self.literal(source) is not None:
            value = self.read(source, space)
        else:
            value = Load(self.source(source), tuple(i for d in range(len(groups)) for i in groups[d]))
        self.define(op.output, space, value, name)

    def reduce(self, op: OpDesc, name: str) -> None:
        """``acc[kept] = f(acc[kept], in[all])``; float16 and bfloat16 sums and products run in float32 (as in AKG)."""
        operand = op.inputs[0]
        space = _Space.over(self.axes.groups(operand))
        reduced = reduced_dims(op)
        kept = tuple(i for d, group in enumerate(space.groups) if d not in reduced for i in group)
        function = vocabulary.REDUCTIONS[op.name]
        value = self.read(operand, space)
        wide = op.output.dtype in (FLOAT16, BFLOAT16) and function in ("add", "mul")
        if not wide:
            target = self.target(op.output)
            self.emit(name, space, Accumulate(target, kept, function, ALGEBRA.cast(value, target.dtype)))
            return
        partial = replace(self.buffer(op.output, Space.WORKSPACE, f"{op.output.name}_f32"), dtype=FLOAT32)
        self.buffers[partial.name] = partial
        self.emit(name, space, Accumulate(partial, kept, function, ALGEBRA.cast(value, FLOAT32)))
        result = _Space.over(self.axes.groups(op.output))
        self.define(op.output, result, ALGEBRA.cast(Load(partial, result.index), op.output.dtype), f"{name}_cast")

    def assign(self, op: OpDesc, name: str) -> None:
        """The destination is written after everything else has read it; the result is the named operand's value."""
        destination = op.inputs[0]
        target = self.buffers.get(destination.name)
        if target is None or target.space is not Space.INOUT:
            raise UnsupportedError("defective-input", f"{op.name}: {destination.name!r} is not an input of the kernel")
        fresh = self.standing_for(destination, op.inputs[1], f"{name}_value")
        space = _Space.over(self.axes.groups(destination))
        self.assigned.pop(destination.name, None)  # an earlier value is not seen any more
        if not _is_empty(space.iterators):
            store = Store(target, space.index, self.read(fresh, space))
            self.assigned[destination.name] = Statement(name, space.iterators, (store,))
        result = op.inputs[2] if op.name == "InplaceAssign" else fresh
        self.renamed[op.output.name] = self.resolve(result)
        self.renamed[destination.name] = fresh

    def standing_for(self, tensor: TensorDesc, source: TensorDesc, name: str) -> TensorDesc:
        """The source itself, or a copy as the tensor that it stands for where it differs or its buffer is updated too."""
        found = self.resolve(source)
        updated = found.value is None and self.source(found).space is Space.INOUT
        if not updated and (found.shape, found.dtype) == (tensor.shape, tensor.dtype):
            return found
        copy = replace(tensor, name=name)
        self.axes.by_name[name] = self.axes.of(tensor)
        space = _Space.over(self.axes.groups(copy))
        self.define(copy, space, self.read(source, space), name)
        return copy

    def define(self, tensor: TensorDesc, space: _Space, value: Expr, name: str) -> None:
        target = self.target(tensor)
        self.emit(name, space, Store(target, space.index, ALGEBRA.cast(value, target.dtype)))

    def emit(self, name: str, space: _Space, body: Store | Accumulate) -> None:
        """Adds a statement. An empty box computes nothing; an empty reduction is its neutral element."""
        iterators = space.iterators
        if isinstance(body, Accumulate) and (_is_empty(iterators) or len(body.index) == len(iterators)):
            kept = {index.name for index in body.index if isinstance(index, Var)}
            value = body.value if not _is_empty(iterators) else neutral_element(body.function, body.buffer.dtype)
            iterators = tuple(it for it in iterators if it.name in kept)
            body = Store(body.buffer, body.index, value)
        if not _is_empty(iterators):
            self.statements.append(Statement(name, iterators, (body,)))

    def target(self, tensor: TensorDesc) -> Buffer:
        """The buffer that an operator's result is written to."""
        made = self.buffer(tensor, Space.OUTPUT if tensor.name in self.outputs else Space.WORKSPACE)
        self.buffers[tensor.name] = made
        return made

    def resolve(self, tensor: TensorDesc) -> TensorDesc:
        """Follows the results of assignments to the value they stand for."""
        return self.renamed.get(tensor.name, tensor)

    def literal(self, tensor: TensorDesc) -> Literal | None:
        if tensor.value is None:
            return None
        return Literal(tensor.value, tensor.dtype)

    def source(self, tensor: TensorDesc) -> Buffer:
        if tensor.name not in self.buffers:
            raise UnsupportedError("defective-input", f"tensor {tensor.name!r} is used before it is computed")
        return self.buffers[tensor.name]

    def read(self, tensor: TensorDesc, space: _Space) -> Expr:
        """A tensor at a point of an iteration space, aligned on the last dims; dims of extent 1 are broadcast."""
        tensor = self.resolve(tensor)
        if (literal := self.literal(tensor)) is not None:
            return literal
        groups = self.axes.groups(tensor)
        aligned = space.groups[len(space.groups) - len(groups) :] if len(groups) <= len(space.groups) else None
        if aligned is None:  # more dims than the result: the leading ones are 1
            groups, aligned = groups[len(groups) - len(space.groups) :], space.groups
        index = tuple(i for group, indices in zip(groups, aligned, strict=True) if group for i in indices)
        return Load(self.source(tensor), index)

    def finish(self) -> Scop:
        arguments = [self.buffers[tensor.name] for tensor in self.desc.inputs]
        for position, tensor in enumerate(self.desc.outputs):
            arguments.append(self.output(tensor, position, {b.name for b in arguments}))
        names = {buffer.name for buffer in arguments}
        temporaries = [b for b in self.buffers.values() if b.name not in names]
        shapes = tuple(tensor.shape for tensor in (*self.desc.inputs, *self.desc.outputs))
        statements = (*self.statements, *self.assigned.values())
        return Scop(self.desc.name, self.desc.symbols, (*arguments, *temporaries), statements, shapes)

    def output(self, tensor: TensorDesc, position: int, taken: set[str]) -> Buffer:
        """The buffer of a kernel output; an output that is an input, a constant or repeated is copied."""
        computed = self.buffers.get(tensor.name)
        if computed is not None and computed.space is Space.OUTPUT and computed.name not in taken:
            return computed
        target = self.buffer(tensor, Space.OUTPUT, f"{tensor.name}_out{position}")
        space = _Space.over(self.axes.groups(tensor))
        value = ALGEBRA.cast(self.read(tensor, space), target.dtype)
        self.emit(f"Output_{position}", space, Store(target, space.index, value))
        return target


def _is_empty(iterators: Sequence[Iterator]) -> bool:
    return any(iterator.extent == 0 for iterator in iterators)


def _flatten(space: _Space) -> Index:
    """The row-major number of a point."""
    flat: Index = Num(0)
    for iterator in space.iterators:
        flat = ix.add(ix.multiply(flat, ix.from_dim(iterator.extent)), Var(iterator.name))
    return flat


def _unflatten(flat: Index, shape: Sequence[Dim]) -> tuple[Index, ...]:
    """The point with a row-major number. Sizes must be constant: a division by a symbol is not quasi-affine."""
    sizes = [dim for dim in shape if not isinstance(dim, Sym)]
    if len(sizes) < len(shape):
        raise UnsupportedError("unsupported-layout", "a reshape of symbolic sizes that does not line up")
    index: list[Index] = []
    for position, size in enumerate(sizes):
        coordinate = ix.floor_divide(flat, Num(prod(sizes[position + 1 :])))
        index.append(coordinate if position == 0 else ix.modulo(coordinate, Num(size)))
    return tuple(index)
