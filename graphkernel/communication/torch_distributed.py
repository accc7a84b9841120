"""torch.distributed: gloo between processes on CPUs, NCCL between GPUs, and whatever else torch has a backend for.

The process group is the caller's: ``torch.distributed.init_process_group("gloo")`` first, as ``torchrun`` prepares it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from graphkernel.communication.communicator import Array, Pending
from graphkernel.errors import RuntimeFailure


class _Work(NamedTuple):
    """A piece of work of torch on the memory of an array."""

    work: Any
    array: Any

    def wait(self) -> None:
        """Waits for the work; of a device its stream does."""
        with _stream_of(self.array):
            self.work.wait()


@contextmanager
def _stream_of(array: Any) -> Generator[None]:
    """On a device torch works behind what was started on cupy's stream, and what is started there behind torch."""
    if isinstance(array, np.ndarray):
        yield
        return
    import cupy  # pyright: ignore[reportMissingImports]  # whose array it is
    import torch  # pyright: ignore[reportMissingImports]

    with torch.cuda.stream(torch.cuda.ExternalStream(cupy.cuda.get_current_stream().ptr)):
        yield


@dataclass(frozen=True, init=False)
class TorchDistributed:
    """A process group of torch, by default that of all processes. Arrays of numpy and of cupy are its tensors' memory.

    Raises RuntimeFailure where torch is not installed, or has no process group yet.
    """

    group: Any

    def __init__(self, group: object = None) -> None:
        if not _library().is_initialized():
            raise RuntimeFailure('there is no process group yet: torch.distributed.init_process_group("gloo")')
        object.__setattr__(self, "group", group)

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""
        return _library().get_rank(self.group)

    @property
    def size(self) -> int:
        """How many processes there are."""
        return _library().get_world_size(self.group)

    def all_reduce(self, x: Array, out: Array, op: str) -> Pending:
        """``out`` is the ``op`` of all ``x``: ``all_reduce`` in the memory of ``out``."""
        out[...] = x
        return _started(out, lambda by: by.all_reduce(_tensor(out), _reduction(op), self.group, async_op=True))

    def all_gather(self, x: Array, out: Array) -> Pending:
        """``out`` is all ``x`` along axis 0: ``all_gather_into_tensor``."""
        return _started(out, lambda by: by.all_gather_into_tensor(_bytes(out), _bytes(x), self.group, async_op=True))

    def reduce_scatter(self, x: Array, out: Array, op: str) -> Pending:
        """``out`` is this rank's part of the ``op`` of all ``x``: ``reduce_scatter_tensor``."""
        how = _reduction(op)
        return _started(
            out, lambda by: by.reduce_scatter_tensor(_tensor(out), _tensor(x), how, self.group, async_op=True)
        )

    def broadcast(self, x: Array, out: Array, root: int) -> Pending:
        """``out`` is the ``x`` of ``root``: ``broadcast``."""
        if self.rank == root:
            out[...] = x
        source = self._global(root)
        return _started(out, lambda by: by.broadcast(_bytes(out), source, self.group, async_op=True))

    def all_to_all(self, x: Array, out: Array) -> Pending:
        """``out`` is this rank's part of all ``x``: ``all_to_all_single``."""
        return _started(out, lambda by: by.all_to_all_single(_bytes(out), _bytes(x), group=self.group, async_op=True))

    def send(self, x: Array, to: int, tag: int) -> Pending:
        """``x`` goes ``to`` a rank under a ``tag``: ``isend``."""
        return _started(x, lambda by: by.isend(_bytes(x), self._global(to), self.group, tag))

    def receive(self, out: Array, source: int, tag: int) -> Pending:
        """``out`` comes from ``source`` under a ``tag``: ``irecv``."""
        return _started(out, lambda by: by.irecv(_bytes(out), self._global(source), self.group, tag))

    def _global(self, rank: int) -> int:
        """A rank of the group among all processes."""
        return rank if self.group is None else _library().get_global_rank(self.group, rank)


def _started(array: Any, start: Callable[[Any], Any]) -> Pending:
    """The work that ``start`` gives for ``torch.distributed``, on the stream of an array."""
    with _stream_of(array):
        return _Work(start(_library()), array)


def _library() -> Any:
    try:
        import torch.distributed as library  # pyright: ignore[reportMissingImports]  # of an extra
    except ImportError as error:
        raise RuntimeFailure(f"torch.distributed needs torch: pip install torch ({error})") from error
    return library


def _reduction(op: str) -> Any:
    by = _library().ReduceOp
    return {"sum": by.SUM, "max": by.MAX, "min": by.MIN, "prod": by.PRODUCT}[op]


def _tensor(array: Any) -> Any:
    """The same memory as a tensor; numpy has bfloat16 from elsewhere, so that one goes by its bits."""
    import torch  # pyright: ignore[reportMissingImports]

    if array.dtype.name == "bfloat16":
        return torch.from_dlpack(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array) if isinstance(array, np.ndarray) else torch.from_dlpack(array)


def _bytes(array: Any) -> Any:
    """The same memory as a tensor of bytes: what is only moved needs no type."""
    return _tensor(array.reshape(-1).view(np.uint8))
