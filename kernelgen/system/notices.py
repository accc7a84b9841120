"""What users are told once in a process, as warnings of the logger ``kernelgen``."""

from __future__ import annotations

from functools import cache

from kernelgen.system.escape import line


@cache
def warn_once(message: str) -> None:
    """Logs a WARNING, the first time that this message comes."""
    import logging  # most processes have nothing to tell

    logging.getLogger("kernelgen").warning("%s", line(message))
