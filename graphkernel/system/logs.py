"""The ``logging`` tree of both packages, as ``GLOG_v`` or ``GRAPHKERNEL_LOG`` wish it; neither set: as the program has it."""

from __future__ import annotations

import logging

TREES = ("graphkernel", "kernelgen")
FORMAT = "%(levelname)s %(name)s: %(message)s"


def follow(level: int | None) -> None:
    """Sets the level of our loggers, and lets them print to stderr where the program has set up nothing.

    ``None`` changes nothing: a library leaves logging to its program unless the user asks for it.
    """
    if level is None:
        return
    for name in TREES:
        logger = logging.getLogger(name)
        logger.setLevel(level)
        if not logger.hasHandlers():
            handler = logging.StreamHandler()
            handler.setFormatter(logging.Formatter(FORMAT))
            logger.addHandler(handler)
