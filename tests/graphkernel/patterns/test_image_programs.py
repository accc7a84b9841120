"""What users write over pictures: programs with both meanings, for ours and for numpy, which are one kernel on every target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
import kernelgen
from graphkernel import ops
from graphkernel.handoff import to_desc

Picture = Any
Module = Any
Program = Callable[[Module, Picture], Any]
SMOOTH = (0.0625, 0.25, 0.375, 0.25, 0.0625)
SIZE = (61, 47)


def nine(x: Picture) -> list[Picture]:
    """A picture from each of the places of a window of 3 x 3."""
    rows, columns = x.shape[0] - 2, x.shape[1] - 2
    return [x[i : i + rows, j : j + columns] for i in range(3) for j in range(3)]


def select(m: Module, condition: Picture, x: Picture, y: Picture) -> Picture:
    return np.where(condition, x, y) if m is np else ops.select(condition, x, y)


def most(best: Callable[[Picture, Picture], Picture], parts: Sequence[Picture]) -> Picture:
    found = parts[0]
    for part in parts[1:]:
        found = best(found, part)
    return found


def along(x: Picture, axis: int, weights: Sequence[float]) -> Picture:
    """A filter along an axis."""
    length = x.shape[axis] - len(weights) + 1
    total: Picture = 0.0
    for place, weight in enumerate(weights):
        part = x[place : place + length] if axis == 0 else x[:, place : place + length]
        total = part * weight + total
    return total


def laplacian_pyramid(_: Module, x: Picture) -> tuple[Picture, ...]:
    levels: list[Picture] = []
    for _level in range(3):
        smooth = along(along(x, 1, SMOOTH), 0, SMOOTH)
        levels.append(x[2:-2, 2:-2] - smooth)
        x = smooth[::2, ::2]
    return (*levels, x)


def median_chain(m: Module, x: Picture) -> Picture:
    def middle(a: Picture, b: Picture, c: Picture) -> Picture:
        return m.maximum(m.minimum(a, b), m.minimum(m.maximum(a, b), c))

    for _ in range(2):
        rows = middle(x[:, :-2], x[:, 1:-1], x[:, 2:])
        x = middle(rows[:-2], rows[1:-1], rows[2:])
    return x


def unsharp_mask(m: Module, x: Picture) -> Picture:
    """Only where there is something to sharpen."""
    middle = x[2:-2, 2:-2]
    detail = middle - along(along(x, 1, SMOOTH), 0, SMOOTH)
    return middle + select(m, m.abs(detail) > 0.1, detail * 0.75, detail * 0.0)


def diffusion(m: Module, x: Picture) -> Picture:
    """Perona and Malik: less where there is an edge."""
    for _ in range(3):
        middle = x[1:-1, 1:-1]
        slopes = [each - middle for each in (x[:-2, 1:-1], x[2:, 1:-1], x[1:-1, :-2], x[1:-1, 2:])]
        x = middle + sum(m.exp(slope * slope * -4.0) * slope for slope in slopes) * 0.2
    return x


def filter_bank(_: Module, x: Picture) -> tuple[Picture, ...]:
    low, high = (0.25, 0.5, 0.25), (-0.5, 0.0, 0.5)
    return tuple(along(along(x, 1, a), 0, b) for a in (low, high) for b in (low, high))


def long_filters(_: Module, x: Picture) -> tuple[Picture, ...]:
    """Sixteen terms along rows that have not thrice as many."""
    return tuple(along(x, 1, [(k * (place + 3) % 7 - 3) / 8 for place in range(16)]) for k in (1, 2, 3, 4))


def open_and_close(m: Module, x: Picture) -> Picture:
    for best in (m.minimum, m.maximum, m.maximum, m.minimum):
        x = most(best, nine(x))
    return x


def bilateral(m: Module, x: Picture) -> Picture:
    parts, middle = nine(x), x[1:-1, 1:-1]
    weights = [m.exp((part - middle) * (part - middle) * -2.0) for part in parts]
    return sum(w * part for w, part in zip(weights, parts, strict=True)) / sum(weights)


def edges(m: Module, x: Picture) -> Picture:
    """The front half of Canny's detector: gradients, thinned along their direction."""
    a, b, c, d, _, f, g, h, i = nine(x)
    across, down = c + f * 2.0 + i - a - d * 2.0 - g, g + h * 2.0 + i - a - b * 2.0 - c
    size = m.sqrt(across * across + down * down)
    middle = size[1:-1, 1:-1]
    flat = middle >= m.maximum(size[1:-1, :-2], size[1:-1, 2:])
    steep = middle >= m.maximum(size[:-2, 1:-1], size[2:, 1:-1])
    is_across = m.abs(across)[1:-1, 1:-1] > m.abs(down)[1:-1, 1:-1]
    none = middle * 0.0
    return select(m, is_across, select(m, flat, middle, none), select(m, steep, middle, none))


def life(m: Module, x: Picture) -> Picture:
    x = select(m, x > 0.0, x * 0.0 + 1.0, x * 0.0)
    for _ in range(3):
        parts = nine(x)
        around, none = sum(parts[:4]) + sum(parts[5:]), parts[4] * 0.0
        stays = select(m, m.abs(around - 2.0) < 0.5, parts[4], none)
        x = select(m, m.abs(around - 3.0) < 0.5, none + 1.0, stays)
    return x


def local_contrast(m: Module, x: Picture) -> Picture:
    centred = x[1:-1, 1:-1] - sum(nine(x)) * (1 / 9)
    return centred[1:-1, 1:-1] / m.sqrt(sum(nine(centred * centred)) * (1 / 9) + 0.01)


def suppression(m: Module, x: Picture) -> Picture:
    """What is not the greatest around goes."""
    middle = x[1:-1, 1:-1]
    return select(m, middle >= most(m.maximum, nine(x)), middle, middle * 0.0)


PROGRAMS: Sequence[Program] = (
    laplacian_pyramid, median_chain, unsharp_mask, diffusion, filter_bank, long_filters, open_and_close, bilateral, edges, life,
    local_contrast, suppression,
)  # fmt: skip
NAMES = [program.__name__ for program in PROGRAMS]


def traced(program: Program, size: tuple[int, int]) -> gk.Graph:
    return gk.trace(lambda x: program(ops, x), gk.spec(size, "float32"))


def picture(size: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(size).astype(np.float32)


def compare(found: Sequence[np.ndarray], program: Program, x: np.ndarray) -> None:
    """With numpy's results."""
    expected = program(np, x)
    for result, want in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(result, want, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("size", [SIZE, (300, 520)])
@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_a_program_is_one_kernel_with_numpys_numbers(program: Program, size: tuple[int, int]) -> None:
    compiled = gk.compile(traced(program, size))
    assert compiled.report.kernel_calls == 1
    compare(compiled(picture(size)), program, picture(size))


@pytest.mark.parametrize("target", ["gpu", "ascend"])
@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_a_program_is_one_kernel_on_a_device_too(program: Program, target: str) -> None:
    """By the interpreter of PTX, and the simulator of AscendC."""
    (node,) = gk.optimize(traced(program, SIZE), target=target).operators
    kernel: Any = kernelgen.compile(to_desc(node, target), target)
    compare(kernel(picture(SIZE)), program, picture(SIZE))
