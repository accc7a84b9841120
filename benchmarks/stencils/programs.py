"""The programs, in numpy's words: each takes one picture, and runs on arrays and on tensors that are traced alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Picture = Any
"""A numpy array or a traced tensor, ``f32[rows, columns]``."""

FIVE = (0.0545, 0.2442, 0.4026, 0.2442, 0.0545)
"""A Gaussian of 1 pixel; with those below, the bank of filters."""
BROAD = (0.1525, 0.2218, 0.2514, 0.2218, 0.1525)
EDGE = (-1.0, -2.0, 0.0, 2.0, 1.0)
STEPS = 4
LEVELS = 3


def separable(x: Picture, weights: Sequence[float]) -> Picture:
    """A filter along columns and then along rows; smaller by the filter's length less one."""
    length = len(weights) - 1
    columns, rows = x.shape[1] - length, x.shape[0] - length
    across = x[:, :columns] * weights[0]
    for k, weight in enumerate(weights[1:], 1):
        across = across + x[:, k : k + columns] * weight
    down = across[:rows] * weights[0]
    for k, weight in enumerate(weights[1:], 1):
        down = down + across[k : k + rows] * weight
    return down


def sharpen(x: Picture) -> Picture:
    """Blurs, takes the difference, blurs its square, and adds the difference where that is large."""
    detail = x[2:-2, 2:-2] - separable(x, FIVE)
    energy = separable(detail * detail, FIVE)
    return x[4:-4, 4:-4] + detail[2:-2, 2:-2] * energy / (energy + 0.01)


def corners(x: Picture) -> Picture:
    """Harris' corners with Sobel's gradients and a box of 3 x 3."""
    dx = (x[:-2, 2:] - x[:-2, :-2]) + 2.0 * (x[1:-1, 2:] - x[1:-1, :-2]) + (x[2:, 2:] - x[2:, :-2])
    dy = (x[2:, :-2] - x[:-2, :-2]) + 2.0 * (x[2:, 1:-1] - x[:-2, 1:-1]) + (x[2:, 2:] - x[:-2, 2:])
    xx, yy, xy = (separable(each, (1.0, 1.0, 1.0)) for each in (dx * dx, dy * dy, dx * dy))
    return xx * yy - xy * xy - 0.04 * (xx + yy) * (xx + yy)


def heat(x: Picture) -> Picture:
    """Steps of heat on a plate whose border is lost."""
    for _ in range(STEPS):
        x = x[1:-1, 1:-1] * 0.5 + (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) * 0.125
    return x


def wave(x: Picture) -> Picture:
    """Steps of a wave, each of which reads the two before."""
    now, before = x, x * 0.5
    for _ in range(STEPS):
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:] - 4.0 * now[1:-1, 1:-1]
        now, before = 2.0 * now[1:-1, 1:-1] - before[1:-1, 1:-1] + 0.25 * around, now[1:-1, 1:-1]
    return now


def bank(x: Picture) -> tuple[Picture, ...]:
    """Three separable filters, and what they say together."""
    fine, broad, edge = separable(x, FIVE), separable(x, BROAD), separable(x, EDGE)
    return fine - broad, broad * edge, edge * edge


def pyramid(x: Picture) -> tuple[Picture, ...]:
    """Levels of half the size, each blurred and pooled."""
    levels: list[Picture] = []
    for _ in range(LEVELS):
        x = separable(x, (0.25, 0.5, 0.25))
        rows, columns = x.shape[0] // 2 * 2, x.shape[1] // 2 * 2
        x = x[:rows, :columns]
        x = (x[::2, ::2] + x[1::2, ::2] + x[::2, 1::2] + x[1::2, 1::2]) * 0.25
        levels.append(x)
    return tuple(levels)


PROGRAMS: tuple[Callable[[Picture], Any], ...] = (sharpen, corners, heat, wave, bank, pyramid)
