"""Attention of ONNX, and of onnxruntime's optimizer of transformers (``com.microsoft``), as the operators it stands for.

Heads go apart by views, a mask of any form is added to the scores, and what stands before the keys of this call is joined to
them. Which of it shares a kernel is decided later, as for models that write all of it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.errors import TypeRuleError
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, Operand, Results, onnx_op, shape_of
from graphkernel.frontends.onnx.rules.positions import positions
from kernelgen.tensor.types import Dim, Shape, dtype

LOWEST = float(np.finfo(np.float32).min)
HEADS_FIRST = (0, 2, 1, 3)


@dataclass(frozen=True)
class _Heads:
    """Operands with heads before rows: [batch, heads, rows, size]; ``before`` are the keys that stand before this call's."""

    query: Any
    key: Any
    value: Any
    before: Dim = 0

    @property
    def shape(self) -> tuple[Dim, Dim, Dim]:
        """How many batches, rows of queries and keys."""
        return shape_of(self.query)[0], shape_of(self.query)[2], shape_of(self.key)[2]


@dataclass(frozen=True)
class _Seen:
    """Which keys a query sees: those ``allowed`` (None: all), and so many before and behind its own place (-1: all)."""

    allowed: Operand = None
    left: int = -1
    right: int = -1


@onnx_op("Attention")
def attention(call: OnnxCall) -> Results:
    """Heads apart, or side by side; several heads of queries may share one of keys and values."""
    query, key, value, mask, past_key, past_value, *more = (call.operand(k) for k in range(8))
    if any(each is not None for each in more) or call.results > 3 or call.attribute("softcap", 0.0):
        return Declined("rows of different lengths, scores as a result, or a bound on them")
    if past_key is not None and call.attribute("is_causal", 0):
        return Declined("whether a query sees what was kept is said differently by different versions")
    own = call.attribute("q_num_heads", 0), call.attribute("kv_num_heads", 0), call.attribute("kv_num_heads", 0)
    given = zip((query, key, value), own, strict=True)
    parts = [each if len(shape_of(each)) == 4 else apart(each, count) for each, count in given]
    heads = _with_kept(parts, past_key, past_value)
    shared = _Heads(heads.query, *(for_each_query(each, heads.query) for each in (heads.key, heads.value)))
    is_choice = mask is not None and dtype(mask.dtype).name == "bool"
    seen = _Seen(
        allowed=mask if is_choice else None,
        left=call.attribute("left_window_size", -1),
        right=0 if call.attribute("is_causal", 0) else call.attribute("right_window_size", -1),
    )
    found = _attended(call, shared, None, None if is_choice else mask, seen)
    result = apart(found, known_extent(shape_of(heads.query)[1])) if len(shape_of(query)) == 4 else found
    return [result, heads.key, heads.value][: call.results]


def for_each_query(x: Operand, query: Operand) -> Any:  # a Tensor
    """Keys or values as often as heads of queries share them."""
    batch, own, rows, size = shape_of(x)
    times = known_extent(shape_of(query)[1]) // known_extent(own)
    if times == 1:
        return x
    spread = ops.broadcast_to(ops.expand_dims(x, 2), (batch, own, times, rows, size))
    return ops.reshape(spread, (batch, own * times, rows, size))


