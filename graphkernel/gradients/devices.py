"""Gradients of communication between devices: each is another. The loss is the sum of the losses of all devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphkernel import ops
from graphkernel.expanders.base import Declined
from graphkernel.gradients.base import Application, Cotangents, gradient, undefined
from graphkernel.ops import Tensor
from graphkernel.ops.library.communication import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    RECEIVE,
    REDUCE_SCATTER,
    SEND,
    ranks_of,
)
from kernelgen.tensor.types import Attrs


@gradient(ALL_REDUCE)
def all_reduce(of: Application) -> Cotangents | Declined:
    """AllReduce of dy; for max and min where the operand is the extreme"""
    op = of.attrs.str("op", "sum")
    if op == "prod":
        return Declined("a product over devices has no rule")
    total = ops.all_reduce(of.dy, **_group(of.attrs))
    return _behind(of, total if op == "sum" else ops.select(of.operands[0] == of.results[0], total, 0))


@gradient(ALL_GATHER)
def all_gather(of: Application) -> Cotangents:
    """ReduceScatter of dy"""
    return _behind(of, ops.reduce_scatter(of.dy, **_group(of.attrs)))


@gradient(REDUCE_SCATTER)
def reduce_scatter(of: Application) -> Cotangents | Declined:
    """AllGather of dy"""
    if of.attrs.str("op", "sum") != "sum":
        return Declined(f"a {of.attrs.str('op')} over devices, scattered, has no rule")
    return _behind(of, ops.all_gather(of.dy, **_group(of.attrs)))


@gradient(ALL_TO_ALL)
def all_to_all(of: Application) -> Cotangents:
    """AllToAll of dy"""
    return _behind(of, ops.all_to_all(of.dy, **_group(of.attrs)))


BROADCAST_RULE = undefined(BROADCAST, "it is another one on the process that gives than on those that take")
SEND_RULE = undefined(SEND, "the gradient comes back only where the other process sends it: write that out")
RECEIVE_RULE = undefined(RECEIVE, "the gradient goes back only where this process sends it: write that out")


def _group(attrs: Attrs) -> dict[str, Any]:
    """The group of processes, as an argument of the functions of collectives."""
    return {"group": attrs.str("group", "world"), "rank_size": ranks_of(attrs, 0)}


def _behind(of: Application, dx: Tensor) -> Sequence[Tensor | None]:
    """The cotangent of the data; the token has none."""
    return [dx, *(None for _ in of.operands[1:])]
