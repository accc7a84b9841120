"""Smaller shapes for kernels that do not fit the memory of a test run: dims that run together shrink together.

x[361M, 8] * y[1, 8] -> z[361M, 8]        x[352, 8] * y[1, 8] -> z[352, 8]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum

from kernelgen.composite.check import check
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.layouts import FRACTAL
from kernelgen.composite.scalar_rules import REDUCTIONS, scalar_rule
from kernelgen.composite.specialize import with_types
from kernelgen.composite.vocabulary import ELEM_ALL, VIEWS, by_operator
from kernelgen.composite.window_shapes import is_channels_last
from kernelgen.disjoint_sets import DisjointSets
from kernelgen.errors import DescError
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Shape, Sym
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import catalogue as basic
from kernelgen.tensor.operators.type_rules import reduced_axes
from kernelgen.tensor.types import TensorType

Place = tuple[Value, int]
Pairs = list[tuple[Place, Place]]
FACTORS = (2, 3, 5, 7, 11, 13)
ALIGNED = frozenset({basic.ASSIGN, basic.BROADCAST_TO, basic.C_REAL, basic.C_IMAG, basic.COMPLEX})
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


class First(StrEnum):
    """Which dims are divided before others."""

    LONGEST = "longest"
    OUTER = "outer"
    """Leading ones, so that rows keep their length."""
    REDUCED = "reduced"
    """Those that no output has, so that results keep their sizes."""


def shrink(desc: KernelDesc, byte_limit: int, first: First = First.LONGEST) -> KernelDesc:
    """:func:`scale_down` of ``desc`` to arguments of ``byte_limit`` bytes, or as far as it goes, dividing what ``first``
    says before all else.
    """
    while argument_bytes(desc) > byte_limit:
        smaller = next(_shrunk_once(desc, first), None)
        if smaller is None:
            break
        desc = smaller
    return desc


def _shrunk_once(desc: KernelDesc, first: First) -> Iterator[KernelDesc]:
    """Descriptions in which one class of dims is divided by a factor, the class of the greatest extent or dim first."""
    classes = _classes(desc)
    extents = {(v, d): dim for v in _values(desc) for d, dim in enumerate(v.shape) if isinstance(dim, int)}

    def rank(places: frozenset[Place]) -> tuple[int, tuple[str, int]]:
        return -max((extents.get(p, 0) for p in places), default=0), min((value.name, d) for value, d in places)

    ranked = sorted(classes, key=rank)
    if first is First.OUTER:
        ranked.sort(key=lambda places: -max(len(value.shape) - d for value, d in places))
    if first is First.REDUCED:
        ranked.sort(key=lambda places: any(value in desc.graph.outputs for value, _ in places))
    for places in ranked:
        sizes = {extents[p] for p in places if extents.get(p, 1) != 1}
        for factor in FACTORS:
            if sizes and min(sizes) // factor >= SMALLEST and (len(sizes) == 1 or all(s % factor == 0 for s in sizes)):
                try:
                    yield check(_divided(desc, places, factor))
                except DescError:
                    continue


def _divided(desc: KernelDesc, places: frozenset[Place], factor: int) -> KernelDesc:
    def smaller(value: Value) -> TensorType:
        shape = tuple(
            dim // factor if isinstance(dim, int) and dim != 1 and (value, d) in places else dim
            for d, dim in enumerate(value.shape)
        )
        return value.type.of_shape(shape)

    return with_types(desc, smaller, lambda node: _with_shape_attr(node, smaller(node.outs[0]).shape))


def _with_shape_attr(node: Node, shape: Shape) -> Attrs:
    """The attributes, with those that repeat the shape of the result."""
    if node.op in (basic.RESHAPE, basic.BROADCAST_TO) and "shape" in node.attrs:
        return node.attrs.with_(shape=shape)
    if node.op is basic.UNSORTED_SEGMENT_SUM and "num_segments" in node.attrs:
        return node.attrs.with_(num_segments=shape[0])
    return node.attrs


# ---------------------------------------------------------------- which dims shrink together


def _classes(desc: KernelDesc) -> list[frozenset[Place]]:
    """The classes of dims that must be divided together; dims of operators that are not understood are left out."""
    together: DisjointSets[Place] = DisjointSets()
    places: dict[Place, None] = {}
    frozen: set[Place] = set()
    for value in _values(desc):
        rank = len(value.shape)
        places |= dict.fromkeys((value, d) for d in range(rank))
        if value.layout == FRACTAL:
            frozen |= {(value, d) for d in range(max(rank - 2, 0), rank)}
    for node in desc.operators:
        pairs = _pairs(node)
        if pairs is None:
            frozen |= {(t, d) for t in (*node.args, *node.outs) for d in range(len(t.shape))}
        for left, right in pairs or ():
            together.join(right, left)
            places |= {left: None, right: None}
    groups: dict[Place, set[Place]] = {}
    for place in places:
        groups.setdefault(together.of(place), set()).add(place)
    return [frozenset(group) for group in groups.values() if not group & frozen]


def _pairs(node: Node) -> Pairs | None:
    """Pairs of dims with one extent; None when the operator is not understood."""
    result = node.outs[0]
    if scalar_rule(node) is not None or node.op in ALIGNED:
        return [pair for operand in node.args if operand.constant is None for pair in _aligned(operand, result)]
    if node.op in REDUCTIONS:
        reduced = reduced_axes(node)
        kept = [d for d, dim in enumerate(node.args[0].shape) if d not in reduced and dim != 1]
        return _zipped(node.args[0], kept, result, [d for d, dim in enumerate(result.shape) if dim != 1])
    rule = RULES.get(node.op)
    return rule(node) if rule else None


def _transposed(node: Node) -> Pairs | None:
    perm = node.attrs.ints("perm")
    return _zipped(node.args[0], [p % len(perm) for p in perm], node.out, list(range(len(perm))))


def _padded(node: Node) -> Pairs:
    around = zip(node.attrs.ints("head"), node.attrs.ints("tail"), strict=True)
    return [((node.args[0], d), (node.outs[0], d)) for d, pads in enumerate(around) if pads == (0, 0)]


def _convolution(node: Node) -> Pairs | None:
    """Images, channels and features of a convolution; its rows and columns stay, for windows reach over them."""
    (image, weights), result = node.args[:2], node.out
    if len(node.args) != 2 or len(image.shape) != 4 or node.attrs.int("group", node.attrs.int("groups", 1)) != 1:
        return None
    if is_channels_last(node):
        return [((image, 0), (result, 0)), ((image, 3), (weights, 2)), ((weights, 3), (result, 3))]
    channel = 3 if image.layout == "NHWC" else 1
    return [
        ((image, 0), (result, 0)),
        ((image, channel), (weights, channel)),
        ((weights, 0), (result, channel)),
    ]


def _segments(node: Node) -> Pairs:
    """Rows of data and of their segments' numbers, and what is in a row; the number of segments stands alone."""
    (data, numbers), result = node.args[:2], node.out
    first = len(numbers.shape)
    rows = [((data, d), (numbers, d)) for d in range(first)]
    return rows + [((data, d), (result, d - first + 1)) for d in range(first, len(data.shape))]


