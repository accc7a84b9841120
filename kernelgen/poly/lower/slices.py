"""Slices, Split, Concat and pads: results and operands meet at shifted or strided places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernelgen.composite.slice_shapes import Cut, cuts
from kernelgen.errors import UnsupportedError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Index, Num
from kernelgen.poly.lower.builder import Builder
from kernelgen.poly.lower.lowering import Lowering
from kernelgen.poly.lower.points import Place
from kernelgen.poly.model.factored_axes import TensorAxes
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.padding import UNPAD_AKG
from kernelgen.tensor.operators.type_rules import single_axis


def _cuts(node: Node) -> dict[int, Cut]:
    """What a slice takes of each dim of its operand."""
    if node.op is UNPAD_AKG:
        tails = zip(node.args[0].shape, node.attrs.ints("tail"), strict=True)
        return {d: Cut(d, count=dim - tail) for d, (dim, tail) in enumerate(tails)}
    try:
        return {cut.axis: cut for cut in cuts(node) if cut.axis is not None}
    except ValueError as error:
        raise UnsupportedError("unsupported-attr", f"{node.op.name}: {error}") from error


def _is_whole(cut: Cut, extent: Dim) -> bool:
    return (cut.start, cut.step, cut.count) == (0, 1, extent)


def _place(cut: Cut, position: Index) -> Index:
    return ix.add(ix.multiply(position, Num(cut.step)), ix.from_dim(cut.start))


def _result_dims(node: Node, taken: Mapping[int, Cut]) -> dict[int, int]:
    """The dim of the result for each dim of the operand that more than one element is taken of."""
    wanted = [d for d, cut in taken.items() if cut.count != 1]
    found = [d for d, extent in enumerate(node.out.shape) if extent != 1]
    if [taken[d].count for d in wanted] != [node.out.shape[d] for d in found]:
        counts = [str(cut.count) for cut in taken.values()]
        raise UnsupportedError("defective-input", f"{node.op.name} takes {counts}, described as {list(node.out.shape)}")
    return dict(zip(wanted, found, strict=True))


def _relate_slice(axes: TensorAxes, node: Node) -> None:
    taken = _cuts(node)
    source, result = axes.of(node.args[0]), axes.of(node.out)
    places = _result_dims(node, taken)
    for d, cut in taken.items():
        if d in places and _is_whole(cut, node.args[0].shape[d]):
            axes.pair((source[d],), (result[places[d]],), node)
        else:
            axes.hold(source[d], result[places[d]] if d in places else None)


def _slice(builder: Builder, node: Node, name: str) -> None:
    """``out[i] = in[start + step * i]``."""
    taken, points = _cuts(node), builder.points(node.out)
    results = _result_dims(node, taken)
    places: list[Place] = []
    for d, extent in enumerate(node.args[0].shape):
        if d in results and _is_whole(taken[d], extent):
            places.append(points.groups[results[d]])
        else:
            places.append(_place(taken[d], points.position(results[d]) if d in results else Num(0)))
    builder.define(node.out, points, builder.at(node.args[0], places), name)


# ---------------------------------------------------------------- Split and Concat


def _relate_parts(axes: TensorAxes, node: Node, whole: Value, parts: Sequence[Value]) -> None:
    for part in parts:
        for d, (a, b) in enumerate(zip(axes.of(part), axes.of(whole), strict=True)):
            if d != single_axis(node, 0) or part.shape == whole.shape:
                axes.pair((a,), (b,), node)
            else:
                axes.hold(a, b)


def _relate_split(axes: TensorAxes, node: Node) -> None:
    _relate_parts(axes, node, node.args[0], node.outs)


def _split(builder: Builder, node: Node, name: str) -> None:
    """``part[i] = in[offset + i]`` along the axis."""
    axis, offset = single_axis(node, 0), 0
    for number, part in enumerate(node.outs):
        points = builder.points(part)
        places: list[Place] = list(points.groups)
        if part.shape != node.args[0].shape:
            places[axis] = ix.add(points.position(axis), ix.from_dim(offset))
        builder.define(part, points, builder.at(node.args[0], places), f"{name}_{number}")
        offset = offset + part.shape[axis]


def _relate_concat(axes: TensorAxes, node: Node) -> None:
    _relate_parts(axes, node, node.out, node.args)


def _concat(builder: Builder, node: Node, name: str) -> None:
    """``out[offset + i] = part[i]`` along the axis: the parts of the result do not overlap."""
    axis, offset = single_axis(node, 0), 0
    target = builder.target(node.out)
    for number, part in enumerate(node.args):
        points = builder.points(part)
        places: list[Place] = list(points.groups)
        if part.shape != node.out.shape:
            places[axis] = ix.add(points.position(axis), ix.from_dim(offset))
        builder.store(target, points, builder.index(node.out, places), builder.read(part, points), f"{name}_{number}")
        offset = offset + part.shape[axis]


# ---------------------------------------------------------------- pads


def _relate_pad(axes: TensorAxes, node: Node) -> None:
    for a, b in zip(axes.of(node.args[0]), axes.of(node.out), strict=True):
        if a is not None and b is not None and a.extent == b.extent:
            axes.pair((a,), (b,), node)
        else:
            axes.hold(a, b)


def _pad(builder: Builder, node: Node, name: str) -> None:
    """``out[i] = in[i - head]`` inside, else ``pad_val``."""
    source, points = node.args[0], builder.points(node.out)
    places: list[Place] = list(points.groups)
    padded = [d for d, dim in enumerate(source.shape) if dim != node.out.shape[d]]
    for d in padded:
        places[d] = ix.subtract(points.position(d), Num(node.attrs.ints("head")[d]))
    value = builder.within(source, places, padded, node.attrs.number("pad_val", 0.0))
    builder.define(node.out, points, value, name)


SLICE = Lowering(_relate_slice, _slice)
SPLIT = Lowering(_relate_split, _split)
CONCAT = Lowering(_relate_concat, _concat)
PAD = Lowering(_relate_pad, _pad)
