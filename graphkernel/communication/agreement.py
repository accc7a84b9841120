"""Ranks tell each other what they are about to do: one that would do something else is an error, and no wrong sum.

A library of communication adds up whatever comes at the same time: a sum here and a maximum there, or the first rows of a
longer array. It may as well hang, or end the process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from graphkernel.communication.communicator import Array, Communicator
from graphkernel.errors import RuntimeFailure

BYTES = 7
"""Of a whole number that is sent: all its values are those of an int64."""


def agree(over: Communicator, told: Sequence[str], wanted: Sequence[int], like: Array) -> tuple[int, ...]:
    """The least of what the ranks have ``wanted`` for each line, when all have ``told`` the same lines. All of them call it.

    ``like`` is an array of the kind that ``over`` moves, of a device or of the host. Raises RuntimeFailure, on every rank,
    with the first line in which ranks differ.
    """
    text = "\n".join(told).encode()
    digest = int.from_bytes(hashlib.sha256(text).digest()[:BYTES], "little")
    found = _gathered(over, (digest, len(text)), like)
    if all(each == found[0] for each in found):
        return tuple(map(min, *_gathered(over, wanted, like))) if over.size > 1 else tuple(wanted)
    numbers = [int.from_bytes(text[k : k + BYTES], "little") for k in range(0, len(text), BYTES)]
    width = -(-max(size for _, size in found) // BYTES)
    rows = _gathered(over, (*numbers, *[0] * (width - len(numbers))), like)
    texts = [b"".join(number.to_bytes(BYTES, "little") for number in row) for row in rows]
    lines = [text[:size].decode().split("\n") for text, (_, size) in zip(texts, found, strict=True)]
    raise RuntimeFailure(_difference(lines))


def _gathered(over: Communicator, row: Sequence[int], like: Array) -> list[tuple[int, ...]]:
    """The rows of all ranks. Whole numbers go in and out one by one: arrays of a device take no others."""
    own = np.full_like(like, 0, dtype=np.int64, shape=(len(row),))
    for position, number in enumerate(row):
        own[position] = number
    every = np.full_like(own, 0, shape=(over.size * len(row),))
    over.all_gather(own, every).wait()
    numbers = every.tolist()
    return [tuple(numbers[first : first + len(row)]) for first in range(0, len(numbers), len(row))]


def _difference(lines: Sequence[Sequence[str]]) -> str:
    for rank, other in enumerate(lines):
        for number, (here, there) in enumerate(zip_longest(lines[0], other, fillvalue="nothing more"), 1):
            if here != there:
                return f"rank 0 and rank {rank} do not do the same: number {number} is {here} on rank 0, {there} on rank {rank}"
    return "ranks do not do the same, in words that are the same"
