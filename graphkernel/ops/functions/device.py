"""Python functions of random operators, of communication and of the attention cache; see
:mod:`graphkernel.ops.functions.pointwise`.

Random operators take the number of the step as their last operand, so that steps draw different numbers; in a trace it
must be a tensor, since an operator needs one to be recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphkernel.errors import FrontendError
from graphkernel.ops.library import attention_cache, communication, random
from graphkernel.ops.tensor.apply import TensorLike, apply, apply_all
from graphkernel.ops.tensor.arguments import dims
from graphkernel.ops.tensor.tensor import Operand, Tensor
from kernelgen.tensor.types import Dim


def uniform_real(shape: int | Sequence[Dim], *step: Operand, seed: int = 0, seed2: int = 0) -> Any:
    """float32 numbers in [0, 1)."""
    return apply(random.UNIFORM_REAL, *step, shape=dims(shape), seed=seed, seed2=seed2)


def standard_normal(shape: int | Sequence[Dim], *step: Operand, seed: int = 0, seed2: int = 0) -> Any:
    """Normal float32 numbers of mean 0 and variance 1."""
    return apply(random.STANDARD_NORMAL, *step, shape=dims(shape), seed=seed, seed2=seed2)


def dropout(
    x: TensorLike, *step: Operand, keep_prob: float = 0.5, seed0: int = 0, seed1: int = 0
) -> tuple[TensorLike, TensorLike]:
    """(x / keep_prob where the mask is 1, else 0; the mask)."""
    y, mask = apply_all(random.DROPOUT, x, *step, keep_prob=float(keep_prob), Seed0=seed0, Seed1=seed1)
    return y, mask


def dropout_grad(dy: TensorLike, mask: Operand, keep_prob: float = 0.5) -> TensorLike:
    """dy / keep_prob where the mask is 1, else 0."""
    return apply(random.DROPOUT_GRAD, dy, mask, keep_prob=float(keep_prob))


def all_reduce(x: TensorLike, op: str = "sum", group: str = "world", rank_size: int = 1) -> TensorLike:
    """The sum (or max, min, prod) of the operands of all devices of a group, on every device."""
    return apply(communication.ALL_REDUCE, x, op=op, group=group, rank_size=rank_size)


def all_gather(x: TensorLike, group: str = "world", rank_size: int = 1) -> TensorLike:
    """The operands of all devices of a group, joined along axis 0."""
    return apply(communication.ALL_GATHER, x, group=group, rank_size=rank_size)


def reduce_scatter(x: TensorLike, op: str = "sum", group: str = "world", rank_size: int = 1) -> TensorLike:
    """:func:`all_reduce`, of which each device keeps its part of axis 0."""
    return apply(communication.REDUCE_SCATTER, x, op=op, group=group, rank_size=rank_size)


def reshape_and_cache(
    key: TensorLike, value: Operand, key_cache: TensorLike, value_cache: TensorLike, slot_mapping: Operand
) -> tuple[TensorLike, TensorLike]:
    """Writes the key and value of each token into its slot of the caches. Use the results where the new content is meant.

    Traced, the caches must be inputs of the graph: they are written in place. On arrays nothing is written.

    Raises FrontendError where the caches are no inputs of the graph.
    """
    caches = apply_all(attention_cache.RESHAPE_AND_CACHE, key, value, key_cache, value_cache, slot_mapping)
    for cache, result in zip((key_cache, value_cache), caches, strict=True):
        if isinstance(result, Tensor):
            if not isinstance(cache, Tensor) or not cache.value.is_parameter:
                raise FrontendError("ReshapeAndCache: the caches must be inputs of the graph")
            result.builder.effects.append((cache.value, result.value))
    return caches[0], caches[1]


def paged_attention(
    query: TensorLike,
    key_cache: Operand,
    value_cache: Operand,
    block_tables: Operand,
    context_lens: Operand,
    head_num: int,
    scale_value: float | None = None,
) -> TensorLike:
    """Attention of one new token of each sequence over the tokens in its blocks of the caches."""
    scale = {} if scale_value is None else {"scale_value": float(scale_value)}
    return apply(
        attention_cache.PAGED_ATTENTION,
        query,
        key_cache,
        value_cache,
        block_tables,
        context_lens,
        head_num=head_num,
        **scale,
    )
