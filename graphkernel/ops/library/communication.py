"""Collective communication: what the devices of a group give each other.

Attributes as in MindSpore: ``group`` names the group, ``rank_size`` is its number of devices (default 1). The numpy
meaning is that of a group of one device; a larger one is a :class:`~graphkernel.errors.RuntimeFailure`, since one process
does not hold what the other devices hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphkernel.errors import RuntimeFailure, TypeRuleError
from kernelgen.tensor.operator import Attribute, InferRule, Kind, Operator
from kernelgen.tensor.operators.attributes import text, whole
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.type_rules import Accepts, any_dtype, expect_dtype, number
from kernelgen.tensor.types import Attrs, Dim, TensorType, divide_exactly

Types = tuple[TensorType, ...]

REDUCTIONS = ("sum", "max", "min", "prod")
REDUCED_BY, GROUP = text("op", "sum"), (text("group", "world"), whole("rank_size", 1), "fusion")


def _ranks(attrs: Attrs) -> int:
    ranks = attrs.int("rank_size", 1)
    if ranks < 1:
        raise TypeRuleError(f"rank_size must be 1 at least, got {ranks}")
    return ranks


def _leading(x: TensorType) -> Dim:
    if x.rank == 0:
        raise TypeRuleError("expects rank 1 at least, got a scalar")
    return x.shape[0]


def _checked_reduction(attrs: Attrs) -> None:
    if attrs.str("op", "sum") not in REDUCTIONS:
        raise TypeRuleError(f"op must be one of {', '.join(REDUCTIONS)}, got {attrs.str('op')!r}")


def _all_reduce_type(types: Types, attrs: Attrs) -> Types:
    _checked_reduction(attrs)
    _ranks(attrs)
    return types


def _all_gather_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    return (TensorType((_leading(x) * _ranks(attrs), *x.shape[1:]), x.dtype),)


def _reduce_scatter_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    _checked_reduction(attrs)
    part = divide_exactly(_leading(x), _ranks(attrs))
    if part is None:
        raise TypeRuleError(f"the leading extent {_leading(x)} does not divide into {_ranks(attrs)} parts")
    return (TensorType((part, *x.shape[1:]), x.dtype),)


def _collective(
    name: str, accepts: Accepts, rule: InferRule, attributes: Sequence[str | Attribute], doc: str
) -> Operator:
    def typed(types: Types, attrs: Attrs) -> Types:
        expect_dtype(accepts, *types)
        return rule(types, attrs)

    def meaning(x: Array, *, attrs: Attrs) -> Array:
        if _ranks(attrs) > 1:
            raise RuntimeFailure(f"{name} over {_ranks(attrs)} devices cannot be computed by one process")
        return x.copy()

    return declare(name, Kind.OPAQUE, 1, typed, meaning, attributes=attributes, doc=doc)


ALL_REDUCE = _collective(
    "AllReduce",
    number,
    _all_reduce_type,
    (REDUCED_BY, *GROUP),
    "The sum (op: sum, max, min, prod) of the operands of all devices, on every device.",
)
ALL_GATHER = _collective(
    "AllGather",
    any_dtype,
    _all_gather_type,
    GROUP,
    "The operands of all devices, joined along axis 0, on every device.",
)
REDUCE_SCATTER = _collective(
    "ReduceScatter",
    number,
    _reduce_scatter_type,
    (REDUCED_BY, *GROUP),
    "ops.all_reduce, of which each device keeps its part of axis 0.",
)
