"""Attention over cached keys and values, which lie in blocks ("pages") that a table assigns to sequences.

A cache is ``[blocks, block size, key-value heads, head size]``. Slot s of a cache is place ``s % block size`` of block
``s // block size``. Source of the layout: W. Kwon et al., "Efficient memory management for large language model serving
with PagedAttention", 2023.
"""

from __future__ import annotations

import numpy as np

from graphkernel.errors import TypeRuleError
from kernelgen.tensor.operator import Kind, Traits
from kernelgen.tensor.operators.attributes import real_number, whole
from kernelgen.tensor.operators.families import Array, declare
from kernelgen.tensor.operators.type_rules import any_dtype, expect_dtype, floating, integer
from kernelgen.tensor.types import Attrs, Dim, TensorType, product

Types = tuple[TensorType, ...]


def _checked_cache(*caches: TensorType) -> tuple[Dim, Dim]:
    """The key-value heads and the head size."""
    first = caches[0]
    if first.rank != 4 or any(cache.shape != first.shape for cache in caches):
        raise TypeRuleError("the caches must have one shape [blocks, block size, heads, head size]")
    return first.shape[2], first.shape[3]


def _store_type(types: Types, attrs: Attrs) -> Types:
    key, value, key_cache, value_cache, slots = types
    expect_dtype(any_dtype, *types[:4])
    expect_dtype(integer, slots)
    heads, size = _checked_cache(key_cache, value_cache)
    tokens = slots.shape[0] if slots.rank == 1 else None
    for given in (key, value):
        if tokens is None or given.rank < 2 or given.size != product((tokens, heads, size)):
            raise TypeRuleError(f"needs {heads} heads of {size} for each slot, got {given} and the slots {slots}")
    return (key_cache, value_cache)


def _store(
    key: Array, value: Array, key_cache: Array, value_cache: Array, slot_mapping: Array, *, attrs: Attrs
) -> tuple[Array, Array]:
    """(key, value, key_cache, value_cache, slot_mapping) -> both caches, with the key and value of each token in its
    slot; slots out of range are skipped. Traced, the caches are inputs of the graph and written in place: use the
    results where the new content is meant."""
    return _stored(key, key_cache, slot_mapping), _stored(value, value_cache, slot_mapping)


def _stored(given: Array, cache: Array, slots: Array) -> Array:
    flat = cache.reshape(-1, *cache.shape[2:]).copy()
    inside = (slots >= 0) & (slots < len(flat))
    flat[slots[inside]] = given.reshape(-1, *cache.shape[2:])[inside]
    return flat.reshape(cache.shape)


RESHAPE_AND_CACHE = declare(
    "ReshapeAndCache", Kind.OPAQUE, 5, _store_type, _store, indices=(4,), traits=Traits(writes=((0, 2), (1, 3)))
)


def _attention_type(types: Types, attrs: Attrs) -> Types:
    query, key_cache, value_cache, tables, lengths = types
    expect_dtype(floating, query, key_cache, value_cache)
    expect_dtype(integer, tables, lengths)
    heads, size = _checked_cache(key_cache, value_cache)
    if query.rank not in (2, 3) or (query.rank == 3 and query.shape[1] != 1):
        raise TypeRuleError(f"the query must be [batch, heads * size] or [batch, 1, heads * size], got {query}")
    if tables.rank != 2 or tables.shape[0] != query.shape[0] or lengths.shape != query.shape[:1]:
        raise TypeRuleError("needs a row of block numbers and a length for each sequence of the batch")
    if query.shape[-1] != size * attrs.int("head_num"):
        raise TypeRuleError(f"{attrs.int('head_num')} heads of {size} do not make {query.shape[-1]}")
    if isinstance(heads, int) and attrs.int("head_num") % heads:
        raise TypeRuleError(f"{attrs.int('head_num')} heads do not share {heads} key-value heads evenly")
    if attrs.int("kv_head_num", attrs.int("head_num")) != heads and "kv_head_num" in attrs:
        raise TypeRuleError(f"the caches hold {heads} heads, kv_head_num is {attrs.int('kv_head_num')}")
    return (query,)


def _attention(
    query: Array, key_cache: Array, value_cache: Array, block_tables: Array, context_lens: Array, *, attrs: Attrs
) -> Array:
    """(query, key_cache, value_cache, block_tables, context_lens): attention of one new token of each sequence over
    the context_lens tokens in its blocks. Fewer key-value heads than heads are shared in groups; scale_value defaults
    to 1 / sqrt(head size); no tokens give 0."""
    _, block, kv_heads, size = key_cache.shape
    heads = attrs.int("head_num")
    scale = attrs.float("scale_value", size**-0.5)
    result = np.zeros((len(block_tables), heads, size))
    for row, (table, length) in enumerate(zip(block_tables, context_lens, strict=True)):
        slots = np.arange(length)
        keys, values = (cache[table[slots // block], slots % block] for cache in (key_cache, value_cache))
        result[row] = _attended(query[row].reshape(heads, size), keys, values, heads // kv_heads, scale)
    return result.reshape(query.shape).astype(query.dtype)


def _attended(query: Array, keys: Array, values: Array, sharing: int, scale: float) -> Array:
    """softmax(query . keys * scale) . values for one token; keys and values are [length, key-value heads, size]."""
    keys, values = (np.repeat(x.astype(np.float64), sharing, axis=1) for x in (keys, values))
    scores = np.einsum("hd,lhd->hl", query.astype(np.float64), keys) * scale
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
    return np.einsum("hl,lhd->hd", weights / weights.sum(axis=-1, keepdims=True), values)


PAGED_ATTENTION = declare(
    "PagedAttention",
    Kind.OPAQUE,
    5,
    _attention_type,
    _attention,
    attributes=(whole("head_num"), real_number("scale_value", None), whole("kv_head_num", None)),
    indices=(3, 4),
)
