"""Operators that only move elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernelgen.semantics.algebra import Array
from kernelgen.tensor.operator import Application
from kernelgen.tensor.operators.type_rules import normal_axis


def reshape(operands: Sequence[Array], node: Application) -> Array:
    """The described shape decides: attributes of old writers are wrong at times."""
    return operands[0].reshape(result_shape(node))


def broadcast(operands: Sequence[Array], node: Application) -> Array:
    """BroadcastTo: missing leading dims and extents of 1 repeat."""
    source, shape = operands[0], result_shape(node)
    surplus = source.ndim - len(shape)
    return np.broadcast_to(source.reshape(source.shape[max(surplus, 0) :]), shape)


def transpose(operands: Sequence[Array], node: Application) -> Array:
    """Dim d of the result is dim ``perm[d]`` of the operand; no ``perm`` reverses."""
    return np.transpose(operands[0], node.attrs.ints("perm", tuple(reversed(range(operands[0].ndim)))))


def tile(operands: Sequence[Array], node: Application) -> Array:
    """Repeats the operand ``multiples[d]`` times along dim d."""
    return np.tile(operands[0], node.attrs.ints("multiples"))


def concat(operands: Sequence[Array], node: Application) -> Array:
    """Joins the operands along ``axis``."""
    return np.concatenate(operands, axis=normal_axis(node.attrs.int("axis", 0), operands[0].ndim))


def split(operands: Sequence[Array], node: Application) -> tuple[Array, ...]:
    """Cuts along ``axis`` into parts of the results' extents."""
    axis = normal_axis(node.attrs.int("axis", 0), operands[0].ndim)
    ends = np.cumsum([result_shape(node, place)[axis] for place in range(len(node.outs))])
    return tuple(np.split(operands[0], [int(end) for end in ends[:-1]], axis))


def pad(operands: Sequence[Array], node: Application) -> Array:
    """PadAkg: ``head`` and ``tail`` elements of ``pad_val`` around every dim."""
    widths = list(zip(node.attrs.ints("head"), node.attrs.ints("tail"), strict=True))
    return np.pad(operands[0], widths, constant_values=node.attrs.number("pad_val", 0.0))


def unpad(operands: Sequence[Array], node: Application) -> Array:
    """UnPadAkg: drops the last ``tail`` elements of every dim."""
    tails = node.attrs.ints("tail")
    return operands[0][tuple(slice(0, size - tail) for size, tail in zip(operands[0].shape, tails, strict=True))]


def result_shape(node: Application, place: int = 0) -> tuple[int, ...]:
    """The described shape of a result; sizes must be known."""
    return tuple(int(dim) for dim in node.outs[place].shape)  # pyright: ignore[reportArgumentType]  # specialised
