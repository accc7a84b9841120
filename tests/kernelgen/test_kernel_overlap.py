"""Arrays of one call that share memory: what is only read is copied first, two that are written are refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.errors import ArgumentError
from kernelgen.kernel import Kernel
from kernelgen.native import entry
from kernelgen.targets.cpu.runtime.entry import CpuEntry


def _scaled(rows: int, columns: int) -> KernelDesc:
    """Elementwise: each result needs the element in its own place."""
    w, x = Writer(), tensor("x", rows, columns)
    return w.desc("scaled", (x,), w.op("Mul", x, constant(3.0), shape=(rows, columns)))


def _centred(rows: int, columns: int) -> KernelDesc:
    """Every result needs its whole row."""
    w, x = Writer(), tensor("x", rows, columns)
    total = w.op("ReduceSum", x, shape=(rows, 1), axis=[1], keep_dims=True)
    return w.desc("centred", (x,), w.op("Sub", x, total, shape=(rows, columns)))


def _turned(rows: int, columns: int) -> KernelDesc:
    """Results lie elsewhere than what they are made of."""
    w, x = Writer(), tensor("x", rows, columns)
    return w.desc("turned", (x,), w.op("Transpose", x, shape=(columns, rows), perm=[1, 0]))


def _both(rows: int, columns: int) -> KernelDesc:
    """Two results."""
    w, x = Writer(), tensor("x", rows, columns)
    return w.desc("both", (x,), w.op("Neg", x, shape=(rows, columns)), w.op("Exp", x, shape=(rows, columns)))


MAKERS: tuple[Callable[[int, int], KernelDesc], ...] = (_scaled, _centred, _turned)


@pytest.fixture(params=["machine code", "ctypes"])
def _ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the layout of numpy's arrays is not known, ctypes calls kernels."""
    if request.param == "ctypes":
        monkeypatch.setattr(entry, "fast_function", lambda *_: None)


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("offset", [-7, 0, 5, 600])
def test_results_over_an_input_are_right(make: Callable[[int, int], KernelDesc], offset: int) -> None:
    kernel = kernelgen.compile(make(30, 20))
    memory = np.random.default_rng(0).random(3000, np.float32)
    x, result = memory[1000:1600].reshape(30, 20), memory[1000 + offset : 1600 + offset]
    out = result.reshape([int(str(dim)) for dim in kernel.desc.outputs[0].shape])
    (expected,) = kernelgen.reference(kernel.desc)(x.copy())
    assert kernel(x, out=(out,))[0] is out
    np.testing.assert_allclose(out, expected, rtol=1e-5)


@pytest.mark.usefixtures("_ways")
def test_two_results_in_one_place_are_refused() -> None:
    kernel = kernelgen.compile(_both(8, 16))
    x, memory = np.ones((8, 16), np.float32), np.zeros(300, np.float32)
    one, near, apart = (memory[k : k + 128].reshape(8, 16) for k in (0, 127, 128))
    for other in (one, near):
        with pytest.raises(ArgumentError, match="two arrays that both writes, of out= or updated in place, overlap"):
            kernel(x, out=(one, other))
        assert not memory.any()
    kernel(x, out=(one, apart))
    np.testing.assert_allclose(apart, np.exp(x), rtol=1e-6)


@pytest.mark.usefixtures("_ways")
def test_an_operand_that_shares_what_is_updated_is_read_before() -> None:
    """``state = x - sum(x)`` with one array for both: nothing of the new state is seen."""
    w, state, x = Writer(), tensor("state", 4, 50), tensor("x", 4, 50)
    total = w.op("ReduceSum", x, shape=(4, 1), axis=[1], keep_dims=True)
    y = w.op("Assign", state, w.op("Sub", x, total, shape=(4, 50)), shape=(4, 50))
    kernel = kernelgen.compile(w.desc("update", (state, x), y))
    given = np.random.default_rng(1).random((4, 50), np.float32)
    expected = given - given.sum(axis=1, keepdims=True)
    kernel(given, given)
    np.testing.assert_allclose(given, expected, rtol=1e-4)


def test_what_lies_side_by_side_goes_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = kernelgen.compile(_scaled(8, 16))
    memory = np.ones((3, 8, 16), np.float32)
    monkeypatch.setattr(Kernel, "_careful", lambda *_: pytest.fail("the slow way"))
    kernel(memory[1], out=(memory[0],))
    kernel(memory[1], out=(memory[2],))
    assert (memory == [[[3]], [[1]], [[3]]]).all()


def test_entries_say_that_arrays_overlap() -> None:
    kernel, x = kernelgen.compile(_scaled(8, 16)), np.ones((8, 16), np.float32)
    assert isinstance(kernel.entry, CpuEntry)
    with pytest.raises(ArgumentError, match="an array that is written overlaps another one"):
        kernel.entry.fast(x, x)