def _gathered(node: Node) -> Pairs:
    """The dims of the numbers, and those of the data around the one that they select from, which stands alone."""
    (data, numbers), result = node.args, node.out
    axis, more = node.attrs.int("axis", 0) % len(data.shape), len(numbers.shape)
    chosen = [((numbers, d), (result, axis + d)) for d in range(more)]
    around = [(d, d if d < axis else d + more - 1) for d in range(len(data.shape)) if d != axis]
    return chosen + [((data, a), (result, b)) for a, b in around]


def _factors(node: Node) -> Pairs | None:
    return _product(node) or _product_in_blocks(node)


def _product_in_blocks(node: Node) -> Pairs | None:
    """Those of a product of FRACTAL_NZ matrices, ``[.., N/16, M/16, 16, 16]`` for ``[.., M, N]``; None for others."""
    left, right, result = node.args[0], node.args[1], node.out
    if len(node.args) != 2 or any(t.layout != FRACTAL or len(t.shape) < 4 for t in (left, right, result)):
        return None
    rank = len(result.shape)
    if {len(left.shape), len(right.shape)} != {rank}:
        return None
    rows, columns = (rank - 3, rank - 2), (rank - 4, rank - 1)  # the block's number, the place in the block
    row, term = (columns, rows) if node.attrs.bool("transpose_a", False) else (rows, columns)
    inner, column = (columns, rows) if node.attrs.bool("transpose_b", False) else (rows, columns)
    pairs = [((left, a), (result, b)) for a, b in zip(row, rows, strict=True)]
    pairs += [((right, a), (result, b)) for a, b in zip(column, columns, strict=True)]
    pairs += [((left, a), (right, b)) for a, b in zip(term, inner, strict=True)]
    return pairs + [((t, d), (result, d)) for t in (left, right) for d in range(rank - 4)]


