"""What a sandbox's process does: calls the function that a request names, and tells what it logged besides."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import cache
from importlib import import_module

LOGGERS = ("kernelgen", "graphkernel")


def answer(request: bytes) -> bytes:
    """The reply to a request: ``{"notices": [text, ...], "answer": what the function gave}``, or ``"error"`` in its place.

    The first line of the request is ``package.module:function``, the rest is for the function, which gives JSON. Without
    a rest the function is only looked up, so that the first request need not wait for imports.
    """
    name, _, content = request.partition(b"\n")
    notices = _notices()
    try:
        found = _function(name.decode())
        part = b'"answer": ' + (found(content) if content else b"null")
    except Exception as error:  # whoever asked decides what becomes of it
        part = b'"error": ' + json.dumps(f"{type(error).__name__}: {error}").encode()
    return b'{"notices": ' + json.dumps(notices.taken()).encode() + b", " + part + b"}"


@cache
def _function(name: str) -> Callable[[bytes], bytes]:
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


class Notices(logging.Handler):
    """Keeps what is logged as a warning until somebody takes it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept: list[str] = []
        for name in LOGGERS:
            logging.getLogger(name).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps the message."""
        self._kept.append(record.getMessage())

    def taken(self) -> list[str]:
        """What was kept since it was last taken."""
        found, self._kept = self._kept, []
        return found


@cache
def _notices() -> Notices:
    return Notices()
