"""The most memory that this process has had."""

from __future__ import annotations

import re
import sys
from contextlib import suppress
from pathlib import Path


def peak_memory() -> int:
    """Bytes that were resident at once; on Linux since the program began, elsewhere since the process did."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
        if found:
            return int(found[1]) * 1024
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
