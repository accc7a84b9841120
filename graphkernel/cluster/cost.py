"""What a merge is worth, in bytes, and what speaks against it.

A merge never recomputes anything, so it always saves traffic: a value that passes inside a kernel is not read again, and
not written either when nobody else needs it. What can speak against it: a reshape outside kernels is free but inside may
become a copy; and a reduction whose result is spread over the same points again makes two phases of one kernel, which
pays when the rows between them stay in cache and there are rows enough to share among the cores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from graphkernel.cluster.area import Area, Mode
from graphkernel.cluster.iteration_space import Space
from graphkernel.cluster.split_models import Limits
from kernelgen.tensor.dims import total
from kernelgen.tensor.graph import Graph, Node, Value
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.matmul import BATCH_MATMUL, MATMUL
from kernelgen.tensor.types import Dim


@dataclass(frozen=True)
class Objection:
    """Why a merge is refused: a reason code of :mod:`graphkernel.decisions` and the figures, without labels of nodes."""

    code: str
    message: str


def byte_size(value: Value) -> Dim:
    """Bytes of a tensor; a polynomial when its shape has symbols."""
    return value.type.bytes


def is_cheap(node: Node) -> bool:
    """True when computing an operator again costs no more than reading its result."""
    return node.op.kind <= Kind.BROADCAST and not node.op.traits.dear


def traffic_saved(graph: Graph, areas: Collection[Area]) -> Dim:
    """Bytes that need not be read or written when the areas share a kernel; a view outside kernels moves none."""
    areas = [area for area in areas if area.mode is Mode.COMPOSITE]
    inside = {node for area in areas for node in area.nodes}
    readers = Counter([value for area in areas for value in area.operands if value.node in inside])
    passed = [byte_size(value) * (reading + _stays_inside(value, graph, inside)) for value, reading in readers.items()]
    return total([*passed, *(byte_size(value) for value in _read_again(areas) if value not in readers)])


def _stays_inside(value: Value, graph: Graph, inside: set[Node]) -> bool:
    """True when only nodes inside use results of the node that makes a value."""
    node = value.node
    return node not in graph.output_nodes and inside.issuperset(graph.users[node])


def figures(graph: Graph, areas: Collection[Area]) -> str:
    """What a merge gives, for the log: traffic saved, bytes that the kernel touches, iterations that need no other."""
    saved = traffic_saved(graph, areas)
    touched = boundary_bytes(areas) - saved
    return f"saves {human(saved)} of memory traffic; {human(touched)} live, {independent(areas)} points in parallel"


def independent(areas: Collection[Area]) -> Dim:
    """How many iterations of a kernel wait for no other: the rows of its reductions, fewest first, or its elements."""
    kept = [space.kept for area in areas for space in area.spaces]
    if not kept:
        return max(areas, key=lambda area: area.kind).elements
    return min(kept, key=lambda dim: (not isinstance(dim, int), dim if isinstance(dim, int) else str(dim)))


def boundary_bytes(areas: Iterable[Area]) -> Dim:
    """Bytes that the areas read and store when each is a kernel."""
    return total([byte_size(value) for area in areas for value in (*area.operands, *area.outputs)])


def _read_again(areas: Collection[Area]) -> Iterator[Value]:
    """Each value from outside once for every area beyond the first that reads it."""
    seen: set[Value] = set()
    for area in areas:
        yield from area.reads & seen
        seen |= area.reads


def objection(graph: Graph, areas: Collection[Area], limits: Limits) -> Objection | None:
    """What the costs say against merging the ``areas`` of a ``graph`` under these ``limits``; None when they say
    nothing.
    """
    return _copies(graph, areas) or _phases(areas, limits) or _products(areas, limits)


def too_large(areas: Collection[Area], limits: Limits) -> Objection | None:
    """An objection when the areas together have more operators than a kernel may."""
    size = sum(area.size for area in areas)
    if size <= limits.composite_op_limit_size:
        return None
    message = f"{size} operators are more than composite_op_limit_size={limits.composite_op_limit_size}"
    return Objection("not-fused-limit", message)


def _copies(graph: Graph, areas: Collection[Area]) -> Objection | None:
    """A reshape whose operand and result both stay visible is a copy in a kernel and a view outside."""
    if all(area.kind is not Kind.RESHAPE for area in areas):
        return None
    home = {node for area in areas for node in area.nodes}

    def is_visible(node: Node) -> bool:
        return node not in home or node in graph.output_nodes or any(user not in home for user in graph.users[node])

    for node in (node for area in areas for node in area.nodes if node.op.kind is Kind.RESHAPE):
        if is_visible(node) and is_visible(node.args[0].node):
            size = human(byte_size(node.outs[0]))
            return Objection("not-fused-cost", f"{node.op.name} to {node.types[0]} would become a copy of {size}")
    return None


def _phases(areas: Collection[Area], limits: Limits) -> Objection | None:
    """Two phases over many points need rows: contiguous, and as many as the cores can share."""
    inside = {area.number for area in areas}
    links = ((area, link) for area in areas if area.spaces for link in area.users if link.area.number in inside)
    met = ((area, space) for area, link in links for space in area.spaces & link.spreads)
    return next(filter(None, (_phase_objection(area, space, limits) for area, space in met)), None)


def _phase_objection(area: Area, space: Space, limits: Limits) -> Objection | None:
    itemsize = max(node.args[0].type.dtype.itemsize for node in area.nodes if node.op.kind is Kind.REDUCE)
    size = space.total * itemsize
    if isinstance(size, int) and size <= limits.cached_bytes:
        return None
    if not space.is_rowwise:
        return Objection(
            "not-fused-cost", f"the reduction {space} leaves the inner dim: {human(size)} stay in no cache"
        )
    if isinstance(space.kept, int) and space.kept < limits.parallel_rows:
        return Objection("not-fused-cost", f"only {space.kept} rows in {space} to share among cores")
    return None


def _products(areas: Collection[Area], limits: Limits) -> Objection | None:
    """A large product, or one of unknown size, is faster in a library, where the target has one that is."""
    if limits.products is None:
        return None
    for node in (node for area in areas for node in area.opaque if node.op in (MATMUL, BATCH_MATMUL)):
        left, (rows, columns) = node.args[0].type, node.types[0].shape[-2:]
        count = node.types[0].size * left.shape[-2 if node.attrs.bool("transpose_a", False) else -1]
        limit = limits.products.of(left.dtype.itemsize, rows, columns)
        if not isinstance(count, int) or count > limit:
            message = f"{count} multiplications, more than {limit}: a library's {node.op.name} is faster"
            return Objection("not-fused-cost", message)
    return None


def is_greater(left: Dim, right: Dim) -> bool:
    """True when ``left > right`` for all extents >= 1; False when that is not so or not seen at once."""
    difference = left - right
    if isinstance(difference, int):
        return difference > 0
    return all(coefficient > 0 for _, coefficient in difference.terms)


def human(size: Dim) -> str:
    """``1.5 MiB``; a symbolic size is printed as its polynomial."""
    if not isinstance(size, int):
        return f"({size}) bytes"
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{size / scale:.4g} {unit}"
    return f"{size} bytes"
