"""MPI through mpi4py: ``mpiexec -n 4 python program.py``, where the program makes an :class:`Mpi`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from graphkernel.communication.communicator import Array, Pending
from graphkernel.errors import RuntimeFailure

SECONDS = 1800.0
"""As long as torch.distributed waits."""


class _Request(NamedTuple):
    """A request of MPI with the arrays that it reads and writes, the bytes that it must give if it receives, how long it
    may take, and what is left to do behind it."""

    request: Any
    arrays: tuple[Array, ...]
    seconds: float
    wanted: int | None = None
    finish: Callable[[], None] | None = None

    def wait(self) -> None:
        """Waits for the request. Raises TimeoutError, and ValueError for a message of another size."""
        mpi = _library()
        status, end = mpi.Status(), time.monotonic() + self.seconds
        while not self.request.Test(status):
            if time.monotonic() > end:
                raise TimeoutError(f"rank {mpi.COMM_WORLD.Get_rank()} waited {self.seconds:g} s for the other ranks")
        if self.wanted is not None and status.Get_count(mpi.BYTE) != self.wanted:
            raise ValueError(f"{status.Get_count(mpi.BYTE)} bytes came, {self.wanted} are needed")
        if self.finish is not None:
            self.finish()


@dataclass(frozen=True, init=False)
class Mpi:
    """A communicator of mpi4py, by default that of all processes. float16 and bfloat16 are added up in float32.

    A rank waits ``seconds`` at most for the others. Raises RuntimeFailure where mpi4py is not installed.
    """

    comm: Any
    seconds: float

    def __init__(self, comm: object = None, seconds: float = SECONDS) -> None:
        object.__setattr__(self, "comm", _library().COMM_WORLD if comm is None else comm)
        object.__setattr__(self, "seconds", seconds)

    @property
    def rank(self) -> int:
        """The number of this process, from 0."""
        return self.comm.Get_rank()

    @property
    def size(self) -> int:
        """How many processes there are."""
        return self.comm.Get_size()

    def all_reduce(self, x: Array, out: Array, op: str) -> Pending:
        """``out`` is the ``op`` of all ``x``: ``MPI_Iallreduce``."""
        return self._reduced(self.comm.Iallreduce, x, out, op)

    def all_gather(self, x: Array, out: Array) -> Pending:
        """``out`` is all ``x`` along axis 0: ``MPI_Iallgather``."""
        return _Request(self.comm.Iallgather(_bytes(x), _bytes(out)), (x, out), self.seconds)

    def reduce_scatter(self, x: Array, out: Array, op: str) -> Pending:
        """``out`` is this rank's part of the ``op`` of all ``x``: ``MPI_Ireduce_scatter_block``."""
        return self._reduced(self.comm.Ireduce_scatter_block, x, out, op)

    def broadcast(self, x: Array, out: Array, root: int) -> Pending:
        """``out`` is the ``x`` of ``root``: ``MPI_Ibcast``."""
        if self.rank == root:
            np.copyto(out, x)
        return _Request(self.comm.Ibcast(_bytes(out), root=root), (out,), self.seconds)

    def all_to_all(self, x: Array, out: Array) -> Pending:
        """``out`` is this rank's part of all ``x``: ``MPI_Ialltoall``."""
        return _Request(self.comm.Ialltoall(_bytes(x), _bytes(out)), (x, out), self.seconds)

    def send(self, x: Array, to: int, tag: int) -> Pending:
        """``x`` goes ``to`` a rank under a ``tag``: ``MPI_Isend``."""
        return _Request(self.comm.Isend(_bytes(x), dest=to, tag=tag), (x,), self.seconds)

    def receive(self, out: Array, source: int, tag: int) -> Pending:
        """``out`` comes from ``source`` under a ``tag``: ``MPI_Irecv``."""
        return _Request(self.comm.Irecv(_bytes(out), source=source, tag=tag), (out,), self.seconds, out.nbytes)

    def _reduced(self, start: Callable[..., Any], x: Array, out: Array, op: str) -> Pending:
        """A reduction; MPI knows no floats of 16 bits."""
        mpi = _library()
        by = {"sum": mpi.SUM, "max": mpi.MAX, "min": mpi.MIN, "prod": mpi.PROD}[op]
        if x.dtype.itemsize > 2 or x.dtype.kind in "iu":
            return _Request(start(x, out, op=by), (x, out), self.seconds)
        wide, result = x.astype(np.float32), np.empty(out.shape, np.float32)
        request = start(wide, result, op=by)
        return _Request(request, (wide, result), self.seconds, None, lambda: np.copyto(out, result.astype(out.dtype)))


def _library() -> Any:
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise RuntimeFailure(
            f"MPI needs mpi4py and an MPI library: pip install 'graphkernel[dist]' ({error})"
        ) from error
    return MPI


def _bytes(array: Array) -> Array:
    """The memory of an array: what is only moved needs no type."""
    return array.reshape(-1).view(np.uint8)
