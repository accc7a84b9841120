"""One case within limits, as a fuzzer whose seeds are the places in the table, so that the fuzzers' processes can run it."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import tempfile
import time
from pathlib import Path

from tests.fuzz.fuzzer import Fuzzer
from tests.fuzz.outcome import PASSED, Kind, Outcome, internal
from tests.hostile.case import FINE, Case
from tests.hostile.table import CASES

MOST_BYTES = 2 << 30
"""Of address space, beyond what the process has when the case begins."""
MOST_SECONDS = 10.0
"""Of computing: other programs on the machine do not count."""


def check(seed: int, level: int) -> Outcome:
    """PASSED, or what the case came to instead."""
    case = CASES[seed]
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MOST_BYTES, hard))
    start = time.process_time()
    outcome = _tried(case)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    seconds = time.process_time() - start
    late = seconds > MOST_SECONDS and not outcome.is_finding
    return Outcome(Kind.HANG, f"{case.key}: {seconds:.1f} s of computing") if late else outcome


def _tried(case: Case) -> Outcome:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.chdir(folder)
        try:
            case.run(Path(folder))
            found = FINE
        except Exception as error:
            found = type(error).__name__
            if found != case.expected:
                return internal(f"{case.key}: {case.expected} expected", error)
        finally:
            os.chdir(before)
    return PASSED if found == case.expected else Outcome(Kind.WRONG, f"{case.key}: {found}, {case.expected} expected")


def _address_space() -> int:
    """Bytes that this process has now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    return pages * resource.getpagesize()


FUZZER = Fuzzer(draw=lambda seed: seed, check=check)
