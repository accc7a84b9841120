"""Attention, the gated activation and the rotary embedding of transformers, each as one operator.

Source: the primitives PromptFlashAttention, Swiglu and RotaryPositionEmbedding of MindSpore.
"""

from __future__ import annotations

from typing import Any

from graphkernel.errors import TypeRuleError
from graphkernel.ops.composite.activation import SILU
from graphkernel.ops.composite.normalize import SOFTMAX
from graphkernel.ops.fused.fused import composed
from graphkernel.ops.fused.fused_norm import as_dtype
from graphkernel.ops.tensor.apply import apply, apply_all
from graphkernel.ops.tensor.weak_typing import weak_array
from kernelgen.tensor.operators.attributes import axis, whole
from kernelgen.tensor.operators.elemwise import ADD, IS_NAN, MUL, NEG, SUB
from kernelgen.tensor.operators.matmul import BATCH_MATMUL
from kernelgen.tensor.operators.pieces import CONCAT, SPLIT
from kernelgen.tensor.operators.select import SELECT
from kernelgen.tensor.operators.shape import BROADCAST_TO, RESHAPE
from kernelgen.tensor.operators.type_rules import axis_of, static
from kernelgen.tensor.types import Attrs, dtype

MASK_VALUE = -10000.0
MASKS = frozenset({"atten_mask", "pse_shift"})
"""What an operand behind query, key and value may be: 1 where a key is seen, or what is added to the scores."""


def prompt_flash_attention(query: Any, key: Any, value: Any, *masks: Any, attrs: Attrs) -> tuple[Any, ...]:
    """softmax(query @ key.T * scale_value + (1 - atten_mask) * mask_value + pse_shift) @ value

    All are [batch, heads, positions, head size] (input_layout "BNSD"); each head of key and value serves as many heads of
    the query as it takes to serve all. ``optional`` says which masks there are, by default an atten_mask; they broadcast.
    With ``zero_hidden`` a query that sees no key gets zeros, where the softmax would be NaN.
    MindSpore's next_tokens has no counterpart: what a query sees is said by the masks alone.
    """
    kinds = _mask_kinds(attrs, len(masks))
    if any(len(x.shape) != 4 for x in (query, key, value)):
        raise TypeRuleError("takes query, key and value of rank 4 and optionally a mask")
    if attrs.str("input_layout", "BNSD") != "BNSD":
        raise TypeRuleError(f"input_layout must be 'BNSD', got {attrs.str('input_layout')!r}")
    heads = (attrs.int("num_heads"), attrs.int("num_key_value_heads"))
    if (query.shape[1], key.shape[1]) != heads or key.shape[:2] != value.shape[:2]:
        raise TypeRuleError(f"operands have not the {heads[0]} heads and {heads[1]} key value heads of the attributes")
    if heads[0] % heads[1]:
        raise TypeRuleError(f"{heads[0]} heads are no multiple of {heads[1]} key value heads")
    key, value = (_repeated(x, heads[0] // heads[1]) for x in (key, value))
    like = dtype(query.dtype)
    scores = apply(BATCH_MATMUL, query, key, transpose_a=False, transpose_b=True)
    scores = apply(MUL, scores, weak_array(attrs.float("scale_value"), like))
    for kind, mask in zip(kinds, masks, strict=True):
        scores = _masked(scores, kind, mask, attrs)
    weights = apply(SOFTMAX, scores, axis=(3,))
    if attrs.bool("zero_hidden", False):
        weights = apply(SELECT, apply(IS_NAN, weights), weak_array(0.0, dtype(weights.dtype)), weights)
    weights = as_dtype(weights, dtype(value.dtype))
    return (apply(BATCH_MATMUL, weights, value, transpose_a=False, transpose_b=False),)


def _mask_kinds(attrs: Attrs, count: int) -> tuple[str, ...]:
    given = attrs.get("optional", ("atten_mask",) * count)
    kinds = tuple(map(str, given)) if isinstance(given, tuple) else (str(given),)
    if len(kinds) != count or len(set(kinds)) != count or not MASKS.issuperset(kinds):
        raise TypeRuleError(f"optional says {kinds} of {count} operands; each is one of {', '.join(sorted(MASKS))}")
    return kinds


def _masked(scores: Any, kind: str, mask: Any, attrs: Attrs) -> Any:
    """The scores with a mask added, in the mask's type where that is what is added."""
    if kind == "pse_shift":
        return apply(ADD, as_dtype(scores, dtype(mask.dtype)), mask)
    like = dtype(scores.dtype)
    hidden = apply(SUB, weak_array(1.0, like), mask)
    return apply(ADD, scores, apply(MUL, hidden, weak_array(attrs.float("mask_value", MASK_VALUE), like)))


def _repeated(x: Any, times: int) -> Any:
    """Every head as often as it serves."""
    if times == 1:
        return x
    batch, heads, *rest = x.shape
    apart = apply(RESHAPE, x, shape=(batch, heads, 1, *rest))
    spread = apply(BROADCAST_TO, apart, shape=(batch, heads, times, *rest))
    return apply(RESHAPE, spread, shape=(batch, heads * times, *rest))


def rotary_position_embedding(x: Any, cos: Any, sin: Any, *, attrs: Attrs) -> tuple[Any, ...]:
    """x * cos + concat(-b, a) * sin where a and b are the halves of the last axis of x; cos and sin broadcast"""
    if attrs.int("mode", 0) != 0:
        raise TypeRuleError(f"mode must be 0, which rotates halves, got {attrs.int('mode')}")
    first, second = _halves(x, len(x.shape) - 1)
    turned = apply(CONCAT, apply(NEG, second), first, axis=len(x.shape) - 1)
    return (apply(ADD, apply(MUL, x, cos), apply(MUL, turned, sin)),)


def _halves(x: Any, along: int) -> tuple[Any, ...]:
    extent = static(x.shape[along], f"the extent of axis {along}")
    if extent % 2:
        raise TypeRuleError(f"axis {along} of extent {extent} has no halves")
    return apply_all(SPLIT, x, axis=along, size_splits=(extent // 2, extent // 2))


def swiglu(x: Any, *, attrs: Attrs) -> tuple[Any, ...]:
    """SiLU(a) * b where a and b are the halves of x along axis"""
    gate, linear = _halves(x, axis_of(attrs.int("axis", -1), len(x.shape)))
    return (apply(MUL, apply(SILU, gate), linear),)


PROMPT_FLASH_ATTENTION = composed(
    "PromptFlashAttention",
    prompt_flash_attention,
    None,
    attributes=(
        "input_layout", "num_heads", "num_key_value_heads", "scale_value", "mask_value", "optional", "zero_hidden",
    ),
)  # fmt: skip
SWIGLU = composed("Swiglu", swiglu, 1, attributes=(axis(default=-1),))
ROTARY_POSITION_EMBEDDING = composed(
    "RotaryPositionEmbedding", rotary_position_embedding, 3, attributes=(whole("mode", None),)
)
