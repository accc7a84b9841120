"""Recipes of operators that move, repeat, cut, join, look up or make elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from tests.fuzz.models.contents import DATA_TYPES, numpy_dtype
from tests.fuzz.models.draft import SETS, Dims, Draft, Extent, Known, Proposal, Rejected, is_static
from tests.fuzz.models.elementwise import Make

TO_THE_END = 2**63 - 1
ONE: Extent = (1,) * SETS


def static(x: Known) -> list[int]:
    """The shape, when it is the same in all sets."""
    if not all(map(is_static, x.dims)):
        raise Rejected("symbolic")
    return [extent[0] for extent in x.dims]


def reshape(d: Draft) -> Proposal:
    """To the factors in another order; symbolic extents are kept by 0 or found by -1."""
    x = d.operand(rank=(0, 4))
    if all(map(is_static, x.dims)):
        target = _factors(d, prod(static(x)))
        if target and 0 not in target and d.chance(0.4):
            target[d.random.randrange(len(target))] = -1
        return Proposal([x, d.parameters(target)])
    return Proposal([x, _symbolic_target(d, x)])


def _factors(d: Draft, count: int) -> list[int]:
    """Numbers with that product."""
    if count == 0:
        return [0, 3] if d.chance(0.5) else [0]
    found: list[int] = []
    while count > 1 and len(found) < 4:
        factor = d.random.choice([f for f in range(2, count + 1) if count % f == 0])
        found.append(factor)
        count //= factor
    return [*found, count] if count > 1 else [*found, 1] if d.chance(0.3) else found


def _symbolic_target(d: Draft, x: Known) -> Known:
    """The shape to go to as a constant, or computed from another value's shape."""
    if d.chance(0.3):
        same = [y for y in d.values if y.dtype == np.int64 and y.rank == 1 and not y.constant]
        fitting = [y for y in same if all(np.prod(a) == b.size for a, b in zip(y.arrays, x.arrays, strict=True))]
        if fitting:
            return d.random.choice(fitting)
    symbolic = [axis for axis, extent in enumerate(x.dims) if not is_static(extent)]
    if d.chance(0.5):
        return d.parameters([-1] if d.chance(0.5) else [0, -1] if x.rank > 1 else [1, -1])
    target = [0 if axis in symbolic else extent[0] for axis, extent in enumerate(x.dims)]
    cut = symbolic[-1] + 1
    return d.parameters([*target[:cut], *_factors(d, prod(target[cut:]))])


def transpose(d: Draft) -> Proposal:
    """By a permutation, or reversed."""
    x = d.operand(rank=(0, 4))
    order = d.random.sample(range(x.rank), x.rank)
    return Proposal([x], {"perm": order} if x.rank and d.chance(0.8) else {})


def _axes(d: Draft, axes: Sequence[int]) -> tuple[list[Known | None], dict[str, Any]]:
    """Axes as the operand or attribute that they are at this opset."""
    return ([], {"axes": list(axes)}) if d.takes("axes") else ([d.parameters(list(axes))], {})


def unsqueeze(d: Draft) -> Proposal:
    """New axes anywhere."""
    x = d.operand(rank=(0, 3))
    rank = x.rank + d.random.choice((1, 1, 2))
    places = d.random.sample(range(rank), rank - x.rank)
    negative = d.opset >= 11 and d.chance(0.3)
    operands, given = _axes(d, [place - rank if negative else place for place in places])
    return Proposal([x, *operands], given)


def squeeze(d: Draft) -> Proposal:
    """Some axes of extent 1, or all."""
    x = d.operand(rank=(0, 4), where=lambda x: any(set(extent) == {1} for extent in x.dims), otherwise=(ONE,))
    places = [axis for axis, extent in enumerate(x.dims) if set(extent) == {1}]
    if d.chance(0.3) and not any(1 in extent and not is_static(extent) for extent in x.dims):
        return Proposal([x])
    operands, given = _axes(d, d.random.sample(places, d.random.randint(1, len(places))))
    return Proposal([x, *operands], given)


def flatten(d: Draft) -> Proposal:
    """At any axis."""
    x = d.operand(rank=(0, 4))
    least = -x.rank if d.opset >= 11 else 0
    return Proposal([x], {"axis": d.random.randint(least, x.rank)} if d.chance(0.8) else {})


def expand(d: Draft) -> Proposal:
    """To a constant shape, or to one that another value has."""
    x = d.operand(rank=(0, 3))
    shape = [d.random.choice((2, 3)) if set(extent) == {1} and d.chance(0.7) else extent[0] for extent in x.dims]
    for axis, extent in enumerate(x.dims):
        if not is_static(extent):
            shape[axis] = 1
    return Proposal([x, d.parameters([*([2] if d.chance(0.3) else []), *shape])])


