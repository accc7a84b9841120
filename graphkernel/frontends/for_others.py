"""The other end of :mod:`graphkernel.elsewhere`: a model is loaded and compiled into the cache."""

from __future__ import annotations

import json
import os
from functools import partial
from queue import SimpleQueue
from threading import Timer
from typing import Any

from graphkernel.elsewhere import NEXT
from graphkernel.frontends.known_models import load
from graphkernel.frontends.onnx.weights import places_of_weights
from graphkernel.recall import compile
from kernelgen.system.meanwhile import Meanwhile

WAITING_SECONDS = 10.0
"""How long a process that has loaded a model waits for somebody who wants it compiled."""

_END = b"null"
_TOLD: SimpleQueue[bytes] = SimpleQueue()  # what progress is told, and the end
_LEAVING = Timer(WAITING_SECONDS, os._exit, (0,))


def load_model(request: bytes) -> bytes:
    """Loads a model, unless its weights lie in other files, for which nothing is kept."""
    path, dims = json.loads(request)
    if places_of_weights(path) is not None:
        load(path, dims)
    _LEAVING.start()
    return _END


def compile_model(request: bytes) -> bytes:
    """Begins to compile a model, or goes on: gives what progress is told next, in the end the report, or null."""
    if request != NEXT:
        _LEAVING.cancel()
        Meanwhile(partial(_compile, *json.loads(request)))
    return _TOLD.get()


def _compile(path: str, dims: dict[str, int] | None, asked: dict[str, Any], is_watched: bool) -> None:
    def tell(*step: str | int) -> None:
        _TOLD.put(json.dumps(step).encode())

    report = _END
    try:
        made = compile(load(path, dims), **asked, progress=tell if is_watched else None)
        report = json.dumps({"report": made.report.to_json()}).encode()
    finally:
        _TOLD.put(report)