def _product(node: Node) -> Pairs | None:
    """Rows, columns, terms and batches of a product of plain matrices; None for those in blocks."""
    left, right, result = node.args[0], node.args[1], node.out
    plain = all(t.layout == "DefaultFormat" for t in (left, right, result))
    if not plain or len(node.args) != 2 or len({len(t.shape) for t in (left, right, result)}) != 1:
        return None
    last = len(result.shape) - 1
    (row, term), (inner, column) = (
        (last, last - 1) if node.attrs.bool(flag, False) else (last - 1, last)
        for flag in ("transpose_a", "transpose_b")
    )
    whole = [
        (left.shape[row], result.shape[last - 1]),
        (right.shape[column], result.shape[last]),
        (left.shape[term], right.shape[inner]),
    ]
    batches = [(left.shape[d], right.shape[d], result.shape[d]) for d in range(last - 1)]
    if any(a != b for a, b in whole) or any(len(set(dims)) != 1 for dims in batches):
        return None
    sides = [((left, row), (result, last - 1)), ((right, column), (result, last))]
    around = [((t, d), (result, d)) for t in (left, right) for d in range(last - 1)]
    return [*sides, ((left, term), (right, inner)), *around]


def _aligned(operand: Value, result: Value) -> Iterator[tuple[Place, Place]]:
    shift = len(result.shape) - len(operand.shape)
    for d in range(max(0, -shift), len(operand.shape)):
        if operand.shape[d] != 1:
            yield (operand, d), (result, d + shift)


def _zipped(left: Value, left_dims: Sequence[int], right: Value, right_dims: Sequence[int]) -> Pairs | None:
    if len(left_dims) != len(right_dims):
        return None
    return [((left, a), (right, b)) for a, b in zip(left_dims, right_dims, strict=True)]


def _reshaped(node: Node) -> Pairs | None:
    """Ties the first dims of the groups of dims that hold the same elements: dividing both keeps the counts equal."""
    source, result = node.args[0], node.outs[0]
    pairs: Pairs = []
    left = [d for d, dim in enumerate(source.shape) if dim != 1]
    right = [d for d, dim in enumerate(result.shape) if dim != 1]
    while left and right:
        pairs.append(((source, left[0]), (result, right[0])))
        a, b = source.shape[left.pop(0)], result.shape[right.pop(0)]
        while a != b:
            if isinstance(a, Sym) or isinstance(b, Sym) or not (left if a < b else right):
                return None
            if a < b:
                a = a * source.shape[left.pop(0)]
            else:
                b = b * result.shape[right.pop(0)]
    return pairs


RULES: Mapping[Operator, Callable[[Node], Pairs | None]] = by_operator({
    (basic.MATMUL, basic.BATCH_MATMUL, basic.MATMUL_INTEGER): _factors, basic.CONV2D: _convolution, basic.GATHER: _gathered,
    basic.UNSORTED_SEGMENT_SUM: _segments, basic.TRANSPOSE: _transposed, VIEWS: _reshaped, basic.PAD_AKG: _padded,
    (basic.ELEM_ANY, ELEM_ALL): lambda node: [],
})  # fmt: skip
"""Operators that are neither element-wise nor reductions -> their pairs of dims with one extent."""


def _values(desc: KernelDesc) -> Iterator[Value]:
    yield from desc.graph.inputs
    for node in desc.operators:
        yield from node.outs