def tile(d: Draft) -> Proposal:
    """Once, twice or three times."""
    x = d.operand(rank=(1, 3))
    return Proposal([x, d.parameters([d.random.choice((1, 1, 2, 3)) for _ in range(x.rank)])])


def concat(d: Draft) -> Proposal:
    """Along one axis; the others agree."""
    x = d.operand(rank=(1, 4))
    axis = d.axis(x)
    place = axis % x.rank
    others: list[Known] = []
    for _ in range(d.random.choice((0, 1, 1, 2))):
        fitting = [
            y
            for y in d.values
            if y.dtype == x.dtype and y.rank == x.rank and _but(y.dims, place) == _but(x.dims, place)
        ]
        dims = (*x.dims[:place], d.extent(), *x.dims[place + 1 :])
        others.append(d.random.choice(fitting) if fitting and d.chance(0.6) else d.fresh(x.dtype, dims))
    return Proposal(d.random.sample([x, *others], len(others) + 1), {"axis": axis})


def _but(dims: Dims, axis: int) -> Dims:
    return dims[:axis] + dims[axis + 1 :]


def split(d: Draft) -> Proposal:
    """In equal parts, or in given ones."""
    x = d.operand(rank=(1, 4), where=lambda x: any(is_static(e) and e[0] > 1 for e in x.dims))
    axis = d.axis(x, lambda extent: is_static(extent) and extent[0] > 1)
    extent = x.dims[axis][0]
    given: dict[str, Any] = {"axis": axis}
    if d.chance(0.4):
        parts = d.random.choice([p for p in range(2, extent + 1) if extent % p == 0 or d.opset >= 18])
        return Proposal([x], given | ({"num_outputs": parts} if d.takes("num_outputs") else {}), parts)
    first = d.random.randint(0, extent)
    sizes = [first, extent - first]
    if d.takes("split"):
        return Proposal([x], given | {"split": sizes}, 2)
    return Proposal([x, d.parameters(sizes)], given, 2)


def cut(d: Draft) -> Proposal:
    """Slice: forwards and backwards, bounds beyond the ends, with axes and steps or without."""
    x = d.operand(rank=(1, 4))
    axes = sorted(d.random.sample(range(x.rank), d.random.randint(1, x.rank)))
    bounds = [_bounds(d, x.dims[axis]) for axis in axes]
    starts, ends, steps = (list(part) for part in zip(*bounds, strict=True))
    bare = axes == list(range(len(axes))) and d.chance(0.4)
    if d.takes("starts"):
        return Proposal([x], {"starts": starts, "ends": ends, "axes": None if bare else axes})
    kind = d.random.choice((np.int64, np.int32))
    most = np.iinfo(kind).max
    limited = [[max(-most, min(most, value)) for value in part] for part in (starts, ends, axes, steps)]
    named = [d.parameters(np.array(part, kind)) for part in limited]
    if bare:
        named[2] = None  # pyright: ignore[reportCallIssue, reportArgumentType]  # skipped by an empty name
    return Proposal([x, *named[: 3 if d.chance(0.3) and set(steps) == {1} else 4]])


def _bounds(d: Draft, extent: Extent) -> tuple[int, int, int]:
    """(start, end, step); attributes had no steps, and there they are not asked for."""
    count = min(extent)
    start = d.random.choice((0, 0, 1, -count, -1, d.random.randint(0, max(count - 1, 0)), -count - 3))
    end = d.random.choice((count, count, TO_THE_END, -1, d.random.randint(0, count), count + 5))
    if d.takes("starts") or d.chance(0.6):
        return start, end, 1
    if d.chance(0.5):
        return start, end, d.random.choice((2, 3))
    return (
        d.random.choice((-1, count, count - 1, count + 4)),
        d.random.choice((0, -count - 1, -TO_THE_END, 1)),
        d.random.choice((-1, -2)),
    )


def pad(d: Draft) -> Proposal:
    """With a constant, the edge or a reflection; negative amounts cut."""
    x = d.operand(rank=(1, 4))
    mode = d.random.choice((None, "constant", "constant", "reflect", "edge"))
    least = min(min(extent) for extent in x.dims)
    top = 2 if mode != "reflect" else min(2, least - 1)
    amounts = [d.random.choice((0, 0, 1, top, -1 if d.chance(0.2) and least > 3 else 0)) for _ in range(2 * x.rank)]
    if d.takes("pads"):
        return Proposal([x], {"mode": mode, "pads": amounts, "value": 1.5 if mode == "constant" else None})
    value = d.fresh(x.dtype, (), 0, 2) if d.chance(0.5) else None
    return Proposal([x, d.parameters(amounts), value], {"mode": mode})


def shape(d: Draft) -> Proposal:
    """All extents, or some from opset 15 on."""
    x = d.operand()
    given = {"start": d.random.randint(-x.rank, x.rank)} if x.rank and d.takes("start") and d.chance(0.3) else {}
    return Proposal([x], given)


