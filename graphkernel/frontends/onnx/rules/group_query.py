"""GroupQueryAttention of ``com.microsoft``, with which decoders are exported for onnxruntime, as the operators it stands for.

Each text of a batch has a length of its own: what is kept of it lies in front, this call's keys behind, wherever that is.

    before = lengths + 1 - rows                     present[t] = t < before ? past[t] : new[t - before]
    scores[i, t] = q[i] * present[t], t <= before + i           cosines[before + i] turn query and new keys

So whatever is kept is copied once, and which keys a query sees is said by numbers that attention compares in its rows.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from graphkernel import ops
from graphkernel.frontends.onnx.rules.attention import (
    HEADS_FIRST,
    LOWEST,
    apart,
    for_each_query,
    known_extent,
    turned_pairs,
)
from graphkernel.frontends.onnx.rules.base import Declined, OnnxCall, Operand, Results, onnx_op, shape_of
from graphkernel.frontends.onnx.rules.positions import positions
from kernelgen.tensor.types import Dim, dtype

LENGTHS, TOTAL, COSINES, SINES, PLACES, ADDED, SINK = range(5, 12)
INDEX = "int64"


@onnx_op("com.microsoft::GroupQueryAttention")
def group_query_attention(call: OnnxCall) -> Results:
    """Queries, keys and values apart or in one operand, each with heads side by side; what is kept has heads before rows."""
    total = call.dims(TOTAL)
    more = [call.attribute(name, 0) for name in ("smooth_softmax", "qk_output", "sliding_window_cache")]
    kinds = [call.attribute(name, "NONE") for name in ("k_quant_type", "v_quant_type")]
    has_more = any(map(call.has, range(SINK, len(call.operands))))  # a sink, scales, norms of heads, lengths of queries
    if total is None or any(more) or has_more or call.results > 3 or kinds != ["NONE"] * 2:
        return Declined("an unknown length of what is kept, a window of it, a sink, norms, quantized keys, or weights")
    if not call.attribute("causal", 1):
        return Declined("a query that sees keys behind it")
    query, key, value = _parts(call)
    batch, _, rows, _ = shape_of(query)
    lengths = ops.cast(ops.reshape(call.tensor(LENGTHS), (batch, 1)), dtype(INDEX))
    before = ops.maximum(ops.sub(lengths, ops.sub(call.extent(rows), np.asarray(1, np.int64))), np.asarray(0, np.int64))
    places = ops.add(before, positions(call, rows))
    if call.attribute("do_rotary", 0):
        query, key = (_turned(call, each, places) for each in (query, key))
    length = _length(call.operand(3), total[0])
    kept = [_kept(call, past, new, before, length) for past, new in ((call.operand(3), key), (call.operand(4), value))]
    result = _attended(call, query, kept, places)
    return [result, *kept][: call.results]


def _parts(call: OnnxCall) -> tuple[Any, Any, Any]:
    """Queries, keys and values with heads before rows."""
    heads, shared = call.attribute("num_heads"), call.attribute("kv_num_heads")
    query, key, value = (call.operand(place) for place in range(3))
    if key is None:
        size = known_extent(shape_of(query)[2]) // (heads + 2 * shared)
        query, key, value = ops.split(query, (heads * size, shared * size, shared * size), axis=2)
    return apart(query, heads), apart(key, shared), apart(value, shared)


def _length(past: Operand, total: Dim) -> Dim:
    """How many rows are kept behind this call: as many as there is room for where that is known."""
    room = 0 if past is None else shape_of(past)[2]
    return max(room, total) if isinstance(room, int) and isinstance(total, int) else total


def _kept(call: OnnxCall, past: Operand, new: Any, before: Any, length: Dim) -> Any:  # a Tensor
    """The rows ``new`` behind those of ``past``, of which ``before`` [batch, 1] count; ``length`` of each head, 0 behind."""
    batch, _, rows, _ = shape_of(new)
    if (past is None or shape_of(past)[2] == 0) and rows == length:
        return new
    all_rows = ops.expand_dims(positions(call, length), 0)
    places = ops.sub(all_rows, before)
    is_fresh = ops.reshape(ops.less(places, call.extent(rows)), (batch, 1, length, 1))
    fresh = ops.select(is_fresh, _rows(call, new, _within(call, places, rows)), np.asarray(0, np.float32))
    if past is None or shape_of(past)[2] == 0:
        return fresh
    old = _rows(call, past, _within(call, all_rows, shape_of(past)[2]))
    is_old = ops.reshape(ops.less(places, np.asarray(0, np.int64)), (batch, 1, length, 1))
    return ops.select(is_old, old, fresh)


def _within(call: OnnxCall, places: Any, extent: Dim) -> Any:  # a Tensor
    last = ops.sub(call.extent(extent), np.asarray(1, np.int64))
    return ops.maximum(ops.minimum(places, last), np.asarray(0, np.int64))


def _rows(call: OnnxCall, x: Any, places: Any) -> Any:  # a Tensor
    """The rows of ``x`` [batch, heads, rows, size] at ``places`` [batch or 1, count], of each head."""
    batch, heads, rows, size = shape_of(x)
    first = ops.mul(ops.reshape(positions(call, batch * heads), (batch, heads, 1)), call.extent(rows))
    return ops.gather(ops.reshape(x, (batch * heads * rows, size)), ops.add(first, ops.expand_dims(places, 1)), axis=0)


def _turned(call: OnnxCall, x: Any, places: Any) -> Any:  # a Tensor
    """``x`` [batch, heads, rows, size] by the angles of its ``places`` [batch, rows]."""
    told = call.operand(PLACES)
    tables = (call.operand(place) for place in (COSINES, SINES))
    angles = [ops.expand_dims(ops.gather(each, places if told is None else told, axis=0), 1) for each in tables]
    turned = known_extent(shape_of(call.operand(COSINES))[-1])
    return turned_pairs(x, *angles, turned=turned, interleaved=bool(call.attribute("rotary_interleaved", 0)))


def _attended(call: OnnxCall, query: Any, kept: list[Any], places: Any) -> Any:  # a Tensor
    """The softmax of scaled scores of the keys that a query sees times their values, heads side by side."""
    batch, heads, rows, size = shape_of(query)
    key, value = (for_each_query(each, query) for each in kept)
    scale = call.attribute("scale", 0.0) or 1 / sqrt(known_extent(size))
    scores = ops.mul(ops.matmul(query, key, transpose_b=True), scale)
    if (cap := call.attribute("softcap", 0.0)) > 0:
        scores = ops.mul(ops.tanh(ops.div(scores, cap)), cap)
    if call.has(ADDED):
        scores = ops.add(scores, call.operand(ADDED))
    own = ops.reshape(places, (batch, 1, rows, 1))
    keys = positions(call, shape_of(key)[2])
    is_seen = ops.less_equal(keys, own)
    if (window := call.attribute("local_window_size", -1)) >= 0:
        is_seen = ops.logical_and(is_seen, ops.greater(keys, ops.sub(own, np.asarray(window, np.int64))))
    scores = ops.select(is_seen, scores, np.asarray(LOWEST, np.float32))
    found = ops.transpose(ops.matmul(ops.softmax(scores, axis=-1), value), HEADS_FIRST)
    return ops.reshape(found, (batch, rows, heads * known_extent(size)))
