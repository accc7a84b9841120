"""Operators that pick elements by position or by index: slices, one-hot, gathers and scatters, sparse rows.

What makes their operand, or works on what they picked, joins them when it has as many elements: then the picking is a
change of indices in the loop that is there anyway. Source: ``slice`` of MindSpore's DVM model and ``strided_slice``,
``onehot_fwd``, ``onehot_bwd``, ``gather_output``, ``broadcast_tot``, ``link_csr`` and ``injective_output`` of its GPU model.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from graphkernel.cluster.area import Area, Direction, Link, fusion
from graphkernel.cluster.own_pieces import PIECES, is_piece
from graphkernel.cluster.split_models import Limits
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Kind, Operator
from kernelgen.tensor.operators.csr import CSR_GATHER, CSR_REDUCE_SUM
from kernelgen.tensor.operators.indexing import GATHER, ONE_HOT
from kernelgen.tensor.operators.pieces import SLICE, STRIDED_SLICE
from kernelgen.tensor.operators.scatter import GATHER_ND, TENSOR_SCATTER_ADD, UNSORTED_SEGMENT_SUM
from kernelgen.tensor.operators.shape import TRANSPOSE
from kernelgen.tensor.operators.type_rules import axes_of

SLICES = frozenset({SLICE, STRIDED_SLICE})
GATHERS = frozenset({GATHER, GATHER_ND, CSR_GATHER})
SCATTERS = (TENSOR_SCATTER_ADD, UNSORTED_SEGMENT_SUM)
MOVES = frozenset({TRANSPOSE, STRIDED_SLICE})


@fusion(Direction.BACKWARD, kinds=(Kind.OPAQUE,), ops=SLICES)
def slice(area: Area, limits: Limits) -> Iterable[Area]:  # the name that MindSpore's flags know
    """Element-wise users of what was sliced."""
    if not _opaque_only(area, SLICES):
        return ()
    return [link.area for link in area.users if link.area.kind < Kind.BROADCAST and link.is_injective]


@fusion(Direction.FORWARD, kinds=(Kind.OPAQUE,), ops=(STRIDED_SLICE,))
def strided_slice(area: Area, limits: Limits) -> Iterable[Area]:
    """What makes the operand of a slice, when nobody else needs it: only the part that is picked is computed."""
    return _pointwise_producers(area) if _opaque_only(area, frozenset({STRIDED_SLICE})) else ()


@fusion(Direction.FORWARD, kinds=(Kind.OPAQUE,), ops=PIECES)
def pieces(area: Area, limits: Limits) -> Iterable[Area]:
    """Pointwise neighbours of pieces that are cut and joined, and their pieces: those that only they need, and users."""
    if not _pieces_only(area):
        return ()
    producers = [link.area for link in area.inputs if link.area.has_one_user and _moves_or_maps(link.area, limits)]
    users = [link.area for link in area.users if link.is_injective and _moves_or_maps(link.area, limits)]
    return [*producers, *(users if area.has_one_user else ())]


def _moves_or_maps(area: Area, limits: Limits) -> bool:
    return area.size <= limits.transpose_fuse_depth and (area.kind <= Kind.BROADCAST or _pieces_only(area))


def _pieces_only(area: Area) -> bool:
    """True when all that is opaque in the area, and something is, are pieces."""
    return area.kind is Kind.OPAQUE and bool(area.opaque) and all(map(is_piece, area.opaque))


@fusion(Direction.FORWARD, kinds=(Kind.OPAQUE,), ops=(ONE_HOT,))
def onehot_fwd(area: Area, limits: Limits) -> Iterable[Area]:
    """What makes the indices of a one-hot, when nobody else needs it."""
    return _pointwise_producers(area) if _opaque_only(area, frozenset({ONE_HOT})) else ()


@fusion(Direction.BACKWARD, kinds=(Kind.OPAQUE,), ops=(ONE_HOT,))
def onehot_bwd(area: Area, limits: Limits) -> Iterable[Area]:
    """Pointwise users of a one-hot, which is then never stored."""
    if not _opaque_only(area, frozenset({ONE_HOT})):
        return ()
    return [link.area for link in area.users if link.area.kind <= Kind.BROADCAST]


def _pointwise_producers(area: Area) -> list[Area]:
    return [link.area for link in area.inputs if link.area.kind <= Kind.BROADCAST and link.area.has_one_user]


@fusion(Direction.BACKWARD, kinds=(Kind.OPAQUE,))
def gather_output(area: Area, limits: Limits) -> Iterable[Area]:
    """The first user that works on the gathered elements: pointwise, a sum over other axes, or a scatter of them."""
    if not _opaque_only(area, GATHERS | {node.op for node in area.opaque if node.op.element is not None}):
        return ()
    return [link.area for link in area.users if _takes_gathered(area, link)][:1]


def _takes_gathered(area: Area, link: Link) -> bool:
    user = link.area
    if user.lone(*SCATTERS) is not None:
        return True
    if not link.is_injective:
        return False
    if user.kind <= Kind.BROADCAST:
        return user.elements == area.elements
    return user.kind is Kind.REDUCE and all(_keeps_gathered_axes(area, node) for node in _reductions(user))


def _reductions(area: Area) -> Iterator[Node]:
    return (node for node in area.nodes if node.op.kind is Kind.REDUCE)


def _keeps_gathered_axes(area: Area, reduction: Node) -> bool:
    """True when a reduction works on the gathered shape and not over the axes along which was gathered."""
    reduced = reduction.args[0].type
    axes = set(axes_of(reduction.attrs.ints("axis", ()), reduced.rank))
    return all(node.types[0].shape == reduced.shape and axes.isdisjoint(_gathered_axes(node)) for node in area.opaque)


def _gathered_axes(node: Node) -> Collection[int]:
    """The axes of the result that the indices make; of a CSRGather the one of the stored elements."""
    if node.op.element is not None:  # its rule may read anywhere
        return range(node.types[0].rank)
    indices = node.args[1].type.rank
    if node.op is GATHER:
        axis = node.attrs.int("axis", 0) % node.args[0].type.rank
        return range(axis, axis + indices)
    return range(max(indices - 1, 1))


@fusion(Direction.FORWARD, ops=SCATTERS)
def broadcast_tot(area: Area, limits: Limits) -> Iterable[Area]:
    """The first that makes what a scatter adds or its indices, or another scatter of the same operands."""
    node = area.lone(*SCATTERS)
    if node is None:
        return ()
    added = node.args[1:] if node.op is TENSOR_SCATTER_ADD else node.args[:2]
    return [*_makers(area, added), *_alike_beside(area, node.op)][:1]


@fusion(Direction.FORWARD, ops=(CSR_REDUCE_SUM, CSR_GATHER))
def link_csr(area: Area, limits: Limits) -> Iterable[Area]:
    """The first that makes what a sparse operator reads per stored element, or a gather of the same rows."""
    node = area.lone(CSR_REDUCE_SUM, CSR_GATHER)
    if node is None:
        return ()
    read = node.args[1:3] if node.op is CSR_REDUCE_SUM else node.args[2:3]
    return [*_makers(area, read), *_alike_beside(area, CSR_GATHER)][:1]


def _makers(area: Area, values: Collection[Value]) -> list[Area]:
    """The pointwise areas that make one of the values."""
    wanted = {value.node for value in values}
    return [
        link.area for link in area.inputs if link.area.kind <= Kind.BROADCAST and not wanted.isdisjoint(link.area.nodes)
    ]


def _alike_beside(area: Area, op: Operator) -> list[Area]:
    return [other for other in area.siblings if other.lone(op) is not None]


@fusion(Direction.BACKWARD, kinds=(Kind.OPAQUE,), ops=MOVES)
def injective_output(area: Area, limits: Limits) -> Iterable[Area]:
    """The only user of what a transpose or slice moved, if it is short: it reads the elements where they were."""
    if not _opaque_only(area, MOVES) or not area.has_one_user:
        return ()
    (user,) = (link.area for link in area.users)
    fits = user.kind <= Kind.REDUCE or _opaque_only(user, MOVES)
    return (user,) if fits and user.size <= limits.transpose_fuse_depth else ()


def _opaque_only(area: Area, ops: frozenset[Operator]) -> bool:
    """True when all that is opaque in the area, and something is, is one of these operators."""
    found = area.opaque if area.kind is Kind.OPAQUE else ()
    return bool(found) and all(node.op in ops for node in found)
