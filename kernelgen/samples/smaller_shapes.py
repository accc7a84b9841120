"""Smaller shapes for kernels that do not fit the memory of a test run: dims that run together shrink together.

x[361M, 8] * y[1, 8] -> z[361M, 8]        x[352, 8] * y[1, 8] -> z[352, 8]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from kernelgen.composite.bind_sizes import map_tensors
from kernelgen.composite.check import check
from kernelgen.composite.description import IN_PLACE_OPS, KernelDesc, OpDesc, TensorDesc
from kernelgen.composite.layouts import FRACTAL
from kernelgen.composite.scalar_rules import REDUCTIONS, scalar_rule
from kernelgen.composite.shape_rules import reduced_axes
from kernelgen.composite.vocabulary import ELEM_ALL, VIEWS, by_name, names_of
from kernelgen.errors import DescError
from kernelgen.tensor.dims import Sym
from kernelgen.tensor.operators import catalogue as basic

Place = tuple[str, int]
Pairs = list[tuple[Place, Place]]
FACTORS = (2, 3, 5, 7, 11, 13)
ALIGNED = names_of(basic.BROADCAST_TO, basic.C_REAL, basic.C_IMAG, basic.COMPLEX)
"""Operators whose dims are those of their operands, too."""
SMALLEST = 4
"""No extent becomes smaller: an extent of 1 would hide mistakes, for it broadcasts."""


def argument_bytes(desc: KernelDesc) -> int:
    """Bytes of all inputs and outputs; symbols count as 1."""
    total = 0
    for tensor in (*desc.inputs, *desc.outputs):
        count = 1
        for dim in tensor.shape:
            count *= 1 if isinstance(dim, Sym) else dim
        total += count * tensor.dtype.itemsize
    return total


def scale_down(desc: KernelDesc, byte_limit: int) -> KernelDesc | None:
    """The same kernel with arguments of at most ``byte_limit`` bytes; itself when it fits, None when it cannot shrink.

    Extents are divided by small factors (rounded down, but where reshapes tie different extents), the largest first; the
    result passes :func:`kernelgen.composite.check.check`.
    """
    smaller = shrink(desc, byte_limit)
    return smaller if argument_bytes(smaller) <= byte_limit else None


def shrink(desc: KernelDesc, byte_limit: int, outer_first: bool = False) -> KernelDesc:
    """:func:`scale_down` of ``desc`` to arguments of ``byte_limit`` bytes, or as far as it goes; ``outer_first``
    divides leading dims first, so that rows keep their length.
    """
    while argument_bytes(desc) > byte_limit:
        smaller = next(_shrunk_once(desc, outer_first), None)
        if smaller is None:
            break
        desc = smaller
    return desc


def _shrunk_once(desc: KernelDesc, outer_first: bool) -> Iterator[KernelDesc]:
    """Descriptions in which one class of dims is divided by a factor, the class of the greatest extent or dim first."""
    classes = _classes(desc)
    extents = {(t.name, d): dim for t in _tensors(desc) for d, dim in enumerate(t.shape) if isinstance(dim, int)}
    ranked = sorted(classes, key=lambda places: (-max((extents.get(p, 0) for p in places), default=0), min(places)))
    if outer_first:
        ranks = {tensor.name: len(tensor.shape) for tensor in _tensors(desc)}
        ranked.sort(key=lambda places: -max(ranks[name] - d for name, d in places))
    for places in ranked:
        sizes = {extents[p] for p in places if extents.get(p, 1) != 1}
        for factor in FACTORS:
            if sizes and min(sizes) // factor >= SMALLEST and (len(sizes) == 1 or all(s % factor == 0 for s in sizes)):
                try:
                    yield check(_divided(desc, places, factor))
                except DescError:
                    continue


def _divided(desc: KernelDesc, places: frozenset[Place], factor: int) -> KernelDesc:
    def smaller(tensor: TensorDesc) -> TensorDesc:
        shape = (
            dim // factor if isinstance(dim, int) and dim != 1 and (tensor.name, d) in places else dim
            for d, dim in enumerate(tensor.shape)
        )
        return tensor if tensor.value is not None else replace(tensor, shape=tuple(shape))

    scaled = map_tensors(desc, smaller)
    return replace(scaled, ops=tuple(_with_shape_attr(op) for op in scaled.ops))


def _with_shape_attr(op: OpDesc) -> OpDesc:
    if op.name in names_of(basic.RESHAPE, basic.BROADCAST_TO) and "shape" in op.attrs:
        return replace(op, attrs=op.attrs.with_(shape=op.output.shape))
    if op.name == basic.UNSORTED_SEGMENT_SUM.name and "num_segments" in op.attrs:
        return replace(op, attrs=op.attrs.with_(num_segments=op.output.shape[0]))
    return op


# ---------------------------------------------------------------- which dims shrink together


def _classes(desc: KernelDesc) -> list[frozenset[Place]]:
    """The classes of dims that must be divided together; dims of operators that are not understood are left out."""
    parents: dict[Place, Place] = {}

    def root(place: Place) -> Place:
        while parents.setdefault(place, place) != place:
            place = parents[place]
        return place

    frozen: set[Place] = set()
    for tensor in _tensors(desc):
        rank = len(tensor.shape)
        for d in range(rank):
            root((tensor.name, d))
        if tensor.format == FRACTAL:
            frozen |= {(tensor.name, d) for d in range(max(rank - 2, 0), rank)}
    for op in desc.ops:
        pairs = _pairs(op)
        if pairs is None:
            frozen |= {(t.name, d) for t in (*op.inputs, *op.outputs) for d in range(len(t.shape))}
        for left, right in pairs or ():
            parents[root(left)] = root(right)
    groups: dict[Place, set[Place]] = {}
    for place in parents:
        groups.setdefault(root(place), set()).add(place)
    return [frozenset(group) for group in groups.values() if not group & frozen]


def _pairs(op: OpDesc) -> Pairs | None:
    """Pairs of dims with one extent; None when the operator is not understood."""
    result = op.outputs[0]
    if scalar_rule(op) is not None or op.name in IN_PLACE_OPS or op.name in ALIGNED:
        return [pair for operand in op.inputs if operand.value is None for pair in _aligned(operand, result)]
    if op.name in REDUCTIONS:
        reduced = reduced_axes(op)
        kept = [d for d, dim in enumerate(op.inputs[0].shape) if d not in reduced and dim != 1]
        return _zipped(op.inputs[0], kept, result, [d for d, dim in enumerate(result.shape) if dim != 1])
    rule = RULES.get(op.name)
    return rule(op) if rule else None


def _transposed(op: OpDesc) -> Pairs | None:
    perm = op.attrs.ints("perm")
    return _zipped(op.inputs[0], [p % len(perm) for p in perm], op.output, list(range(len(perm))))


def _padded(op: OpDesc) -> Pairs:
    around = zip(op.attrs.ints("head"), op.attrs.ints("tail"), strict=True)
    return [((op.inputs[0].name, d), (op.outputs[0].name, d)) for d, pads in enumerate(around) if pads == (0, 0)]


def _convolution(op: OpDesc) -> Pairs | None:
    """Images, channels and features of a convolution; its rows and columns stay, for windows reach over them."""
    (image, weights), result = op.inputs[:2], op.output
    if len(op.inputs) != 2 or len(image.shape) != 4 or op.attrs.int("group", op.attrs.int("groups", 1)) != 1:
        return None
    channel = 3 if image.format == "NHWC" else 1
    return [
        ((image.name, 0), (result.name, 0)),
        ((image.name, channel), (weights.name, channel)),
        ((weights.name, 0), (result.name, channel)),
    ]


def _segments(op: OpDesc) -> Pairs:
    """Rows of data and of their segments' numbers, and what is in a row; the number of segments stands alone."""
    (data, numbers), result = op.inputs[:2], op.output
    first = len(numbers.shape)
    rows = [((data.name, d), (numbers.name, d)) for d in range(first)]
    return rows + [((data.name, d), (result.name, d - first + 1)) for d in range(first, len(data.shape))]


