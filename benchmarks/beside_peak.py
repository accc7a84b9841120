"""Work with constant weights on one thread: ours beside onnxruntime's, and the share of the processor's peak."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, Self, TypeVar

import numpy as np

from benchmarks.contestants import OURS, Contestant
from benchmarks.measure import Spread, on_one_thread
from benchmarks.record import Record
from benchmarks.whole_networks.limits import multiply_adds

ORT = "onnxruntime"
PEAK = "multiply-adds that wait for nothing"
CACHE_BYTES = 64 << 20
"""Of all copies of the weights together, or more: of as many as there may be."""

MOST_COPIES = 32
"""Of few weights, which stay in a cache in networks as well."""

GREATEST_ERROR = {OURS: 1e-4, ORT: 1e-4}


def values(*shape: int, seed: int | tuple[int, ...] = 0) -> np.ndarray:
    """Floats of a ``shape`` between -1 and 1, the same for a ``seed`` in every process."""
    return np.random.default_rng(seed).random(shape, np.float32) * np.float32(2) - np.float32(1)


class Work(Protocol):
    """``operations`` are multiplications and additions, ``weight_bytes`` those of one copy; ``tiny`` takes no time."""

    @property
    def name(self) -> str: ...
    @property
    def operations(self) -> int: ...
    @property
    def weight_bytes(self) -> int: ...
    @property
    def tiny(self) -> Self: ...


Kind = TypeVar("Kind", bound=Work)


def beside_peak(
    title: str,
    works: Sequence[Kind],
    contestants: Callable[[Kind, int], Iterator[Contestant]],
    truth: Callable[[Kind], np.ndarray],
    rounds: int,
    *,
    tiny: bool,
) -> Record:
    """The record of all ``works``, with a table under the ``title``.

    ``contestants`` turn through so many copies of weights, each of its own numbers, and ``truth`` is what the first copy gives;
    each is measured in so many ``rounds``, the ``tiny`` one of its kind where that is asked for. The processor's peak, which
    changes with what its neighbours do, is one of those that take turns.
    """
    width = max(20, *(len(work.name) for work in works))
    print(f"{title:{width}s}{'ours ms':>24s}{'GF/s':>8s}{'of peak':>9s}{'onnxruntime / ours':>24s}")
    found: Record = {}
    for work in works:
        given = work.tiny if tiny else work
        copies = 2 if tiny else min(MOST_COPIES, 1 + CACHE_BYTES // given.weight_bytes)
        entrants = (*contestants(given, copies), Contestant(PEAK, multiply_adds(given.operations)))
        record = on_one_thread(given.name, entrants, truth(given), GREATEST_ERROR, rounds, tiny=tiny)
        mine = Spread(**record["contestants"][OURS])
        rate, share = given.operations / mine.median / 1e6, record["times_of_ours"][PEAK]["median"]
        found[work.name] = record | {"gflops": rate, "share_of_peak": share}
        against = record["times_of_ours"].get(ORT)
        shown = "-" if against is None else str(Spread(**against))
        print(f"{work.name:{width}s}{mine!s:>24s}{rate:8.0f}{share:9.0%}{shown:>24s}")
    return found
