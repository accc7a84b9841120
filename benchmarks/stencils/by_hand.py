# pyright: basic, reportMissingImports=false
"""The same programs in numba, written by hand with the schedules that Halide's authors publish for such pipelines.

Strips of rows, dealt to threads; within a strip what one stage gives the next lies in an array of the strip's own, and inner
loops run along columns, which LLVM makes vectors of. Strips recompute the rows at their borders. With ``FAST`` LLVM may sum in
any order and draw products into sums; without, it rounds as these loops say: ``heat``, ``wave``
and ``bank`` as the programs do, the others otherwise in the last bits. ``pyramid`` adds both rows of a square while it blurs
them, which takes fewer operations than the program.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numba
import numpy as np

from benchmarks.stencils.programs import BROAD, EDGE, FIVE, LEVELS, STEPS

STRIP = 16
"""Rows of the last stage in a strip: of 8, 16, 32 and 64 the fastest on 1024 x 1024."""

FINE, WIDE, SLOPE = (tuple(np.float32(w) for w in weights) for weights in (FIVE, BROAD, EDGE))
FAST = os.environ.get("STENCILS_FAST") == "1"
jit = numba.njit(parallel=True, fastmath=FAST, nogil=True)
inlined = numba.njit(fastmath=FAST, inline="always")


@inlined
def _across5(x, first, rows, weights, out):
    for i in range(rows):
        for j in range(x.shape[1] - 4):
            out[i, j] = (
                x[first + i, j] * weights[0] + x[first + i, j + 1] * weights[1] + x[first + i, j + 2] * weights[2]
                + x[first + i, j + 3] * weights[3] + x[first + i, j + 4] * weights[4]
            )  # fmt: skip


@jit
def sharpen(x):
    rows, columns = x.shape[0] - 8, x.shape[1] - 8
    out = np.empty((rows, columns), np.float32)
    for strip in numba.prange((rows + STRIP - 1) // STRIP):
        first = strip * STRIP
        count = min(STRIP, rows - first)
        across = np.empty((count + 8, columns + 4), np.float32)
        detail = np.empty((count + 4, columns + 4), np.float32)
        again = np.empty((count + 4, columns), np.float32)
        _across5(x, first, count + 8, FINE, across)
        for i in range(count + 4):
            for j in range(columns + 4):
                detail[i, j] = x[first + i + 2, j + 2] - (
                    across[i, j] * FINE[0] + across[i + 1, j] * FINE[1] + across[i + 2, j] * FINE[2]
                    + across[i + 3, j] * FINE[3] + across[i + 4, j] * FINE[4]
                )  # fmt: skip
        for i in range(count + 4):
            for j in range(columns):
                again[i, j] = (
                    detail[i, j] * detail[i, j] * FINE[0] + detail[i, j + 1] * detail[i, j + 1] * FINE[1]
                    + detail[i, j + 2] * detail[i, j + 2] * FINE[2] + detail[i, j + 3] * detail[i, j + 3] * FINE[3]
                    + detail[i, j + 4] * detail[i, j + 4] * FINE[4]
                )  # fmt: skip
        for i in range(count):
            for j in range(columns):
                energy = (
                    again[i, j] * FINE[0] + again[i + 1, j] * FINE[1] + again[i + 2, j] * FINE[2]
                    + again[i + 3, j] * FINE[3] + again[i + 4, j] * FINE[4]
                )  # fmt: skip
                amount = energy / (energy + np.float32(0.01))
                out[first + i, j] = x[first + i + 4, j + 4] + detail[i + 2, j + 2] * amount
    return out


@jit
def corners(x):
    rows, columns = x.shape[0] - 4, x.shape[1] - 4
    out = np.empty((rows, columns), np.float32)
    for strip in numba.prange((rows + STRIP - 1) // STRIP):
        first = strip * STRIP
        count = min(STRIP, rows - first)
        xx = np.empty((count + 2, columns + 2), np.float32)
        yy, xy = np.empty_like(xx), np.empty_like(xx)
        for i in range(count + 2):
            r = first + i
            for j in range(columns + 2):
                dx = (
                    (x[r, j + 2] - x[r, j])
                    + np.float32(2) * (x[r + 1, j + 2] - x[r + 1, j])
                    + (x[r + 2, j + 2] - x[r + 2, j])
                )
                dy = (
                    (x[r + 2, j] - x[r, j])
                    + np.float32(2) * (x[r + 2, j + 1] - x[r, j + 1])
                    + (x[r + 2, j + 2] - x[r, j + 2])
                )
                xx[i, j], yy[i, j], xy[i, j] = dx * dx, dy * dy, dx * dy
        for i in range(count):
            for j in range(columns):
                a, b, c = np.float32(0), np.float32(0), np.float32(0)
                for k in range(3):
                    for m in range(3):
                        a += xx[i + k, j + m]
                        b += yy[i + k, j + m]
                        c += xy[i + k, j + m]
                out[first + i, j] = a * b - c * c - np.float32(0.04) * (a + b) * (a + b)
    return out


@jit
def heat(x):
    rows, columns = x.shape[0] - 2 * STEPS, x.shape[1] - 2 * STEPS
    out = np.empty((rows, columns), np.float32)
    for strip in numba.prange((rows + STRIP - 1) // STRIP):
        first = strip * STRIP
        count = min(STRIP, rows - first)
        now = x[first : first + count + 2 * STEPS]
        for step in range(STEPS):
            left = 2 * (STEPS - 1 - step)
            width = columns + left
            then = np.empty((count + left, width), np.float32)
            for i in range(count + left):
                for j in range(width):
                    around = now[i, j + 1] + now[i + 2, j + 1] + now[i + 1, j] + now[i + 1, j + 2]
                    then[i, j] = now[i + 1, j + 1] * np.float32(0.5) + around * np.float32(0.125)
            now = then
        out[first : first + count] = now
    return out


@jit
def wave(x):
    rows, columns = x.shape[0] - 2 * STEPS, x.shape[1] - 2 * STEPS
    out = np.empty((rows, columns), np.float32)
    for strip in numba.prange((rows + STRIP - 1) // STRIP):
        first = strip * STRIP
        count = min(STRIP, rows - first)
        now = x[first : first + count + 2 * STEPS]
        before = now * np.float32(0.5)
        for step in range(STEPS):
            left = 2 * (STEPS - 1 - step)
            width = columns + left
            then = np.empty((count + left, width), np.float32)
            offset = 1 if step == 0 else 2
            for i in range(count + left):
                for j in range(width):
                    around = now[i, j + 1] + now[i + 2, j + 1] + now[i + 1, j] + now[i + 1, j + 2]
                    around -= np.float32(4) * now[i + 1, j + 1]
                    then[i, j] = (
                        np.float32(2) * now[i + 1, j + 1] - before[i + offset, j + offset] + np.float32(0.25) * around
                    )
            before, now = now, then
        out[first : first + count] = now
    return out


@jit
def bank(x):
    rows, columns = x.shape[0] - 4, x.shape[1] - 4
    apart, mixed, squared = (
        np.empty((rows, columns), np.float32), np.empty((rows, columns), np.float32), np.empty((rows, columns), np.float32)
    )  # fmt: skip
    for strip in numba.prange((rows + STRIP - 1) // STRIP):
        first = strip * STRIP
        count = min(STRIP, rows - first)
        fine = np.empty((count + 4, columns), np.float32)
        broad, edge = np.empty_like(fine), np.empty_like(fine)
        for i in range(count + 4):
            for j in range(columns):
                a, b, c = x[first + i, j], x[first + i, j + 1], x[first + i, j + 2]
                d, e = x[first + i, j + 3], x[first + i, j + 4]
                fine[i, j] = a * FINE[0] + b * FINE[1] + c * FINE[2] + d * FINE[3] + e * FINE[4]
                broad[i, j] = a * WIDE[0] + b * WIDE[1] + c * WIDE[2] + d * WIDE[3] + e * WIDE[4]
                edge[i, j] = a * SLOPE[0] + b * SLOPE[1] + c * SLOPE[2] + d * SLOPE[3] + e * SLOPE[4]
        for i in range(count):
            for j in range(columns):
                f, w, s = np.float32(0), np.float32(0), np.float32(0)
                for k in range(5):
                    f += fine[i + k, j] * FINE[k]
                    w += broad[i + k, j] * WIDE[k]
                    s += edge[i + k, j] * SLOPE[k]
                apart[first + i, j] = f - w
                mixed[first + i, j] = w * s
                squared[first + i, j] = s * s
    return apart, mixed, squared


@jit
def _level(x):
    rows, columns = (x.shape[0] - 2) // 2, (x.shape[1] - 2) // 2
    out = np.empty((rows, columns), np.float32)
    for strip in numba.prange((rows + STRIP - 1) // STRIP):
        first = strip * STRIP
        count = min(STRIP, rows - first)
        across = np.empty((2 * count + 2, 2 * columns), np.float32)
        for i in range(2 * count + 2):
            r = 2 * first + i
            for j in range(2 * columns):
                across[i, j] = (x[r, j] + x[r, j + 2]) * np.float32(0.25) + x[r, j + 1] * np.float32(0.5)
        down = np.empty(2 * columns, np.float32)
        for i in range(count):
            for j in range(2 * columns):  # both rows of a square, blurred along rows and added up
                down[j] = (across[2 * i, j] + across[2 * i + 3, j]) * np.float32(0.25) + (
                    across[2 * i + 1, j] + across[2 * i + 2, j]
                ) * np.float32(0.75)
            for j in range(columns):
                out[first + i, j] = (down[2 * j] + down[2 * j + 1]) * np.float32(0.25)
    return out


def pyramid(x):
    levels = []
    for _ in range(LEVELS):
        x = _level(x)
        levels.append(x)
    return tuple(levels)


BY_HAND: Mapping[str, Callable[[Any], Any]] = {
    program.__name__: program for program in (sharpen, corners, heat, wave, bank, pyramid)
}
