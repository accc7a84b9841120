"""Names for unknown extents: every ``-1`` of the JSON becomes a symbol, extents that operators tie together the same one.

x[-1, 64] + y[-1, 1] -> z[-1, 64]        x[s0, 64] + y[s0, 1] -> z[s0, 64]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernelgen.composite.description import Tensor
from kernelgen.composite.document import IN_PLACE, Document, Operation, map_tensors
from kernelgen.composite.scalar_rules import ELEMENTWISE, REDUCTIONS
from kernelgen.disjoint_sets import DisjointSets
from kernelgen.tensor.dims import Dim, Shape, sym, symbols_of
from kernelgen.tensor.operators.shape import BROADCAST_TO, TRANSPOSE

UNKNOWN = -1
"""How the JSON writes an extent that is known at run time only."""

Place = tuple[str, int]
"""A tensor's name and the number of a dim."""


def name_unknown_extents(desc: Document) -> Document:
    """The description in which no shape holds :data:`UNKNOWN`; the same object when none does.

    Symbols are ``s0, s1, ...`` in order of first appearance, past the names that are in use already.
    """
    shapes = [t.shape for t in _tensors(desc)]
    if not any(UNKNOWN in shape for shape in shapes):
        return desc
    classes = _Classes()
    for op in desc.ops:
        for left, right in _tied(op):
            classes.join(left, right)
    taken = {name for shape in shapes for name in symbols_of(shape)}
    fresh = (name for i in range(len(taken) + sum(map(len, shapes))) if (name := f"s{i}") not in taken)
    named: dict[Dim | Place, Dim] = {}

    def resolved(tensor: Tensor) -> Tensor:
        return replace(tensor, shape=tuple(extent(_key(tensor, d)) for d in range(len(tensor.shape))))

    def extent(key: Dim | Place) -> Dim:
        root = classes.root(key)
        if not isinstance(root, tuple):
            return root
        if root not in named:
            named[root] = sym(next(fresh))
        return named[root]

    return map_tensors(desc, resolved)


class _Classes:
    """Places and known extents that are equal. A class with a known extent has it as its root."""

    def __init__(self) -> None:
        self.equal: DisjointSets[Dim | Place] = DisjointSets()

    def root(self, key: Dim | Place) -> Dim | Place:
        return self.equal.of(key)

    def join(self, left: Dim | Place, right: Dim | Place) -> None:
        a, b = self.root(left), self.root(right)
        if isinstance(b, tuple):
            self.equal.join(a, b)
        elif isinstance(a, tuple):
            self.equal.join(b, a)


def _key(tensor: Tensor, dim: int) -> Dim | Place:
    extent = tensor.shape[dim]
    return (tensor.name, dim) if extent == UNKNOWN else extent


def _tied(op: Operation) -> Iterator[tuple[Dim | Place, Dim | Place]]:
    """The dims of an operator that have one extent. A written 1 is taken for a broadcast dim, an unknown extent never."""
    result = op.outs[0]
    if op.op in ELEMENTWISE or op.op in IN_PLACE or op.op is BROADCAST_TO:
        for operand in op.args:
            shift = len(result.shape) - len(operand.shape)
            for dim in range(max(0, -shift), len(operand.shape)):
                if operand.shape[dim] != 1:
                    yield _key(operand, dim), _key(result, dim + shift)
        return
    source = op.args[0]
    if op.op in REDUCTIONS:
        pairs = _kept(op, source.shape)
    elif op.op is TRANSPOSE:
        pairs = enumerate(p % len(source.shape) for p in op.attrs.ints("perm"))
    else:
        return
    for to, of in pairs:
        if to < len(result.shape):
            yield _key(source, of), _key(result, to)


def _kept(op: Operation, shape: Shape) -> Iterator[tuple[int, int]]:
    """(dim of the result, dim of the operand) for the dims that a reduction keeps."""
    reduced = {axis % len(shape) for axis in op.attrs.ints("axis", ())} or set(range(len(shape)))
    kept = [dim for dim in range(len(shape)) if dim not in reduced]
    return ((dim if op.attrs.bool("keep_dims", False) else place, dim) for place, dim in enumerate(kept))


def _tensors(desc: Document) -> Iterator[Tensor]:
    yield from desc.inputs
    for op in desc.ops:
        yield from (*op.args, *op.outs)
    yield from desc.outputs