@onnx_op("com.microsoft::Attention")
def joined_attention(call: OnnxCall) -> Results:
    """Queries, keys and values are one product of the operand with weights."""
    x, weights, bias, mask, past, added, told = (call.operand(k) for k in range(7))
    if told is not None or call.attribute("do_rotary", 0) or call.attribute("past_present_share_buffer", 0):
        return Declined("a cache that is written in place, or rotary embeddings")
    width = known_extent(shape_of(weights)[1])
    product = ops.matmul(x, weights)
    product = product if bias is None else ops.add(product, bias)
    sizes = tuple(call.attribute("qkv_hidden_sizes") or [width // 3] * 3)
    parts = [apart(part, call.attribute("num_heads")) for part in ops.split(product, sizes, axis=2)]
    kept = (None, None) if past is None else (ops.gather(past, np.asarray(k), axis=0) for k in range(2))
    heads = _with_kept(parts, *kept)
    result = _attended(call, heads, mask, added, _unidirectional(call))
    if isinstance(result, Declined) or call.results < 2:
        return result
    return [result, ops.concat([ops.expand_dims(each, 0) for each in (heads.key, heads.value)], axis=0)]


@onnx_op("com.microsoft::MultiHeadAttention")
def multi_head_attention(call: OnnxCall) -> Results:
    """Queries, keys and values apart, each with heads side by side; keys and values also with heads before rows."""
    query, key, value, bias, mask, added, past_key, past_value, *more = (call.operand(k) for k in range(10))
    if key is None or value is None or len(shape_of(query)) != 3 or len(shape_of(key)) == 5 or call.results > 3:
        return Declined("queries, keys and values in one operand, or weights as a result")
    if any(each is not None for each in more):
        return Declined("a cache that is written in place")
    heads, given = call.attribute("num_heads"), [query, key, value]
    if bias is not None:
        if len(shape_of(key)) != 3:
            return Declined("a bias of keys with heads before rows")
        sizes = [known_extent(shape_of(each)[-1]) for each in given]
        given = [ops.add(each, part) for each, part in zip(given, ops.split(bias, sizes, axis=0), strict=True)]
    parts = [each if len(shape_of(each)) == 4 else apart(each, heads) for each in given]
    found = _with_kept(parts, past_key, past_value)
    result = _attended(call, found, mask, added, _unidirectional(call))
    return result if isinstance(result, Declined) else [result, found.key, found.value][: call.results]


def apart(x: Operand, heads: int) -> Any:  # a Tensor
    """[batch, rows, heads x size] with heads before rows."""
    batch, rows, width = shape_of(x)
    return ops.transpose(ops.reshape(x, (batch, rows, heads, known_extent(width) // heads)), HEADS_FIRST)


def known_extent(width: Dim) -> int:
    """An extent that must be a number. Raises TypeRuleError."""
    if not isinstance(width, int):
        raise TypeRuleError(f"heads of {width} elements")
    return width


def _with_kept(parts: list[Any], keys: Operand, values: Operand) -> _Heads:
    """Keys and values behind those that earlier calls kept."""
    query, key, value = parts
    if keys is None:
        return _Heads(query, key, value)
    key, value = (ops.concat(pair, axis=2) for pair in ((keys, key), (values, value)))
    return _Heads(query, key, value, shape_of(keys)[2])


def _attended(call: OnnxCall, heads: _Heads, mask: Operand, added: Operand, seen: _Seen) -> Any:  # or Declined
    """The softmax of scaled and masked scores times values, heads side by side; 0 for a query that sees no allowed key."""
    batch, rows, _ = heads.shape
    scale = call.attribute("scale", 0.0) or 1 / sqrt(known_extent(shape_of(heads.query)[3]))
    scores = ops.mul(ops.matmul(heads.query, heads.key, transpose_b=True), scale)
    if mask is not None:
        is_there = _is_there(call, heads, mask)
        if is_there is None:
            return Declined("a mask of another form")
        filler = float(call.attribute("mask_filter_value", -10000.0))
        scores = ops.add(scores, ops.select(is_there, np.asarray(0, np.float32), np.asarray(filler, np.float32)))
    if seen.allowed is not None:
        added = ops.select(seen.allowed, np.asarray(0, np.float32), np.asarray(-np.inf, np.float32))
    scores = scores if added is None else ops.add(scores, added)
    near = _near(call, heads, seen)
    if near is not None:
        scores = ops.select(near, scores, np.asarray(LOWEST, np.float32))
    found = ops.matmul(ops.softmax(scores, axis=-1), heads.value)
    if seen.allowed is not None:
        keys = seen.allowed if near is None else ops.logical_and(seen.allowed, near)
        found = ops.select(ops.reduce_any(keys, axis=-1, keep_dims=True), found, np.asarray(0, np.float32))
    _, count, _, size = shape_of(heads.value)
    return ops.reshape(ops.transpose(found, HEADS_FIRST), (batch, rows, count * size))


def _is_there(call: OnnxCall, heads: _Heads, mask: Operand) -> Any:  # a Tensor or array; None for other forms
    """Where a key is none of what is masked: numbers above 0, or how many keys there are at the left."""
    batch, _, keys = heads.shape
    shape = shape_of(mask)
    if shape == (batch,) or (shape == (1,) and batch == 1):
        return ops.less(positions(call, keys), ops.reshape(ops.cast(mask, dtype("int64")), (batch, 1, 1, 1)))
    wanted: dict[int, Shape] = {2: (batch, 1, 1, keys), 3: (*shape[:1], 1, *shape[1:])}
    if len(shape) not in wanted or shape[-1] != keys:
        return None
    return ops.greater(ops.reshape(mask, wanted[len(shape)]), 0)


def _unidirectional(call: OnnxCall) -> _Seen:
    return _Seen(right=0 if call.attribute("unidirectional", 0) else -1)


def _near(call: OnnxCall, heads: _Heads, seen: _Seen) -> Any:  # a Tensor or array; None where all keys are
    """Where a key is neither too far before its query nor too far behind it."""
    _, rows, keys = heads.shape
    places = positions(call, keys)

    def moved(by: int) -> Any:
        return ops.expand_dims(ops.add(positions(call, rows), call.extent(heads.before + by)), 1)

    first = ops.greater_equal(places, moved(-seen.left)) if seen.left >= 0 else None
    last = ops.less_equal(places, moved(seen.right)) if seen.right >= 0 else None
    if first is None or last is None:
        return last if first is None else first
    return ops.logical_and(first, last)


@onnx_op("RotaryEmbedding")
def rotary_embedding(call: OnnxCall) -> Results:
    """Pairs of elements of each head turned by an angle, from tables of cosines and sines of places, or of rows."""
    x, cosines, sines = call.operands[:3]
    return _rotated(call, x, call.operand(3), cosines, sines)


@onnx_op("com.microsoft::RotaryEmbedding")
def joined_rotary_embedding(call: OnnxCall) -> Results:
    """The same with operands in another order; one place is that of the first row."""
    x, places, cosines, sines = call.operands[:4]
    if call.attribute("is_packed_batching", 0) or call.attribute("scale", 1.0) != 1.0:
        return Declined("packed rows, or a scale")
    if shape_of(places) == (1,):
        rows = shape_of(x)[2 if len(shape_of(x)) == 4 else 1]
        places = ops.expand_dims(ops.add(positions(call, rows), places), 0)
    return _rotated(call, x, places, cosines, sines)


def _rotated(call: OnnxCall, x: Operand, places: Operand, cosines: Operand, sines: Operand) -> Any:  # a Tensor
    shape, turned = shape_of(x), known_extent(shape_of(cosines)[-1])
    heads, width = call.attribute("num_heads", 0), known_extent(shape[-1])
    size = width if len(shape) == 4 else width // heads if heads else 2 * turned
    apart = x if len(shape) == 4 else ops.reshape(x, (*shape[:2], width // size, size))
    angles = [table if places is None else ops.gather(table, places, axis=0) for table in (cosines, sines)]
    angles = [ops.expand_dims(each, 1 if len(shape) == 4 else 2) for each in angles]
    found = turned_pairs(apart, *angles, turned=turned, interleaved=bool(call.attribute("interleaved", 0)))
    return found if len(shape) == 4 else ops.reshape(found, shape)


def turned_pairs(x: Operand, cosine: Operand, sine: Operand, *, turned: int, interleaved: bool) -> Any:  # a Tensor
    """Pairs of ``x`` by angles of this ``cosine`` and ``sine``: ``interleaved`` ones lie side by side, others a half apart;
    what lies behind the ``turned`` pairs stays.
    """
    *around, width = shape_of(x)
    size = known_extent(width)
    head, *rest = ops.split(x, (2 * turned, size - 2 * turned), axis=-1) if size > 2 * turned else (x,)
    if interleaved:
        pairs = ops.reshape(head, (*around, turned, 2))
        parts = [ops.reshape(part, (*around, turned)) for part in ops.split(pairs, (1, 1), axis=-1)]
    else:
        parts = ops.split(head, (turned, turned), axis=-1)
    one, other = parts
    found = [ops.sub(ops.mul(one, cosine), ops.mul(other, sine)), ops.add(ops.mul(one, sine), ops.mul(other, cosine))]
    if interleaved:
        joined = ops.concat([ops.expand_dims(each, -1) for each in found], axis=-1)
        found = [ops.reshape(joined, (*around, 2 * turned))]
    return ops.concat([*found, *rest], axis=-1)
