"""Axes that fill no vector leave it to another one along which memory lies, if nothing has to be gathered then."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_examples import Writer, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.nest.nodes import For, LoopKind, Num
from kernelgen.nest.walk import statements
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.tensor.dims import Dim, sym

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


def is_along_pixels(desc: KernelDesc) -> bool:
    """Whether vectors run along what is not written as it lies."""
    (reason,) = {band.why for band in lower(desc, Plan()).plan.bands or ()}
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
