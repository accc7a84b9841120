"""torch.distributed over arrays of a device, with stand-ins for torch and cupy: all of it is on the stream of the caller.

NCCL itself has never run here; this shows what it would be asked for.
"""

import sys
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from graphkernel.communication.torch_distributed import TorchDistributed


class DeviceArray:
    """An array of a device: no numpy array, and numpy takes none of it."""

    def __init__(self, host: np.ndarray) -> None:
        self.host, self.dtype, self.shape = host, host.dtype, host.shape

    def reshape(self, *shape: Any) -> "DeviceArray":
        return DeviceArray(self.host.reshape(*shape))

    def view(self, dtype: Any) -> "DeviceArray":
        return DeviceArray(self.host.view(dtype))

    def __setitem__(self, key: Any, value: "DeviceArray") -> None:
        self.host[key] = value.host

    def __array__(self, *_: Any) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What torch was asked for and on which stream."""
    found: list[str] = []
    streams = [0]

    @contextmanager
    def stream(number: int) -> Any:
        streams.append(number)
        yield
        streams.pop()

    def asked(name: str) -> Any:
        def call(*operands: Any, **_: Any) -> Any:
            tensors = [one for one in operands if isinstance(one, DeviceArray)]
            assert tensors, "it is given the memory of the device"
            found.append(f"{name} on {streams[-1]}")
            return SimpleNamespace(wait=lambda: found.append(f"wait on {streams[-1]}"))

        return call

    names = (
        "all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "broadcast", "all_to_all_single", "isend", "irecv",
    )  # fmt: skip
    distributed = SimpleNamespace(
        is_initialized=lambda: True, get_rank=lambda _: 0, get_world_size=lambda _: 2,
        ReduceOp=SimpleNamespace(SUM="sum", MAX="max", MIN="min", PRODUCT="prod"),
        **{name: asked(name) for name in names},
    )  # fmt: skip
    cuda = SimpleNamespace(stream=stream, ExternalStream=lambda pointer: pointer)
    torch = SimpleNamespace(from_dlpack=lambda array: array, cuda=cuda, distributed=distributed, bfloat16="bfloat16")
    cupy = SimpleNamespace(cuda=SimpleNamespace(get_current_stream=lambda: SimpleNamespace(ptr=7)))
    for name, module in {"torch": torch, "torch.distributed": distributed, "cupy": cupy}.items():
        monkeypatch.setitem(sys.modules, name, module)
    return found


def test_all_is_asked_for_and_waited_for_on_the_callers_stream(log: list[str]) -> None:
    over = TorchDistributed()
    x: Any = DeviceArray(np.ones((4, 2), np.float32))
    out: Any = DeviceArray(np.zeros((4, 2), np.float32))
    pending = [
        over.all_reduce(x, out, "sum"), over.all_gather(x, out), over.reduce_scatter(x, out, "max"),
        over.broadcast(x, out, 0), over.all_to_all(x, out), over.send(x, 1, 3), over.receive(out, 1, 3),
    ]  # fmt: skip
    assert len(log) == len(pending)
    for each in pending:
        each.wait()
    assert all(line.endswith(" on 7") for line in log)
    assert log[len(pending) :] == ["wait on 7"] * len(pending)


def test_arrays_of_the_host_need_no_stream(log: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "cupy")
    monkeypatch.setattr(sys.modules["torch"], "from_numpy", DeviceArray, raising=False)
    TorchDistributed().all_reduce(np.ones(3, np.float32), np.zeros(3, np.float32), "sum").wait()
    assert log == ["all_reduce on 0", "wait on 0"]
