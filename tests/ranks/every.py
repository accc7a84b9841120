"""Every collective on every data type, over a real communicator against the one in memory."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from graphkernel.communication.communicator import Array, Communicator
from graphkernel.communication.in_memory import REDUCTIONS, run_ranks

NUMBERS = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int32, np.int64, np.uint8, np.int8)
MOVED = (*NUMBERS, np.bool_, np.complex64)


def every_collective(communicator: Communicator) -> list[str]:
    """What differs from the ranks in memory, empty where nothing does. All ranks call it."""
    wanted = run_ranks(communicator.size, lambda rank: dict(_results(rank)))[communicator.rank]
    found = dict(_results(communicator))
    return [name for name, array in wanted.items() if not np.array_equal(array, found[name])]


def _results(over: Communicator) -> Iterator[tuple[str, Array]]:
    """Small whole numbers, which all data types add up exactly in any order."""
    size, rank = over.size, over.rank
    whole = (np.arange(4 * size * 3).reshape(2 * size, 6) + rank) % 3
    for of in NUMBERS:
        x = whole.astype(of)
        for op in REDUCTIONS:
            out, part = np.zeros_like(x), np.zeros((2, 6), of)
            over.all_reduce(x, out, op).wait()
            yield f"all_reduce {op} {x.dtype}", out
            over.reduce_scatter(x, part, op).wait()
            yield f"reduce_scatter {op} {x.dtype}", part
    for of in MOVED:
        yield from _moved(over, whole.astype(of))


def _moved(over: Communicator, x: Array) -> Iterator[tuple[str, Array]]:
    out, wide, got = np.zeros_like(x), np.zeros((over.size * len(x), 6), x.dtype), np.zeros_like(x)
    over.broadcast(x, out, over.size - 1).wait()
    yield f"broadcast {x.dtype}", out.copy()
    over.all_to_all(x, out).wait()
    yield f"all_to_all {x.dtype}", out
    over.all_gather(x, wide).wait()
    yield f"all_gather {x.dtype}", wide
    taking = over.receive(got, (over.rank - 1) % over.size, 7)
    over.send(x, (over.rank + 1) % over.size, 7).wait()
    taking.wait()
    yield f"send and receive {x.dtype}", got