def _gathered(op: OpDesc) -> Pairs:
    """The dims of the numbers, and those of the data around the one that they select from, which stands alone."""
    (data, numbers), result = op.inputs, op.output
    axis, more = op.attrs.int("axis", 0) % len(data.shape), len(numbers.shape)
    chosen = [((numbers.name, d), (result.name, axis + d)) for d in range(more)]
    around = [(d, d if d < axis else d + more - 1) for d in range(len(data.shape)) if d != axis]
    return chosen + [((data.name, a), (result.name, b)) for a, b in around]


def _factors(op: OpDesc) -> Pairs | None:
    return _product(op) or _product_in_blocks(op)


def _product_in_blocks(op: OpDesc) -> Pairs | None:
    """Those of a product of FRACTAL_NZ matrices, ``[.., N/16, M/16, 16, 16]`` for ``[.., M, N]``; None for others."""
    left, right, result = op.inputs[0], op.inputs[1], op.output
    if len(op.inputs) != 2 or any(t.format != FRACTAL or len(t.shape) < 4 for t in (left, right, result)):
        return None
    rank = len(result.shape)
    if {len(left.shape), len(right.shape)} != {rank}:
        return None
    rows, columns = (rank - 3, rank - 2), (rank - 4, rank - 1)  # the block's number, the place in the block
    row, term = (columns, rows) if op.attrs.bool("transpose_a", False) else (rows, columns)
    inner, column = (columns, rows) if op.attrs.bool("transpose_b", False) else (rows, columns)
    pairs = [((left.name, a), (result.name, b)) for a, b in zip(row, rows, strict=True)]
    pairs += [((right.name, a), (result.name, b)) for a, b in zip(column, columns, strict=True)]
    pairs += [((left.name, a), (right.name, b)) for a, b in zip(term, inner, strict=True)]
    return pairs + [((t.name, d), (result.name, d)) for t in (left, right) for d in range(rank - 4)]


