"""What users are told once in a process, as warnings of the logger ``kernelgen``."""

from __future__ import annotations

import logging
from functools import cache

from kernelgen.escape import line

LOGGER = logging.getLogger("kernelgen")


@cache
def warn_once(message: str) -> None:
    """Logs a WARNING, the first time that this message comes."""
    LOGGER.warning("%s", line(message))
