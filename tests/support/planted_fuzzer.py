"""A fuzzer whose samples come to each end there is: what the pool must notice."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

from tests.fuzz.fuzzer import Fuzzer
from tests.fuzz.outcome import PASSED, Kind, Outcome, internal

FINE, REFUSED, WRONG, INTERNAL, DIES, HANGS, EATS_MEMORY, BROKEN = range(8)


def check(sample: str, level: int) -> Outcome:
    match len(sample) % 8:
        case 0:
            return PASSED
        case 1:
            return Outcome(Kind.REFUSED, "a reason")
        case 2:
            return Outcome(Kind.WRONG, f"wrong at level {level}")
        case 3:
            return _internal()
        case 4:
            os.kill(os.getpid(), signal.SIGSEGV)
        case 5:
            time.sleep(600)
        case 6:
            return internal("memory", _memory_error())
        case _:
            raise AssertionError("the fuzzer is broken")
    return PASSED


def _internal() -> Outcome:
    try:
        raise KeyError(999)
    except KeyError as error:
        return internal("here", error)


def _memory_error() -> BaseException:
    try:
        return ValueError(len(bytearray(1 << 40)))
    except MemoryError as error:
        return error


def smaller(sample: str) -> Iterator[str]:
    if len(sample) >= 8:
        yield sample[8:]


FUZZER = Fuzzer(lambda seed: "x" * seed, check, smaller)
