"""What a device takes: by its own clock for what it computes, by the clock on the wall for what a call costs.

The device's clock is read around a batch of calls that wait in its queue behind a long kernel, so that Python's time does not
count. All contestants take turns in every round, and ratios are taken within a round.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Call = Callable[[], object]
BATCH = 10
SPIN_CYCLES = 30_000_000  # about 15 ms on current devices: as long as it takes to queue a batch
LEAST_CALLS = 50


def device_seconds(cupy: Any, torch: Any, call: Call) -> float:
    """Seconds of one call on the device. Without torch there is no long kernel to hide Python behind."""
    start, end = cupy.cuda.Event(), cupy.cuda.Event()
    if torch is not None:
        torch.cuda._sleep(SPIN_CYCLES)
    start.record()
    for _ in range(BATCH):
        call()
    end.record()
    end.synchronize()
    return cupy.cuda.get_elapsed_time(start, end) / 1e3 / BATCH


def wall_seconds(cupy: Any, torch: Any, call: Call) -> float:
    """Seconds of one call as the caller sees them, many in a row."""
    stream = cupy.cuda.get_current_stream()
    stream.synchronize()
    start = time.perf_counter()
    for _ in range(LEAST_CALLS):
        call()
    stream.synchronize()
    return (time.perf_counter() - start) / LEAST_CALLS


def rounds_of(
    calls: Mapping[str, Call],
    clock: Callable[[Any, Any, Call], float],
    cupy: Any,
    torch: Any,
    rounds: int,
    seconds: float,
) -> dict[str, list[float]]:
    """Seconds of each contestant in each round; rounds end early when the time is up, but there is one at least."""
    names, found = list(calls), {name: list[float]() for name in calls}
    for call in calls.values():
        call()
    deadline = time.perf_counter() + seconds
    for turn in range(rounds):
        start = turn % len(names)
        for name in [*names[start:], *names[:start]]:
            found[name].append(clock(cupy, torch, calls[name]))
        if time.perf_counter() > deadline:
            break
    return found


def ratio(times: Mapping[str, Sequence[float]], name: str, to: str) -> list[float]:
    """Time of one contestant over that of another, round by round."""
    return [a / b for a, b in zip(times[name], times[to], strict=True)]
