"""The passes FlashAttentionFusionV1 and FlashAttentionFusionV2: attention written out becomes PromptFlashAttention.

Before and after (version 1; version 2 has no mask and takes its scale from ``x / Sqrt(y)``)::

    kt = Transpose(k, (0, 1, 3, 2))                    o = PromptFlashAttention(q, k, v, mask,
    s = RealDiv(BatchMatMul(q, kt), 8.0)        ==>            scale_value=0.125, mask_value=-10000.0)
    m = Mul(Sub(1.0, mask), -10000.0)
    o = BatchMatMul(Softmax(Add(s, m)), v)
"""

from __future__ import annotations

from dataclasses import dataclass

from graphkernel.expanders.base import Declined
from graphkernel.ir.graph import Node, Value
from graphkernel.ops.fused_transformer import PROMPT_FLASH_ATTENTION
from graphkernel.passes.fusion_group.fuse import Fusion, Site, named_fusion, product
from graphkernel.passes.fusion_group.look import both_orders, first_failure, made_by, scalar

HIDING = -1e4  # a float16 mask adds this; the exponential of it is 0 in float32
KEY_TRANSPOSED = (0, 1, 3, 2)


@dataclass(frozen=True)
class _Scores:
    """What stands between the product of query and key and the Softmax."""

    nodes: tuple[Node, ...]
    product: Node
    factor: float | None
    mask: tuple[Value, ...] = ()
    visible: float | None = 1.0
    hidden: float | None = HIDING


@named_fusion("FlashAttentionFusionV1")
def flash_attention_fusion_v1(site: Site) -> Fusion | Declined | None:
    """softmax(q @ k.T / d + (1 - mask) * s) @ v as PromptFlashAttention.

    MindSpore takes the scale from the head size and checks neither d nor the constants of the mask; here both are the
    graph's own, and a mask that does not hide (s above -10000) is refused.
    """
    softmax = _softmax(site)
    add = made_by(softmax.args[0], "Add") if softmax else None
    if softmax is None or add is None:
        return None
    found = next((scores for scaled, masked in both_orders(add) if (scores := _masked(add, scaled, masked))), None)
    return _attention(site.root, softmax, found) if found else None


@named_fusion("FlashAttentionFusionV2")
def flash_attention_fusion_v2(site: Site) -> Fusion | Declined | None:
    """softmax(q @ k.T * (x / sqrt(y)) + 0) @ v, where FillV2 makes the zeros, as PromptFlashAttention without a mask."""
    softmax = _softmax(site)
    add = made_by(softmax.args[0], "Add") if softmax else None
    if softmax is None or add is None:
        return None
    for scaled, filled in both_orders(add):
        multiply, fill = made_by(scaled, "Mul"), made_by(filled, "FillV2")
        if multiply is None or fill is None:
            continue
        for scores, factor in both_orders(multiply):
            matmul = made_by(scores, "BatchMatMul")
            if matmul is not None and made_by(factor, "RealDiv", "Constant") is not None:
                if scalar(fill.args[0]) != 0:
                    return Declined("FillV2 does not fill with 0, so it is no empty mask")
                return _attention(site.root, softmax, _Scores((matmul, multiply, add), matmul, scalar(factor)))
    return None


def _softmax(site: Site) -> Node | None:
    """The Softmax whose result the root multiplies with the values."""
    return made_by(site.root.args[0], "Softmax") if site.root.op.name == "BatchMatMul" else None


def _masked(add: Node, scaled: Value, masked: Value) -> _Scores | None:
    """RealDiv(BatchMatMul, d) and Mul(Sub(c, mask), s)."""
    divide, weigh = made_by(scaled, "RealDiv"), made_by(masked, "Mul")
    matmul = made_by(divide.args[0], "BatchMatMul") if divide else None
    if divide is None or weigh is None or matmul is None:
        return None
    for hidden, weight in both_orders(weigh):
        subtract = made_by(hidden, "Sub")
        if subtract is not None:
            visible, mask = subtract.args
            divisor = scalar(divide.args[1])
            factor = 1 / divisor if divisor else None
            return _Scores((matmul, divide, add), matmul, factor, (mask,), scalar(visible), scalar(weight))
    return None


def _attention(root: Node, softmax: Node, scores: _Scores) -> Fusion | Declined | None:
    key = _key(scores.product)
    if not isinstance(key, Value):
        return key
    query, value = scores.product.args[0], root.args[1]
    declined = first_failure(_conditions(root, softmax, scores, (query, key, value)))
    if declined:
        return declined
    extra = {"mask_value": scores.hidden} if scores.mask else {}
    build = product(
        PROMPT_FLASH_ATTENTION,
        input_layout="BNSD",
        num_heads=query.type.shape[1],
        num_key_value_heads=key.type.shape[1],
        scale_value=scores.factor,
        **extra,
    )
    return Fusion((*scores.nodes, softmax, root), (query, key, value, *scores.mask), root.outs, build)


def _key(matmul: Node) -> Value | Declined | None:
    """The key, whose last two axes are swapped by a Transpose or by the product."""
    transpose = made_by(matmul.args[1], "Transpose")
    swapped = matmul.attrs.bool("transpose_b", False)
    if transpose is None:
        return matmul.args[1] if swapped else None
    if swapped or transpose.attrs.ints("perm") != KEY_TRANSPOSED:
        return Declined(f"the key is not transposed by {KEY_TRANSPOSED}")
    return transpose.args[0]


def _conditions(root: Node, softmax: Node, scores: _Scores, operands: tuple[Value, ...]) -> list[tuple[bool, str]]:
    types = [operand.type for operand in operands]
    if any(type_.rank != 4 for type_ in types):
        return [(False, f"query, key and value are {', '.join(map(str, types))}, not all of rank 4")]
    query, key, value = types
    plain = not any(root.attrs.bool(name, False) for name in ("transpose_a", "transpose_b"))
    return [
        (plain and not scores.product.attrs.bool("transpose_a", False), "query, weights or values are transposed"),
        (tuple(axis % 4 for axis in softmax.attrs.ints("axis", (-1,))) == (3,), "the Softmax is not over the keys"),
        (query.shape[:2] == key.shape[:2] == value.shape[:2], "query, key and value differ in batch or heads"),
        (isinstance(query.shape[1], int) and isinstance(query.shape[3], int), "heads or head size are not static"),
        (query.shape[2] != 1, "a single query is decoding, not a prompt"),
        (scores.factor is not None, "the scale is not a constant"),
        (scores.visible == 1, "the mask is not subtracted from 1"),
        (scores.hidden is not None and scores.hidden <= HIDING, f"hidden keys are not weighed {HIDING:g} or less"),
    ]
