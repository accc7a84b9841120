"""Operands of several data types: computed in the widest, results in the data types of the operands they belong to."""

from __future__ import annotations

from graphkernel import ops
from graphkernel.ops import Tensor


def like_dtype(x: Tensor, like: Tensor) -> Tensor:
    """x in the data type of ``like``."""
    return x if x.dtype == like.dtype else ops.cast(x, like.dtype)


def one_dtype(*operands: Tensor) -> tuple[Tensor, ...]:
    """All operands in the widest data type among them; narrow ones are float32 already."""
    widest = max(operands, key=lambda x: x.dtype.bits)
    return tuple(like_dtype(x, widest) for x in operands)


def like_operands(results: tuple[Tensor, ...], operands: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Each result in the data type of the operand in its place."""
    return tuple(like_dtype(result, operand) for result, operand in zip(results, operands, strict=True))
