"""The passes FlashAttentionFusionV1 and FlashAttentionFusionV2: attention written out becomes PromptFlashAttention.

Before and after (version 1; version 2 has no mask, or one that FillV2 fills with zeros)::

    kt = Transpose(k, (0, 1, 3, 2))                    o = PromptFlashAttention(q, k, v, mask,
    s = RealDiv(BatchMatMul(q, kt), 8.0)        ==>            scale_value=0.125, mask_value=-10000.0)
    m = Mul(Sub(1.0, mask), -10000.0)
    o = BatchMatMul(Softmax(Add(s, m)), v)

What :mod:`graphkernel.passes.named_fusion.attention_scores` reads of query, key and scale is more than MindSpore's
patterns; a mask that
is no ``(1 - mask) * s`` is taken as what it is, a term of the scores; weights that are NaN may be made zero before they count.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from graphkernel import ops
from graphkernel.expanders.base import Declined
from graphkernel.ops import Tensor, apply_all
from graphkernel.ops.composite.normalize import SOFTMAX
from graphkernel.ops.fused.fused_transformer import PROMPT_FLASH_ATTENTION
from graphkernel.passes.named_fusion.apply_fusion import Fusion, Product, Site, named_fusion
from graphkernel.passes.named_fusion.attention_scores import (
    BNSD,
    Rows,
    Scores,
    key_rows,
    query_rows,
    scores_of,
    unrepeated,
)
from graphkernel.passes.named_fusion.queries import both_orders, first_failure, made_by, scalar
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operators.cast import CAST
from kernelgen.tensor.operators.creation import FILL_V2
from kernelgen.tensor.operators.elemwise import IS_NAN, MUL, SUB
from kernelgen.tensor.operators.matmul import BATCH_MATMUL
from kernelgen.tensor.operators.select import SELECT
from kernelgen.tensor.types import Attrs, Dim

HIDING = -1e4  # a float16 mask adds this; the exponential of it is 0 in float32


@dataclass(frozen=True)
class _Weights:
    """The softmax of scores, as the product with the values takes it: cast, or with zeros for NaN."""

    softmax: Node
    behind: tuple[Node, ...]
    zero_hidden: bool


@named_fusion("FlashAttentionFusionV1")
def flash_attention_fusion_v1(site: Site) -> Fusion | Declined | None:
    """softmax(q @ k.T / d + mask) @ v as PromptFlashAttention, the mask as written or from (1 - mask) * s.

    MindSpore takes the scale from the head size and checks neither d nor the constants of the mask; here both are the
    graph's own.
    """
    found = _read(site)
    if found is None or _empty_mask(found[1]) is not None or not found[1].masks:
        return None
    return _attention(site.root, *found)


@named_fusion("FlashAttentionFusionV2")
def flash_attention_fusion_v2(site: Site) -> Fusion | Declined | None:
    """softmax(q @ k.T * s) @ v, or with a mask that FillV2 fills with zeros, as PromptFlashAttention without a mask."""
    found = _read(site)
    if found is None:
        return None
    weights, scores = found
    fill = _empty_mask(scores)
    if fill is not None and scalar(fill.args[0]) != 0:
        return Declined("FillV2 does not fill with 0, so it is no empty mask")
    if scores.masks and fill is None:
        return None
    return _attention(site.root, weights, Scores(scores.product, scores.nodes, scores.factor))


def _read(site: Site) -> tuple[_Weights, Scores] | None:
    """The weights that the root multiplies with the values, and the scores that they come from."""
    weights = _weights(site.root.args[0]) if site.root.op is BATCH_MATMUL else None
    scores = scores_of(weights.softmax.args[0]) if weights is not None else None
    return (weights, scores) if weights is not None and scores is not None else None


def _weights(value: Value) -> _Weights | None:
    """A Softmax, cast to another float behind it, with zeros in the place of NaN."""
    behind: tuple[Node, ...] = ()
    guarded = False
    while value.op is not SOFTMAX:
        inner = _before_guard(value)
        cast = made_by(value, CAST)
        if inner is not None and not guarded:
            guarded, behind, value = True, (inner[1], value.node, *behind), inner[0]
        elif cast is not None and cast.args[0].type.dtype.is_float:
            behind, value = (cast, *behind), cast.args[0]
        else:
            return None
    return _Weights(value.node, behind, guarded)


def _before_guard(value: Value) -> tuple[Value, Node] | None:
    """What Select(IsNan(x), 0, x) guards, and the test."""
    guard = made_by(value, SELECT)
    test = made_by(guard.args[0], IS_NAN) if guard is not None else None
    if guard is None or test is None or test.args[0] != guard.args[2] or scalar(guard.args[1]) != 0:
        return None
    return guard.args[2], test


def _empty_mask(scores: Scores) -> Node | None:
    return made_by(scores.masks[0], FILL_V2) if len(scores.masks) == 1 else None


def _attention(root: Node, weights: _Weights, scores: Scores) -> Fusion | Declined | None:
    query = query_rows(scores.product.args[0])
    swapped = scores.product.attrs.bool("transpose_b", False)
    key = key_rows(scores.product.args[1], swapped=swapped)
    if key is None:
        return Declined("the key is not transposed")
    value = Rows(root.args[1], root.args[1].type.shape)
    key, value = _with_fewer_heads(key, value)
    declined = first_failure(_conditions(root, weights.softmax, scores, (query, key, value)))
    if declined:
        return declined
    factor = (scores.factor or 0.0) * (query.factor or 0.0) * (key.factor or 0.0)
    masks, kinds = _masks(scores)
    guard = {"zero_hidden": True} if weights.zero_hidden else {}
    build = _product(
        (query, key, value),
        Attrs.of(
            input_layout="BNSD",
            num_heads=query.shape[1],
            num_key_value_heads=key.shape[1],
            scale_value=factor,
            **kinds,
            **guard,
        ),
    )
    nodes = (*scores.nodes, weights.softmax, *weights.behind, root)
    return Fusion(nodes, (query.source, key.source, value.source, *masks), root.outs, build)


def _with_fewer_heads(key: Rows, value: Rows) -> tuple[Rows, Rows]:
    """Key and value before their heads were repeated, where both were, in the same way."""
    fewer = unrepeated(key), unrepeated(value)
    return fewer if fewer[0].shape[:2] == fewer[1].shape[:2] else (key, value)


def _serves(heads: Dim, groups: Dim) -> bool:
    """True when each of fewer heads serves as many as the others."""
    return isinstance(heads, int) and isinstance(groups, int) and heads % groups == 0


def _masks(scores: Scores) -> tuple[tuple[Value, ...], dict[str, object]]:
    """The operands behind query, key and value, which add up to one, and the attributes that say what it is."""
    seen = _seen(scores.masks[0]) if len(scores.masks) == 1 else None
    if seen is not None:
        return (seen[0],), {"mask_value": seen[1]}
    return scores.masks, {"optional": ("pse_shift",)} if scores.masks else {}


def _seen(mask: Value) -> tuple[Value, float] | None:
    """``m`` and ``s`` of (1 - m) * s, where s hides."""
    weigh = made_by(mask, MUL)
    for hidden, weight in both_orders(weigh) if weigh is not None else ():
        subtract, number = made_by(hidden, SUB), scalar(weight)
        if subtract is not None and scalar(subtract.args[0]) == 1 and number is not None and number <= HIDING:
            return subtract.args[1], number
    return None


def _product(rows: tuple[Rows, Rows, Rows], attrs: Attrs) -> Product:
    def build(query: Tensor, key: Tensor, value: Tensor, *masks: Tensor) -> tuple[Tensor, ...]:
        moved = [found.of(source) for found, source in zip(rows, (query, key, value), strict=True)]
        terms = (reduce(ops.add, masks),) if masks else ()
        return apply_all(PROMPT_FLASH_ATTENTION, *moved, *terms, **attrs)

    return build


def _conditions(root: Node, softmax: Node, scores: Scores, rows: tuple[Rows, Rows, Rows]) -> list[tuple[bool, str]]:
    shapes = [found.shape for found in rows]
    if any(len(shape) != BNSD for shape in shapes):
        return [(False, f"query, key and value are {', '.join(str(shape) for shape in shapes)}, not all of rank 4")]
    query, key, value = shapes
    plain = not any(root.attrs.bool(name, False) for name in ("transpose_a", "transpose_b"))
    factors = [scores.factor, *(found.factor for found in rows)]
    return [
        (plain and not scores.product.attrs.bool("transpose_a", False), "query, weights or values are transposed"),
        (tuple(axis % 4 for axis in softmax.attrs.ints("axis", (-1,))) == (3,), "the Softmax is not over the keys"),
        (query[0] == key[0] == value[0] and key[1] == value[1], "query, key and value differ in batch or heads"),
        (all(isinstance(dim, int) for dim in (query[1], key[1], query[3])), "heads or head size are not static"),
        (query[1] == key[1] or _serves(query[1], key[1]), "query, key and value differ in batch or heads"),
        (query[2] != 1, "a single query is decoding, not a prompt"),
        (None not in factors, "the scale is not a constant"),
    ]
