"""Attention and the gated activation of transformers, each as one operator.

Source: the primitives PromptFlashAttention and Swiglu of MindSpore.
"""

from __future__ import annotations

from typing import Any

from graphkernel.errors import TypeRuleError
from graphkernel.ir.types import Attrs, dtype
from graphkernel.ops.activation import SILU
from graphkernel.ops.apply import apply, apply_all
from graphkernel.ops.elemwise import ADD, MUL, SUB
from graphkernel.ops.fused import composed
from graphkernel.ops.matmul import BATCH_MATMUL
from graphkernel.ops.normalize import SOFTMAX
from graphkernel.ops.pieces import SPLIT
from graphkernel.ops.type_rules import axis_of, static
from graphkernel.ops.weak_typing import weak_array

MASK_VALUE = -10000.0


def prompt_flash_attention(query: Any, key: Any, value: Any, *mask: Any, attrs: Attrs) -> tuple[Any, ...]:
    """softmax(query @ key.T * scale_value + (1 - mask) * mask_value) @ value

    All are [batch, heads, positions, head size] (input_layout "BNSD"); the mask broadcasts and is 1 where a key is seen.
    MindSpore's next_tokens has no counterpart: what a query sees is said by the mask alone.
    """
    if len(mask) > 1 or any(len(x.shape) != 4 for x in (query, key, value)):
        raise TypeRuleError("takes query, key and value of rank 4 and optionally a mask")
    if attrs.str("input_layout", "BNSD") != "BNSD":
        raise TypeRuleError(f"input_layout must be 'BNSD', got {attrs.str('input_layout')!r}")
    heads = (attrs.int("num_heads"), attrs.int("num_key_value_heads"))
    if (query.shape[1], key.shape[1]) != heads or key.shape[:2] != value.shape[:2]:
        raise TypeRuleError(f"operands have not the {heads[0]} heads and {heads[1]} key value heads of the attributes")
    like = dtype(query.dtype)
    scores = apply(BATCH_MATMUL, query, key, transpose_a=False, transpose_b=True)
    scores = apply(MUL, scores, weak_array(attrs.float("scale_value"), like))
    for seen in mask:
        hidden = apply(SUB, weak_array(1.0, like), seen)
        scores = apply(ADD, scores, apply(MUL, hidden, weak_array(attrs.float("mask_value", MASK_VALUE), like)))
    return (apply(BATCH_MATMUL, apply(SOFTMAX, scores, axis=(3,)), value, transpose_a=False, transpose_b=False),)


def swiglu(x: Any, *, attrs: Attrs) -> tuple[Any, ...]:
    """SiLU(a) * b where a and b are the halves of x along axis"""
    axis = axis_of(attrs.int("axis", -1), len(x.shape))
    extent = static(x.shape[axis], f"the extent of axis {axis}")
    if extent % 2:
        raise TypeRuleError(f"axis {axis} of extent {extent} has no halves")
    gate, linear = apply_all(SPLIT, x, axis=axis, size_splits=(extent // 2, extent // 2))
    return (apply(MUL, apply(SILU, gate), linear),)


PROMPT_FLASH_ATTENTION = composed(
    "PromptFlashAttention",
    prompt_flash_attention,
    None,
    attributes=("input_layout", "num_heads", "num_key_value_heads", "scale_value", "mask_value"),
)
SWIGLU = composed("Swiglu", swiglu, 1, attributes=("axis",))