def only_operand(d: Draft) -> Proposal:
    """Nothing but an operand."""
    return Proposal([d.operand()])


def constant_of_shape(d: Draft) -> Proposal:
    """Zeros of float32, or a value of any type."""
    shapes = [y for y in d.values if y.dtype == np.int64 and y.rank == 1 and y.size < 4 and not y.constant]
    shapes = [y for y in shapes if all(a.min(initial=0) >= 0 for a in y.arrays)]
    target = (
        d.random.choice(shapes)
        if shapes and d.chance(0.6)
        else d.parameters([d.random.choice((0, 1, 2, 3)) for _ in range(2)])
    )
    value = np.array([d.random.choice((0, 1, 3))]).astype(numpy_dtype(d.random.choice(DATA_TYPES)))
    return Proposal([target], {"value": numpy_helper.from_array(value)} if d.chance(0.7) else {})


def constant(d: Draft) -> Proposal:
    """A tensor, or numbers."""
    form = d.random.choice(("value", "value", "value_int", "value_ints", "value_float", "value_floats"))
    form = form if d.takes(form) else "value"
    dtype = d.data_type(DATA_TYPES)
    tensor = numpy_helper.from_array(d.numbers.integers(0, 5, (2, 3)).astype(dtype))
    forms = {
        "value": tensor,
        "value_int": 3,
        "value_ints": [1, 2, 3],
        "value_float": 0.5,
        "value_floats": [0.5, 1.5, -2.0],
    }
    return Proposal([], {form: forms[form]})


def value_range(d: Draft) -> Proposal:
    """Up or down; none at all when the signs disagree."""
    dtype = d.data_type(d.allowed(0))
    start, count, step = d.random.randint(-4, 4), d.random.randint(0, 6), d.random.choice((1, 2, -1, 3))
    return Proposal([d.parameters(np.array(value, dtype)) for value in (start, start + count * step, step)])


def gather(d: Draft) -> Proposal:
    """By indices of either sign."""
    x = d.operand(rank=(1, 3))
    axis = d.axis(x)
    return Proposal([x, _indices(d, d.dims(0, 2), min(x.dims[axis]))], {"axis": axis} if axis or d.chance(0.5) else {})


def _indices(d: Draft, dims: Dims, extent: int) -> Known:
    if extent == 0:
        raise Rejected("nothing to look up")
    least = -extent if d.opset >= 11 and d.chance(0.4) else 0
    shapes = tuple(zip(*dims, strict=True)) if dims else ((),) * SETS
    kind = d.random.choice((np.int64, np.int64, np.int32))
    arrays = tuple(d.numbers.integers(least, extent, shape).astype(kind) for shape in shapes)
    return d.constant(arrays[0]) if all(map(is_static, dims)) and d.chance(0.5) else d._input(arrays)


def gather_elements(d: Draft) -> Proposal:
    """As many indices as elements, or fewer along the axis."""
    x = d.operand(rank=(1, 3))
    axis = d.axis(x)
    dims = list(x.dims)
    if is_static(dims[axis]) and d.chance(0.4):
        dims[axis] = (d.random.randint(1, 5),) * SETS
    return Proposal([x, _indices(d, tuple(dims), min(x.dims[axis]))], {"axis": axis})


def gather_nd(d: Draft) -> Proposal:
    """Indices of whole rows or of elements."""
    x = d.operand(rank=(1, 3))
    depth = d.random.randint(1, x.rank)
    extent = min(min(e) for e in x.dims[:depth])
    return Proposal([x, _as_int64(d, _indices(d, (d.extent(), (depth,) * SETS), extent))])


def _as_int64(d: Draft, x: Known) -> Known:
    if x.dtype != np.int64:
        raise Rejected("indices are int64 here")
    return x


def scatter(d: Draft) -> Proposal:
    """Scatter and ScatterElements: every place is written once, or a reduction says what happens."""
    x = d.operand(rank=(1, 3))
    axis = d.axis(x)
    extent = static(x)[axis]
    if extent == 0:
        raise Rejected("nothing to write to")
    chosen = d.random.sample(range(extent), d.random.randint(1, extent))
    dims = [*x.dims]
    dims[axis] = (len(chosen),) * SETS
    shape = [1] * x.rank
    shape[axis] = len(chosen)
    indices = np.broadcast_to(np.array(chosen, np.int64).reshape(shape), [e[0] for e in dims]).copy()
    kinds = (None, "none", "add", "mul") if d.opset < 18 else (None, "none", "add", "mul", "max", "min")
    given = {"reduction": d.random.choice(kinds)} if d.takes("reduction") and d.chance(0.4) else {}
    return Proposal([x, d.parameters(indices), d.fresh(x.dtype, tuple(dims))], {"axis": axis, **given})


