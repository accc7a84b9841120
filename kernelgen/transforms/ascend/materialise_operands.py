"""Factors of products that are computed get arrays of their own, so that a matrix unit can take them from memory.

    block i: for k: vector j:                      block i: vector k: a_f16[i, k] = cast<f16>(a[i, k])
      y[i, j] += f32(f16(a[i, k])) * f32(b[k, j])  ->  block i: for k: vector j:
                                                         y[i, j] += f32(a_f16[i, k]) * f32(b[k, j])

A factor is taken out where it has half precision, loads one whole array element by element, and needs more than the load.
Legal because the part stores nothing but its sums: every element has the same value wherever it is computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelgen.nest import nodes as n
from kernelgen.nest.index import from_dim, substitute_in
from kernelgen.nest.substitute import written_out
from kernelgen.nest.walk import loads, map_blocks, map_expression, statements
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, FLOAT32
from kernelgen.transforms.common.iteration_box import boxes, placed, whole_axes

HALVES = (FLOAT16, BFLOAT16)


@dataclass(frozen=True)
class _Factor:
    """A computed factor: its value, and the one load that it is made of."""

    value: n.Expr
    load: n.Load


def round_factors(nest: n.Nest) -> n.Nest:
    """The nest with an array in memory for every computed factor of half precision."""
    taken = {buffer.name for buffer in nest.buffers}
    parts: list[n.Statement] = []
    made: list[n.Buffer] = []
    for part in nest.body.statements:
        for factor in _factors(part):
            buffer = _array(factor, taken)
            taken.add(buffer.name)
            made.append(buffer)
            parts.append(_computed(factor, buffer))
            part = _taken_out(part, factor, buffer)
        parts.append(part)
    if not made:
        return nest
    return replace(nest, buffers=(*nest.buffers, *made), body=n.Block(tuple(parts)))


def _factors(part: n.Statement) -> list[_Factor]:
    """The computed factors of a part that is nothing but a sum of products."""
    found = [one for one in placed(part) if not isinstance(one.statement, n.Let)]
    last = found[-1] if found else None
    kinds = [type(one.statement) for one in found]
    if last is None or kinds != [n.Store, n.Accumulate] or not isinstance(last.statement, n.Accumulate):
        return []
    axes = boxes(last.loops)
    value = last.statement.value
    if axes is None or last.statement.function != "add" or not isinstance(value, n.Call) or value.function != "mul":
        return []
    bound = _bound(part)
    factors = [_computed_half(arg, bound, axes) for arg in value.args]
    return [] if any(not one for one in factors) else [one for one in factors if isinstance(one, _Factor)]


def _bound(part: n.Statement) -> dict[str, n.Expr]:
    return {one.name: one.value for one in statements(part) if isinstance(one, n.Let)}


def _computed_half(expr: n.Expr, bound: Mapping[str, n.Expr], axes: Mapping[str, n.Index]) -> _Factor | bool:
    """A factor that is to be taken out; True where it is a load already, False where it is no factor of half precision."""
    expr = written_out(expr, bound)
    if not isinstance(expr, n.Call) or (expr.function, expr.dtype) != ("cast", FLOAT32):
        return False
    value = expr.args[0]
    if value.dtype not in HALVES:
        return False
    if isinstance(value, n.Load):
        return True
    found = set(loads(value))
    if len(found) != 1:
        return False
    load = found.pop()
    names = whole_axes(load.index, axes)
    plain = names is not None and len(names) == len(load.index) > 1
    covered = plain and [axes[name] for name in names or ()] == [from_dim(dim) for dim in load.buffer.shape]
    return _Factor(value, load) if covered else False


def _array(factor: _Factor, taken: set[str]) -> n.Buffer:
    name = f"{factor.load.buffer.name}_{factor.value.dtype.short}"
    while name in taken:
        name += "_"
    return n.Buffer(name, factor.value.dtype, factor.load.buffer.shape, n.Space.WORKSPACE)


def _computed(factor: _Factor, buffer: n.Buffer) -> n.For:
    """The loops that fill the array."""
    names = [f"f{dim}" for dim in range(len(buffer.shape))]
    index: tuple[n.Index, ...] = tuple(n.Var(name) for name in names)
    renamed = {at.name: n.Var(name) for at, name in zip(factor.load.index, names, strict=True) if isinstance(at, n.Var)}
    body: n.Statement = n.Store(buffer, index, substitute_in(factor.value, renamed))
    for dim in reversed(range(len(names))):
        body = _loop(names[dim], buffer.shape[dim], body, dim, len(names))
    if not isinstance(body, n.For):
        raise AssertionError("an array of two axes or more")
    return body


def _loop(name: str, extent: Dim, body: n.Statement, dim: int, rank: int) -> n.For:
    kind = n.LoopKind.BLOCK if dim == 0 else n.LoopKind.VECTOR if dim == rank - 1 else n.LoopKind.SERIAL
    return n.For(name, n.Num(0), from_dim(extent), n.Block((body,)), kind)


def _taken_out(part: n.Statement, factor: _Factor, buffer: n.Buffer) -> n.Statement:
    """The part with loads in place of the factor, without the bindings that nothing names any more."""
    bound = _bound(part)
    load = n.Load(buffer, factor.load.index)

    def taken(expr: n.Expr) -> n.Expr:
        return load if written_out(expr, bound) == factor.value else expr

    def edited(one: n.Statement) -> n.Statement:
        return replace(one, value=map_expression(one.value, taken)) if isinstance(one, n.Accumulate) else one

    def block(root: n.Block) -> n.Block:
        return n.Block(tuple(edited(one) for one in root.statements))

    whole = map_blocks(n.Block((part,)), block)
    return _without_dead(whole).statements[0]


def _without_dead(root: n.Block) -> n.Block:
    named: set[str] = set()
    values = [one.value for one in statements(root) if isinstance(one, n.Store | n.Accumulate)]
    bound = _bound(root)
    while values:
        for name in _refs(values.pop()):
            if name not in named:
                named.add(name)
                values.append(bound[name])

    def block(inner: n.Block) -> n.Block:
        return n.Block(tuple(one for one in inner.statements if not isinstance(one, n.Let) or one.name in named))

    return map_blocks(root, block)


def _refs(expr: n.Expr) -> list[str]:
    found: list[str] = []

    def note(each: n.Expr) -> n.Expr:
        if isinstance(each, n.Ref):
            found.append(each.name)
        return each

    map_expression(expr, note)
    return found
