"""Products of the places of tiles, row by row: a row of tiles and of their products is held, no image of them."""

from __future__ import annotations

import numpy as np
import pytest

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.vocabulary import WORDS
from kernelgen.nest.nodes import Alloc, Space
from kernelgen.nest.walk import statements
from kernelgen.tensor.text import parse

ROWS, COLUMNS, CHANNELS, RESULTS = 12, 8, 4, 5

IMAGE, PRODUCTS = f"{ROWS}, {COLUMNS}, {CHANNELS}", f"{ROWS}, {COLUMNS}, {RESULTS}"

TILES = f"""graph tiles(x: f32[{ROWS + 1}, {COLUMNS}, {CHANNELS}], w: f32[2, {CHANNELS}, {RESULTS}]) {{
  a: f32[{IMAGE}] = StridedSlice(x, begin=(0, 0, 0), end=({IMAGE}), strides=(1, 1, 1))
  b: f32[{IMAGE}] = StridedSlice(x, begin=(1, 0, 0), end=({ROWS + 1}, {COLUMNS}, {CHANNELS}), strides=(1, 1, 1))
  s: f32[{IMAGE}] = Add(a, b)
  d: f32[{IMAGE}] = Sub(a, b)
  s1: f32[1, {IMAGE}] = Reshape(s, shape=(1, {IMAGE}))
  d1: f32[1, {IMAGE}] = Reshape(d, shape=(1, {IMAGE}))
  v: f32[2, {IMAGE}] = Concat(s1, d1, axis=0)
  r: f32[2, {ROWS * COLUMNS}, {CHANNELS}] = Reshape(v, shape=(2, {ROWS * COLUMNS}, {CHANNELS}))
  m: f32[2, {ROWS * COLUMNS}, {RESULTS}] = BatchMatMul(r, w, transpose_a=False, transpose_b=False)
  q: f32[2, {PRODUCTS}] = Reshape(m, shape=(2, {PRODUCTS}))
  q0: f32[1, {PRODUCTS}] = StridedSlice(q, begin=(0, 0, 0, 0), end=(1, {PRODUCTS}), strides=(1, 1, 1, 1))
  q1: f32[1, {PRODUCTS}] = StridedSlice(q, begin=(1, 0, 0, 0), end=(2, {PRODUCTS}), strides=(1, 1, 1, 1))
  y: f32[1, {PRODUCTS}] = Mul(q0, q1)
  return y = y
}}
"""


def desc() -> KernelDesc:
    return KernelDesc(parse(TILES, {word.name: word for word in WORDS}))


@pytest.mark.parametrize(("constants", "is_by_rows"), [((1,), True), ((), False)], ids=["constant", "computed"])
def test_rows_of_tiles_are_held_where_weights_are_constant(constants: tuple[int, ...], is_by_rows: bool) -> None:
    kernel = kernelgen.compile(desc(), "cpu", constants=constants)
    nest = kernel.lowered.nest
    images = [buffer for buffer in nest.buffers if buffer.space is Space.WORKSPACE]
    held = {part.buffer.shape for part in statements(nest.body) if isinstance(part, Alloc)}
    assert (not images) is is_by_rows
    assert {(2, COLUMNS, CHANNELS), (2, COLUMNS, RESULTS)} <= held or not is_by_rows


def test_the_numbers_are_those_of_all_rows_at_once() -> None:
    draw = np.random.default_rng(0).standard_normal
    x, w = (draw(shape).astype(np.float32) for shape in ((ROWS + 1, COLUMNS, CHANNELS), (2, CHANNELS, RESULTS)))
    kernel = kernelgen.compile(desc(), "cpu", constants=(1,))
    (found,) = kernel(x, *kernel.prepare(w))
    sums, differences = x[:-1] + x[1:], x[:-1] - x[1:]
    np.testing.assert_allclose(found[0], (sums @ w[0]) * (differences @ w[1]), rtol=1e-4, atol=1e-5)
