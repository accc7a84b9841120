from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import InputError
from graphkernel.runtime.inputs.arrays import to_numpy, wrapper_for


class Foreign:
    """An array of another library: only DLPack and the array-API namespace lead in and out."""

    def __init__(self, array: np.ndarray, device: int = 1) -> None:
        self.array = array
        self.device = device

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 0)

    def __array_namespace__(self) -> type[Foreign]:
        return Foreign

    @staticmethod
    def from_dlpack(array: np.ndarray) -> Foreign:
        return Foreign(array)


def double(x: Any) -> Any:
    return ops.mul(x, 2.0)


def test_what_comes_in_comes_out() -> None:
    exe = gk.compile(gk.trace(double, gk.spec(3)))
    (y,) = exe(Foreign(np.ones(3, np.float32)))
    assert isinstance(y, Foreign)
    assert (y.array == 2).all()
    (plain,) = exe(np.ones(3, np.float32))
    assert isinstance(plain, np.ndarray)


def test_no_copy_on_the_way_in() -> None:
    array = np.ones(3, np.float32)
    assert np.shares_memory(to_numpy(Foreign(array), "x"), array)
    assert wrapper_for([array]) is None


def test_buffers_and_lists_are_arrays() -> None:
    assert to_numpy([1.0, 2.0], "x").shape == (2,)
    assert to_numpy(memoryview(b"ab"), "x").tolist() == [97, 98]


@pytest.mark.parametrize(("given", "message"), [
    (Foreign(np.ones(3), device=2), "input x is on another device .* move it to the CPU"),
    (object(), "input x: object is no array"),
])  # fmt: skip
def test_what_is_no_cpu_array_is_named(given: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        to_numpy(given, "x")
