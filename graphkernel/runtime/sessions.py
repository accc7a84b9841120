"""Sessions of onnxruntime that outlive a fork.

A forked child has none of its parent's threads, but its copies of the parent's sessions count on them: running one, or
taking it down, waits for ever. So a child leaves these copies alone, and makes a session anew when it first runs it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

import numpy as np


@dataclass(frozen=True)
class RegionModel:
    """A serialized ONNX model, and the ``weights`` that it only names: sessions read them where they lie."""

    content: bytes
    weights: Mapping[str, np.ndarray]


class Session:
    """A session of this process for a model, which keeps the weights; a child that was forked opens one of its own."""

    def __init__(self, model: RegionModel, open_it: Callable[[RegionModel], Any]) -> None:  # onnxruntime has no types
        self.model = model
        self._open = open_it
        self._made = open_it(model)
        _ALIVE.add(self)

    def here(self) -> Any:
        """The session to run in this process."""
        if self._made is None:
            self._made = self._open(self.model)
        return self._made

    def leave(self) -> None:
        """Forgets the session without taking it down."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._made))
        self._made = None


def open_session(model: RegionModel, threads: int, is_optimized: bool) -> Any:  # onnxruntime has no types
    """A session of this process. The weights must live as long as it does. 0 threads: as onnxruntime thinks best."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if is_optimized else level.ORT_DISABLE_ALL
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # kernels run between regions
    options.log_severity_level = 3  # errors only
    _lend(model.weights, options, onnxruntime)
    return onnxruntime.InferenceSession(model.content, options, providers=["CPUExecutionProvider"])


def _lend(weights: Mapping[str, np.ndarray], options: Any, onnxruntime: Any) -> None:
    """Onnxruntime that cannot read weights where they lie takes copies."""
    names, arrays = list(weights), list(weights.values())
    if not arrays:
        return
    if hasattr(options, "add_external_initializers_from_files_in_memory"):
        options.add_session_config_entry("session.use_external_initializer_file_buffers_directly", "1")
        files = [array.reshape(-1).view(np.uint8) for array in arrays]
        options.add_external_initializers_from_files_in_memory(names, files, [array.nbytes for array in arrays])
    else:
        options.add_external_initializers(names, [onnxruntime.OrtValue.ortvalue_from_numpy(a) for a in arrays])


_ALIVE: WeakSet[Session] = WeakSet()  # what a fork has to find; nothing else reads it


def _leave_all() -> None:
    for session in list(_ALIVE):
        session.leave()


os.register_at_fork(after_in_child=_leave_all)
