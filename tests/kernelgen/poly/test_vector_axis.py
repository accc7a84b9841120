"""Axes that fill no vector leave it to another one along which memory lies, if nothing has to be gathered then."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.vocabulary import WORDS
from kernelgen.nest.marks import VECTOR
from kernelgen.nest.nodes import For, LoopKind, Num
from kernelgen.nest.walk import statements
from kernelgen.plan import BandPlan, Plan
from kernelgen.stages import lower
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.text import parse

PIXELS = 200


def channels_last(channels: Dim, pixels: Dim = PIXELS) -> KernelDesc:
    """``-x`` with its channels behind the pixels."""
    writer, x = Writer(), tensor("x", channels, pixels)
    turned = writer.op("Transpose", x, shape=(pixels, channels), perm=(1, 0))
    return writer.desc("turned", (x,), writer.op("Neg", turned, shape=(pixels, channels)))


def scaled(channels: int) -> KernelDesc:
    """Channels of each pixel times a number of its own."""
    writer, x, scale = Writer(), tensor("x", PIXELS, channels), tensor("scale", PIXELS, 1)
    return writer.desc("scaled", (x, scale), writer.op("Mul", x, scale, shape=(PIXELS, channels)))


def bands_of(desc: KernelDesc) -> tuple[BandPlan, ...]:
    bands = lower(desc, Plan()).plan.bands
    assert bands is not None, "they are chosen"
    return bands


def is_along_pixels(desc: KernelDesc) -> bool:
    """Whether vectors run along what is not written as it lies."""
    (reason,) = {band.why for band in bands_of(desc)}
    return "fills no vector" in reason


@pytest.mark.parametrize("channels", [3, 5, 6, 12])
def test_channels_that_fill_no_vector_leave_it_to_pixels(channels: int) -> None:
    assert is_along_pixels(channels_last(channels))


@pytest.mark.parametrize("desc", [channels_last(n) for n in (2, 4, 8, 16, 17, sym("c"))])
def test_parts_of_vectors_and_long_axes_keep_it(desc: KernelDesc) -> None:
    assert not is_along_pixels(desc)


@pytest.mark.parametrize(("channels", "found"), [(3, True), (6, False)])
def test_pixels_too_far_apart_are_not_gathered(channels: int, found: bool) -> None:
    assert is_along_pixels(scaled(channels)) is found


def test_pixels_that_fill_no_vector_do_not_take_it() -> None:
    assert not is_along_pixels(channels_last(3, pixels=9))


def described(text: str) -> KernelDesc:
    return KernelDesc(parse(f"graph given{text}", {word.name: word for word in WORDS}))


def vector_of(desc: KernelDesc) -> str:
    """The member of the only band that is the vector."""
    (band,) = bands_of(desc)
    (vector,) = {band.members[loop.member] for loop in band.pieces[0].loops if loop.mark == VECTOR}
    return vector


OF_FOUR = """(x: f32[200, 4], scale: f32[200, 1]) {
  first: f32[200, 3] = StridedSlice(x, begin=(0, 0), end=(200, 3), strides=(1, 1))
  y: f32[200, 3] = Mul(first, scale)
  return y = y
}"""
SCALED_CHANNELS = """(x: f32[200, 3], scale: f32[1, 3]) {
  y: f32[200, 3] = Mul(x, scale)
  return y = y
}"""
SUMMED = """(x: f32[200, 3], least: f32[200, 1]) {
  some: f32[200, 3] = Maximum(x, least)
  y: f32[3] = ReduceSum(some, axis=(0,), keep_dims=False)
  return y = y
}"""
GATHERED = """(x: f32[3, 200], table: f32[50, 3], rows: i32[200]) {
  turned: f32[200, 3] = Transpose(x, perm=(1, 0))
  found: f32[200, 3] = Gather(table, rows, axis=0)
  y: f32[200, 3] = Add(turned, found)
  return y = y
}"""
BACKWARDS = """(x: f32[3, 200], z: f32[3, 200]) {
  forward: f32[3, 199] = StridedSlice(x, begin=(0, 1), end=(3, 200), strides=(1, 1))
  backward: f32[3, 199] = StridedSlice(z, begin=(0, 199), end=(3, 0), strides=(1, -1))
  both: f32[3, 199] = Add(forward, backward)
  y: f32[199, 3] = Transpose(both, perm=(1, 0))
  return y = y
}"""


@pytest.mark.parametrize(
    ("desc", "found"),
    [
        (described(OF_FOUR), True), (scaled(5), False), (described(SCALED_CHANNELS), False), (described(SUMMED), False),
        (described(GATHERED), False), (described(BACKWARDS), False), (channels_last(3, pixels=16), True),
    ],
    ids=["three of four", "five apart", "none contiguous", "a sum crosses", "data says where", "backwards", "one vector"],
)  # fmt: skip
def test_pixels_take_it_only_where_whole_vectors_are_loaded(desc: KernelDesc, found: bool) -> None:
    assert is_along_pixels(desc) is found


def test_of_pixels_along_two_dims_those_are_taken_along_which_more_lies() -> None:
    desc = described("""(x: f32[3, 40, 1], z: f32[3, 1, 50], u: f32[40, 1, 1]) {
      both: f32[3, 40, 50] = Add(x, z)
      turned: f32[40, 50, 3] = Transpose(both, perm=(1, 2, 0))
      y: f32[40, 50, 3] = Add(turned, u)
      return y = y
    }""")
    assert vector_of(desc) == "i0"


def test_of_equal_members_the_last_one_is_the_vector() -> None:
    desc = described("""(x: f32[64, 64]) {
      turned: f32[64, 64] = Transpose(x, perm=(1, 0))
      product: f32[64, 64] = Mul(turned, x)
      greatest: f32[64, 64] = Maximum(product, x)
      y: f32[] = ReduceMax(greatest, axis=(0, 1), keep_dims=False)
      return y = y
    }""")
    assert vector_of(desc) == "i1"


def test_the_others_stay_in_order() -> None:
    desc = described("""(x: f32[40, 30, 50], rows: f32[40, 1, 50], columns: f32[1, 30, 50]) {
      some: f32[40, 30, 50] = Add(x, rows)
      y: f32[40, 30, 50] = Add(some, columns)
      return y = y
    }""")
    (band,) = bands_of(desc)
    assert [band.members[loop.member] for loop in band.pieces[0].loops] == ["i0", "i1", "i2"]


@pytest.mark.parametrize("channels", [3, 6])
@pytest.mark.parametrize("pixels", [16, 200, 1001])
def test_numbers_are_numpys(channels: int, pixels: int) -> None:
    x = np.random.default_rng(0).standard_normal((channels, pixels)).astype(np.float32)
    (found,) = kernelgen.compile(channels_last(channels, pixels))(x)
    assert np.array_equal(found, -x.T)


def test_the_loop_over_pixels_is_the_vector() -> None:
    *_, around, last = [part for part in statements(lower(channels_last(3), Plan()).nest.body) if isinstance(part, For)]
    assert (last.kind, around.kind) == (LoopKind.VECTOR, LoopKind.INTERLEAVE)
    assert str(around.upper) == str(Num(3))