def _product(op: OpDesc) -> Pairs | None:
    """Rows, columns, terms and batches of a product of plain matrices; None for those in blocks."""
    left, right, result = op.inputs[0], op.inputs[1], op.output
    plain = all(t.format == "DefaultFormat" for t in (left, right, result))
    if not plain or len(op.inputs) != 2 or len({len(t.shape) for t in (left, right, result)}) != 1:
        return None
    last = len(result.shape) - 1
    (row, term), (inner, column) = (
        (last, last - 1) if op.attrs.bool(flag, False) else (last - 1, last) for flag in ("transpose_a", "transpose_b")
    )
    whole = [
        (left.shape[row], result.shape[last - 1]),
        (right.shape[column], result.shape[last]),
        (left.shape[term], right.shape[inner]),
    ]
    batches = [(left.shape[d], right.shape[d], result.shape[d]) for d in range(last - 1)]
    if any(a != b for a, b in whole) or any(len(set(dims)) != 1 for dims in batches):
        return None
    sides = [((left.name, row), (result.name, last - 1)), ((right.name, column), (result.name, last))]
    around = [((t.name, d), (result.name, d)) for t in (left, right) for d in range(last - 1)]
    return [*sides, ((left.name, term), (right.name, inner)), *around]


def _aligned(operand: TensorDesc, result: TensorDesc) -> Iterator[tuple[Place, Place]]:
    shift = len(result.shape) - len(operand.shape)
    for d in range(max(0, -shift), len(operand.shape)):
        if operand.shape[d] != 1:
            yield (operand.name, d), (result.name, d + shift)


def _zipped(left: TensorDesc, left_dims: Sequence[int], right: TensorDesc, right_dims: Sequence[int]) -> Pairs | None:
    if len(left_dims) != len(right_dims):
        return None
    return [((left.name, a), (right.name, b)) for a, b in zip(left_dims, right_dims, strict=True)]


def _reshaped(op: OpDesc) -> Pairs | None:
    """Ties the first dims of the groups of dims that hold the same elements: dividing both keeps the counts equal."""
    source, result = op.inputs[0], op.outputs[0]
    pairs: Pairs = []
    left = [d for d, dim in enumerate(source.shape) if dim != 1]
    right = [d for d, dim in enumerate(result.shape) if dim != 1]
    while left and right:
        pairs.append(((source.name, left[0]), (result.name, right[0])))
        a, b = source.shape[left.pop(0)], result.shape[right.pop(0)]
        while a != b:
            if isinstance(a, Sym) or isinstance(b, Sym) or not (left if a < b else right):
                return None
            if a < b:
                a = a * source.shape[left.pop(0)]
            else:
                b = b * result.shape[right.pop(0)]
    return pairs


RULES: Mapping[str, Callable[[OpDesc], Pairs | None]] = by_name({
    (basic.MATMUL, basic.BATCH_MATMUL): _factors, basic.CONV2D: _convolution, basic.GATHER: _gathered,
    basic.UNSORTED_SEGMENT_SUM: _segments, basic.TRANSPOSE: _transposed, VIEWS: _reshaped, basic.PAD_AKG: _padded,
    (basic.ELEM_ANY, ELEM_ALL): lambda op: [],
})  # fmt: skip
"""Operators that are neither element-wise nor reductions -> their pairs of dims with one extent."""


def _tensors(desc: KernelDesc) -> Iterator[TensorDesc]:
    for tensor in (*desc.inputs, *(t for op in desc.ops for t in (*op.inputs, *op.outputs)), *desc.outputs):
        if tensor.value is None:
            yield tensor
