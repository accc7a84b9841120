"""Gradients of communication between devices: each is the other's. The loss is the sum of the losses of all devices."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.expanders.base import Declined
from graphkernel.gradients.base import Application, Cotangents, gradient
from graphkernel.ops.library.communication import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER
from graphkernel.ops.tensor.apply import apply


@gradient(ALL_REDUCE)
def all_reduce(of: Application) -> Cotangents | Declined:
    """AllReduce of dy; for max and min where the operand is the extreme"""
    op = of.attrs.str("op", "sum")
    if op == "prod":
        return Declined("a product over devices has no rule")
    total = apply(ALL_REDUCE, of.dy, **of.attrs.with_(op="sum"))
    return [total if op == "sum" else ops.select(of.operands[0] == of.results[0], total, 0)]


@gradient(ALL_GATHER)
def all_gather(of: Application) -> Cotangents:
    """ReduceScatter of dy"""
    return [apply(REDUCE_SCATTER, of.dy, **of.attrs.with_(op="sum"))]


@gradient(REDUCE_SCATTER)
def reduce_scatter(of: Application) -> Cotangents | Declined:
    """AllGather of dy"""
    if of.attrs.str("op", "sum") != "sum":
        return Declined(f"a {of.attrs.str('op')} over devices, scattered, has no rule")
    return [apply(ALL_GATHER, of.dy, **of.attrs.without("op"))]
