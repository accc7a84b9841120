"""Sessions of onnxruntime that outlive a fork.

A forked child has none of its parent's threads, but its copies of the parent's sessions count on them: running one, or
taking it down, waits for ever. So a child leaves these copies alone, and makes a session anew when it first runs it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from graphkernel.errors import RuntimeFailure
from graphkernel.runtime.onnxruntime.c_interface import (
    ALL_OPTIMIZATIONS,
    FATAL,
    NO_OPTIMIZATIONS,
    Lent,
    SharedSession,
)
from graphkernel.runtime.onnxruntime.environment import environment
from graphkernel.system.freed_memory import MUCH, return_freed_memory
from kernelgen.system.cores import core_count
from kernelgen.system.named_tuples import NamedTuple

if TYPE_CHECKING:
    import numpy as np

OBJECTS = " objects"
"""The end of the name of a group of operators that all take or give Python's objects."""


class RegionModel(NamedTuple):
    """A serialized ONNX model, and the ``weights`` that it only names: sessions read them where they lie.

    With ``objects`` its session is fed and gives what Python makes of strings, sequences and such: ``session.run``.
    """

    content: bytes
    weights: Mapping[str, np.ndarray]
    objects: bool = False

    @property
    def weight_bytes(self) -> int:
        """Of all weights together."""
        return sum(array.nbytes for array in self.weights.values())


class Session:
    """A session of this process for a model, which keeps the weights; a child that was forked opens one of its own.

    ``made`` is one that was opened before.
    """

    def __init__(
        self, model: RegionModel, open_it: Callable[[RegionModel], Any], made: SharedSession | None = None
    ) -> None:  # onnxruntime has no types
        self.model = model
        self._open = open_it
        self._made = open_it(model) if made is None else made
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


def opened(name: str, model: RegionModel, *, threads: int | None, is_optimized: bool) -> Any:
    """A session on ``threads`` for the ``model`` (bytes) of the region ``name``; ``is_optimized``: onnxruntime has
    optimized it before.

    Raises ``RuntimeFailure`` when onnxruntime declines.
    """
    try:
        return open_session(model, threads, is_optimized)
    except Exception as error:  # onnxruntime raises many classes of its own
        raise RuntimeFailure(f"onnxruntime cannot run {name}: {error}") from error


def open_session(model: RegionModel, threads: int | None, is_optimized: bool) -> Any:  # onnxruntime has no types
    """A session on the threads of this process, which the first one starts: ``threads``, or as many as make sense.

    One thread, or any number in a child that was forked from the process of the threads, is the thread that calls.
    """
    level = ALL_OPTIMIZATIONS if is_optimized else NO_OPTIMIZATIONS
    if model.objects:
        return _python_session(model, threads, level)
    lent = {name: Lent(array.ctypes.data, array.nbytes, array) for name, array in model.weights.items()}
    session = shared_session(model.content, lent, threads, level)
    settle(model)
    return session


def shared_session(content: bytes, weights: Mapping[str, Lent], threads: int | None, level: int) -> SharedSession:
    """The same for the ``content`` of a model of arrays alone, over ``weights`` that it names, on ``threads``, as optimized as
    ``level`` says; nothing of numpy's is imported for it.
    """
    shared = environment(threads)
    alone = threads == 1 or shared.process != os.getpid()
    if not alone and threads not in (None, shared.threads):
        from graphkernel.mindspore.flag_text import warn  # rarely needed

        warn(f"operators on onnxruntime run on {shared.threads} threads, not on {threads}: the first to run decide")
    return SharedSession(shared, content, weights, level, alone)


def settle(model: RegionModel) -> None:
    """Gives back memory that opening a session over the weights of a ``model`` has used."""
    from kernelgen.system.mapped import let_go  # numpy

    for array in model.weights.values():  # which onnxruntime packed, or reads again when it runs
        let_go(array)
    if model.weight_bytes > MUCH:
        return_freed_memory()


def threads_for(group: str, threads: int | None) -> int | None:
    """How many of the ``threads`` run a region whose operators are of a ``group``: objects alone are no work for several."""
    return 1 if group.endswith(OBJECTS) else threads


def _python_session(model: RegionModel, threads: int | None, level: int) -> Any:  # onnxruntime has no types
    """One for Python's objects, on threads of its own."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel(level)
    options.intra_op_num_threads = core_count() if threads is None else threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = FATAL
    for name, array in model.weights.items():
        options.add_external_initializers([name], [onnxruntime.OrtValue.ortvalue_from_numpy(array)])
    return onnxruntime.InferenceSession(model.content, options, providers=["CPUExecutionProvider"])


_ALIVE: WeakSet[Session] = WeakSet()  # what a fork has to find; nothing else reads it


def _leave_all() -> None:
    for session in list(_ALIVE):
        session.leave()


os.register_at_fork(after_in_child=_leave_all)
