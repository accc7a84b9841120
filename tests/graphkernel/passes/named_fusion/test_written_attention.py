"""Attention in every spelling that exporters of models have for it is one operator, and means what it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import OPS, Tensor
from graphkernel.passes.named_fusion import FUSION_GROUP
from kernelgen.tensor.evaluation.evaluate import evaluate
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.verify import verify
from tests.support.fusion_cases import assert_near

BATCH, HEADS, GROUPS, QUERIES, KEYS, SIZE = 2, 4, 2, 5, 6, 3
Function = Callable[..., Any]
BOTH = [entry for entry in FUSION_GROUP if entry.name.startswith("FlashAttention")]


def swapped(k: Tensor) -> Tensor:
    return ops.transpose(k, (0, 1, 3, 2))


def folded(k: Tensor) -> Tensor:
    """As where ``k`` was transposed before, and both transpositions became one."""
    return ops.transpose(ops.transpose(k, (0, 2, 1, 3)), (0, 2, 3, 1))


def merged(k: Tensor) -> Tensor:
    """By matrices of which batch and heads are one axis."""
    batch, heads, rows, columns = k.shape
    matrices = ops.transpose(ops.reshape(k, (batch * heads, rows, columns)), (0, 2, 1))
    return ops.reshape(matrices, (batch, heads, columns, rows))


KEYS_TRANSPOSED: Mapping[str, Function] = {"swapped": swapped, "folded": folded, "merged": merged}
SCALES: Mapping[str, tuple[Function, Function, Function]] = {  # of query, transposed key, scores
    "none": (lambda q: q, lambda k: k, lambda s: s),
    "query": (lambda q: q * 0.5, lambda k: k, lambda s: s),
    "both": (lambda q: q * 0.7, lambda k: 0.7 * k, lambda s: s),
    "scores": (lambda q: q, lambda k: k, lambda s: s * 0.5),
    "divided": (lambda q: q / 2.0, lambda k: k, lambda s: s / 1.5),
    "a vector of one": (lambda q: q * np.full((1,), 0.5, np.float32), lambda k: k, lambda s: s),
}
BIAS = np.linspace(-1, 1, HEADS * QUERIES * KEYS, dtype=np.float32).reshape(1, HEADS, QUERIES, KEYS)
MASKS: Mapping[str, Function] = {
    "none": lambda s, m: s,
    "added": lambda s, m: s + m,
    "added first": lambda s, m: m + s,
    "hidden": lambda s, m: s + (1.0 - m) * -10000.0,
    "weighed otherwise": lambda s, m: s + (2.0 - m) * -3.0,
    "two terms": lambda s, m: (s + BIAS) + m,
}


def guarded(weights: Tensor) -> Tensor:
    return ops.select(ops.is_nan(weights), 0.0, weights)


@dataclass(frozen=True)
class Form:
    """One spelling."""

    transposed: Function = swapped
    scale: tuple[Function, Function, Function] = SCALES["scores"]
    mask: Function = MASKS["added"]
    behind: Function = guarded
    softmax: Function = ops.softmax
    repeated_key: Function = lambda x: x
    repeated_value: Function = lambda x: x

    def __call__(self, q: Tensor, k: Tensor, v: Tensor, m: Tensor) -> Tensor:
        of_query, of_key, of_scores = self.scale
        scores = ops.batch_matmul(of_query(q), of_key(self.transposed(self.repeated_key(k))))
        weights = self.behind(self.softmax(self.mask(of_scores(scores), m)))
        return ops.batch_matmul(weights, self.repeated_value(v))


def traced(form: Function, dtype: str = "float32", heads: int = HEADS) -> Graph:
    shapes = ((BATCH, HEADS, QUERIES, SIZE), *((BATCH, heads, KEYS, SIZE),) * 2, (BATCH, 1, QUERIES, KEYS))
    return trace(form, *(spec(shape, dtype) for shape in shapes))


def fused(graph: Graph) -> Graph:
    after = graph
    for entry in BOTH:
        after = entry(after)
        verify(after)
        assert entry(after) is after
    return after


def launched(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.operators if node.op.name not in ("Reshape", "Transpose")]


def arrays_for(graph: Graph, *, hides: bool) -> list[Any]:
    rng = np.random.default_rng(7)
    arrays = [rng.standard_normal([int(str(d)) for d in v.type.shape]).astype(v.type.dtype.numpy) for v in graph.inputs]
    if hides:
        arrays[3] = np.where(rng.random(arrays[3].shape) < 0.4, -np.inf, 0).astype(arrays[3].dtype)
        arrays[3][0, 0, 1] = -np.inf  # a query that sees no key
    return arrays


def same_numbers(before: Graph, after: Graph, *, hides: bool = False) -> None:
    arrays = arrays_for(before, hides=hides)
    for found, expected in zip(evaluate(after, arrays), evaluate(before, arrays), strict=True):
        assert_near(found, expected)


@pytest.mark.parametrize(("key", "scale", "mask"), list(product(KEYS_TRANSPOSED, SCALES, MASKS)))
def test_every_spelling(key: str, scale: str, mask: str) -> None:
    graph = traced(Form(KEYS_TRANSPOSED[key], SCALES[scale], MASKS[mask], behind=lambda w: w))
    after = fused(graph)
    assert launched(after)[-1] == "PromptFlashAttention"
    assert "Softmax" not in launched(after)
    same_numbers(graph, after)


def test_queries_that_see_no_key_give_zeros_where_the_model_says_so() -> None:
    graph = traced(Form())
    after = fused(graph)
    assert launched(after) == ["PromptFlashAttention"]
    same_numbers(graph, after, hides=True)
    plain = traced(Form(behind=lambda w: w))
    arrays = arrays_for(plain, hides=True)
    assert np.isnan(evaluate(fused(plain), arrays)[0]).any()


def repeated(x: Tensor, times: int = HEADS // GROUPS) -> Tensor:
    batch, heads, rows, columns = x.shape
    spread = ops.broadcast_to(ops.expand_dims(x, 2), (batch, heads, times, rows, columns))
    return ops.reshape(spread, (batch, heads * times, rows, columns))


@pytest.mark.parametrize("key", KEYS_TRANSPOSED)
def test_heads_that_serve_a_group(key: str) -> None:
    """Two heads of key and value serve four of the query; nothing is repeated in memory."""
    form = Form(KEYS_TRANSPOSED[key], repeated_key=repeated, repeated_value=repeated)
    graph = traced(form, heads=GROUPS)
    after = fused(graph)
    assert launched(after) == ["PromptFlashAttention"]
    same_numbers(graph, after)


def crosswise(x: Tensor) -> Tensor:
    """Heads in turns: 0, 1, 0, 1."""
    batch, heads, rows, columns = x.shape
    spread = ops.broadcast_to(ops.expand_dims(x, 1), (batch, 2, heads, rows, columns))
    return ops.reshape(spread, (batch, heads * 2, rows, columns))


@pytest.mark.parametrize(("of_key", "of_value"), [(crosswise, crosswise), (repeated, crosswise), (crosswise, repeated)])
def test_heads_in_another_order_are_not_mistaken_for_groups(of_key: Function, of_value: Function) -> None:
    graph = traced(Form(repeated_key=of_key, repeated_value=of_value), heads=GROUPS)
    after = fused(graph)
    (attention,) = (node for node in after.operators if node.op.name == "PromptFlashAttention")
    assert attention.attrs.int("num_key_value_heads") == HEADS
    same_numbers(graph, after)


def test_half_precision_with_a_softmax_in_float32() -> None:
    def softmax(x: Tensor) -> Tensor:
        return ops.cast(ops.softmax(ops.cast(x, "float32")), "float16")

    for mask in ("added", "none"):
        graph = traced(Form(softmax=softmax, mask=MASKS[mask]), "float16")
        after = fused(graph)
        assert launched(after) == ["PromptFlashAttention"]
        same_numbers(graph, after)


def test_scores_that_are_masked_in_a_wider_type() -> None:
    def masked(s: Tensor, m: Tensor) -> Tensor:
        return ops.cast(s, "float32") + ops.cast(m, "float32")

    graph = traced(Form(mask=masked, behind=lambda w: ops.cast(w, "float16")), "float16")
    after = fused(graph)
    assert set(launched(after)) == {"Cast", "PromptFlashAttention"}
    same_numbers(graph, after)


VECTOR = np.linspace(0.5, 1.5, SIZE, dtype=np.float32)
NEAR_MISSES: Mapping[str, Form] = {
    "NaN becomes one": Form(behind=lambda w: ops.select(ops.is_nan(w), 1.0, w)),
    "what is NaN is kept": Form(behind=lambda w: ops.select(ops.is_nan(w), w, 0.0)),
    "scaled behind the mask": Form(mask=lambda s, m: (s + m) * 2.0),
    "scores times the mask": Form(mask=lambda s, m: s * m),
    "minus the mask": Form(mask=lambda s, m: s - m),
    "over other axes": Form(softmax=lambda s: ops.softmax(s, axis=2)),
    "weights scaled": Form(behind=lambda w: w * 2.0),
    "one over the scores": Form(scale=(lambda q: q, lambda k: k, lambda s: 2.0 / s)),
    "a power in between": Form(scale=(lambda q: q, lambda k: k, ops.exp)),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_what_is_no_attention(name: str) -> None:
    graph = traced(NEAR_MISSES[name])
    assert "PromptFlashAttention" not in launched(fused(graph))


def test_a_factor_for_each_column_stays_in_front() -> None:
    graph = traced(Form(scale=(lambda q: q * VECTOR, lambda k: k, lambda s: s)))
    after = fused(graph)
    assert launched(after) == ["Mul", "PromptFlashAttention"]
    same_numbers(graph, after)


def test_a_key_that_is_not_transposed_is_none() -> None:
    form = replace(Form(), transposed=lambda k: k)
    shapes = ((1, 1, 4, 4),) * 3 + ((1, 1, 4, 4),)
    graph = trace(form, *(spec(shape) for shape in shapes))
    assert fused(graph) is graph


@pytest.mark.parametrize(
    ("attrs", "masks", "message"),
    [
        ({"optional": ("pse_shift",)}, 0, "optional says"),
        ({"optional": ("pse_shift", "pse_shift")}, 2, "optional says"),
        ({"optional": ("else",)}, 1, "optional says"),
        ({"num_key_value_heads": 3}, 0, "operands have not the"),
    ],
)
def test_what_the_operator_refuses(attrs: Mapping[str, Any], masks: int, message: str) -> None:
    given = {"num_heads": 4, "num_key_value_heads": 4, "scale_value": 1.0, **attrs}
    shapes = [(1, 4, 2, 8)] * 3 + [(1, 1, 2, 2)] * masks
    with pytest.raises(Exception, match=message):
        trace(lambda *x: ops.apply(OPS["PromptFlashAttention"], *x, **given), *map(spec, shapes))


def test_heads_that_divide_no_group_are_refused() -> None:
    given = {"num_heads": 4, "num_key_value_heads": 3, "scale_value": 1.0}
    shapes = [(1, 4, 2, 8), (1, 3, 2, 8), (1, 3, 2, 8)]
    with pytest.raises(Exception, match="no multiple"):
        trace(lambda *x: ops.apply(OPS["PromptFlashAttention"], *x, **given), *map(spec, shapes))
