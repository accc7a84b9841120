"""Collective communication: what the processes of a group give each other.

Names and attributes are MindSpore's: ``group`` names the group, ``rank_size`` is its number of processes (default 1; 0 in
AllReduce, no shape of which depends on it: as many as the communicator has). All are
ordered (:mod:`kernelgen.tensor.order`): the last operand, if there is one more, is the token of the one before, and the last
result is their own. The numpy meaning is that of a group of one process; a larger one is a
:class:`~graphkernel.errors.RuntimeFailure`, since one process does not hold what the others hold. Compiled, they run over a
:class:`~graphkernel.communication.Communicator`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphkernel.errors import RuntimeFailure, TypeRuleError
from kernelgen.tensor.operator import Attribute, InferRule, Kind, Operator, Traits
from kernelgen.tensor.operators.attributes import data_type, dims, text, whole
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.type_rules import Accepts, any_dtype, expect_dtype, number
from kernelgen.tensor.order import TOKEN
from kernelgen.tensor.types import Attrs, Dim, TensorType, divide_exactly, dtype

Types = tuple[TensorType, ...]

REDUCTIONS = ("sum", "max", "min", "prod")
REDUCED_BY, GROUP = text("op", "sum"), (text("group", "world"), whole("rank_size", 1))
TAG = whole("sr_tag", 0)


def ranks_of(attrs: Attrs, least: int = 1) -> int:
    """How many processes the group has. Raises TypeRuleError where that is no number of processes."""
    ranks = attrs.int("rank_size", 1)
    if ranks < least:
        raise TypeRuleError(f"rank_size must be {least} at least, got {ranks}")
    return ranks


def _leading(x: TensorType) -> Dim:
    if x.rank == 0:
        raise TypeRuleError("expects rank 1 at least, got a scalar")
    return x.shape[0]


def _checked_reduction(attrs: Attrs) -> None:
    if attrs.str("op", "sum") not in REDUCTIONS:
        raise TypeRuleError(f"op must be one of {', '.join(REDUCTIONS)}, got {attrs.str('op')!r}")


def _checked_rank(attrs: Attrs, name: str) -> None:
    if not 0 <= attrs.int(name, 0) < ranks_of(attrs):
        raise TypeRuleError(f"{name} {attrs.int(name, 0)} is none of the {ranks_of(attrs)} ranks of the group")


def _part(x: TensorType, ranks: int) -> Dim:
    part = divide_exactly(_leading(x), ranks)
    if part is None:
        raise TypeRuleError(f"the leading extent {_leading(x)} does not divide into {ranks} parts")
    return part


def _all_reduce_type(types: Types, attrs: Attrs) -> Types:
    _checked_reduction(attrs)
    return types


def _all_gather_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    return (TensorType((_leading(x) * ranks_of(attrs), *x.shape[1:]), x.dtype),)


def _reduce_scatter_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    _checked_reduction(attrs)
    return (TensorType((_part(x, ranks_of(attrs)), *x.shape[1:]), x.dtype),)


def _broadcast_type(types: Types, attrs: Attrs) -> Types:
    _checked_rank(attrs, "root_rank")
    return types


def _all_to_all_type(types: Types, attrs: Attrs) -> Types:
    _part(types[0], ranks_of(attrs))
    return types


def _send_type(types: Types, attrs: Attrs) -> Types:
    _checked_rank(attrs, "dest_rank")
    return ()


def _receive_type(types: Types, attrs: Attrs) -> Types:
    _checked_rank(attrs, "src_rank")
    return (TensorType(attrs.dims("shape"), dtype(attrs.str("dtype", "float32"))),)


def _checked(data: Types, tokens: Types, accepts: Accepts) -> None:
    if tokens not in ((), (TOKEN,)):
        raise TypeRuleError(f"expects no more than a token, {TOKEN}, behind its operands, got {tokens[0]}")
    if data:
        expect_dtype(accepts, *data)


def _alone(name: str, attrs: Attrs) -> None:
    ranks = ranks_of(attrs, 0)
    if ranks != 1:
        raise RuntimeFailure(f"{name} over {ranks or 'other'} devices cannot be computed by one process")


def _collective(
    name: str, accepts: Accepts, rule: InferRule, attributes: Sequence[str | Attribute], doc: str, least: int = 1
) -> Operator:
    """One of those that give and take: of one operand, which is copied in a group of one process."""

    def typed(types: Types, attrs: Attrs) -> Types:
        if not types:
            raise TypeRuleError("expects an operand and perhaps a token, got none")
        _checked(types[:1], types[1:], accepts)
        ranks_of(attrs, least)
        return (*rule(types[:1], attrs), TOKEN)

    def meaning(x: Array, *token: Array, attrs: Attrs) -> tuple[Array, ...]:
        _alone(name, attrs)
        return (x.copy(), np.empty(0, bool))

    every = (*attributes, *GROUP)
    call = ("x", *(each.name for each in every if isinstance(each, Attribute)))
    traits = Traits(ordered=name, call=call)
    return declare(name, Kind.OPAQUE, None, typed, meaning, attributes=(*every, "fusion"), doc=doc, traits=traits)


def _message(name: str, operands: int, rule: InferRule, attributes: Sequence[Attribute], doc: str) -> Operator:
    """One of those between two processes."""

    def typed(types: Types, attrs: Attrs) -> Types:
        if len(types) < operands:
            raise TypeRuleError("expects an operand and perhaps a token, got none")
        _checked(types[:operands], types[operands:], any_dtype)
        return (*rule(types[:operands], attrs), TOKEN)

    def meaning(*operands: Array, attrs: Attrs) -> tuple[Array, ...]:
        _alone(name, attrs)
        raise RuntimeFailure("a group of one process has nobody to send to or to receive from")

    traits = Traits(ordered=name)
    return declare(name, Kind.OPAQUE, None, typed, meaning, attributes=(*attributes, *GROUP), doc=doc, traits=traits)


ALL_REDUCE = _collective(
    "AllReduce",
    number,
    _all_reduce_type,
    (REDUCED_BY,),
    "The sum (op: sum, max, min, prod) of the operands of all processes, on every process. rank_size=0: of however many.",
    least=0,
)
ALL_GATHER = _collective(
    "AllGather",
    any_dtype,
    _all_gather_type,
    (),
    "The operands of all processes, joined along axis 0, on every process.",
)
REDUCE_SCATTER = _collective(
    "ReduceScatter",
    number,
    _reduce_scatter_type,
    (REDUCED_BY,),
    "ops.all_reduce, of which each process keeps its part of axis 0.",
)
BROADCAST = _collective(
    "Broadcast",
    any_dtype,
    _broadcast_type,
    (whole("root_rank", 0),),
    "The operand of process root_rank, on every process.",
)
ALL_TO_ALL = _collective(
    "AllToAll",
    any_dtype,
    _all_to_all_type,
    (),
    "Part i of axis 0 goes to process i; what comes from the processes is joined along axis 0 in their order.",
)
SEND = _message("Send", 1, _send_type, (whole("dest_rank"), TAG), "Gives the operand to process dest_rank.")
RECEIVE = _message(
    "Receive",
    0,
    _receive_type,
    (whole("src_rank"), TAG, dims(), data_type("dtype", "float32")),
    "What process src_rank sends, of this shape and data type.",
)