def scatter_nd(d: Draft) -> Proposal:
    """Rows, each written once."""
    x = d.operand(rank=(1, 3))
    extent = static(x)[0]
    rows = d.random.sample(range(extent), d.random.randint(1, extent)) if extent else []
    if not rows:
        raise Rejected("nothing to write to")
    return Proposal(
        [x, d.parameters(np.array(rows, np.int64)[:, None]), d.fresh(x.dtype, ((len(rows),) * SETS, *x.dims[1:]))]
    )


def tensor_scatter(d: Draft) -> Proposal:
    """Into a cache of keys or values."""
    x = d.operand(rank=(3, 4))
    batch, *_ = static(x)
    dims = (*x.dims[:-2], (1,) * SETS, x.dims[-1])
    start = d.parameters(np.zeros(batch, np.int64)) if d.chance(0.5) else None
    return Proposal([x, d.fresh(x.dtype, dims), start])


def compress(d: Draft) -> Proposal:
    """The number of elements that stay depends on data."""
    x = d.operand(rank=(1, 3))
    axis = d.axis(x)
    return Proposal([x, d.fresh("bool", ((min(x.dims[axis]),) * SETS,))], {"axis": axis})


def depth_to_space(d: Draft) -> Proposal:
    """Blocks of two."""
    x = d.fresh(d.data_type(d.allowed(0)), (d.extent(), (4,) * SETS, (2,) * SETS, (4,) * SETS))
    mode = {"mode": d.random.choice(("DCR", "CRD"))} if d.takes("mode") and d.chance(0.5) else {}
    return Proposal([x], {"blocksize": 2, **mode})


def trilu(d: Draft) -> Proposal:
    """A triangle, shifted."""
    x = d.operand(rank=(2, 4))
    k = d.constant(np.array(d.random.randint(-2, 2))) if d.chance(0.5) else None
    return Proposal([x, k], {"upper": 0} if d.chance(0.5) else {})


def eye_like(d: Draft) -> Proposal:
    """Ones on a diagonal."""
    x = d.operand(rank=(2, 2))
    return Proposal(
        [x], {"k": d.random.randint(-1, 1), "dtype": int(helper.np_dtype_to_tensor_dtype(np.dtype(np.float32)))}
    )


def reverse_sequence(d: Draft) -> Proposal:
    """The first elements of each row backwards."""
    x = d.operand(rank=(2, 3), where=lambda x: x.rank > 1 and is_static(x.dims[1]) and is_static(x.dims[0]))
    rows, longest = x.dims[0][0], x.dims[1][0]
    return Proposal([x, d.fresh("int64", ((rows,) * SETS,), 1, longest)], {"batch_axis": 0, "time_axis": 1})


def one_hot(d: Draft) -> Proposal:
    """Depth and the two values are operands."""
    depth = d.random.randint(1, 5)
    indices = d.fresh(d.data_type(["int64", "int32"]), d.dims(0, 2), -depth, depth - 1)
    kind = d.data_type(["float32", "int64", "float32", "int32"])
    values = d.constant(np.array([0, 1], kind))
    depths = d.parameters(np.array(depth, np.int64) if d.chance(0.5) else np.array([depth], np.int64))
    return Proposal([indices, depths, values], {"axis": d.random.choice((-1, 0))} if d.chance(0.6) else {})


def center_crop_pad(d: Draft) -> Proposal:
    """To a given extent."""
    x = d.operand(rank=(1, 3))
    axis = d.axis(x)
    return Proposal([x, d.parameters([d.random.randint(1, 6)])], {"axes": [axis]})


def unique(d: Draft) -> Proposal:
    """The number of results depends on data."""
    return Proposal([d.operand(rank=(1, 2))], {"sorted": 1}, 1)


RECIPES: Mapping[str, Make] = {
    "Reshape": reshape, "Transpose": transpose, "Unsqueeze": unsqueeze, "Squeeze": squeeze, "Flatten": flatten,
    "Expand": expand, "Tile": tile, "Concat": concat, "Split": split, "Slice": cut, "Pad": pad, "Shape": shape,
    "Size": only_operand, "NonZero": only_operand, "ConstantOfShape": constant_of_shape, "Constant": constant,
    "Range": value_range, "Gather": gather, "GatherElements": gather_elements, "GatherND": gather_nd, "Scatter": scatter,
    "ScatterElements": scatter, "ScatterND": scatter_nd, "TensorScatter": tensor_scatter, "Compress": compress,
    "DepthToSpace": depth_to_space, "SpaceToDepth": depth_to_space, "Trilu": trilu, "EyeLike": eye_like,
    "ReverseSequence": reverse_sequence, "OneHot": one_hot, "CenterCropPad": center_crop_pad, "Unique": unique,
}  # fmt: skip
