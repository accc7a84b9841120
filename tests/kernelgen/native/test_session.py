"""A session's step by a library whose functions are Python's: what is made anew, let go of, and left out behind a failure."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from kernelgen.native.library import function_address
from kernelgen.native.session import Functions, SessionRecord, Tensor, bytes_of
from kernelgen.native.table import Given, Table
from kernelgen.targets.cpu.runtime.wrapper_ir import caller

_W = ctypes.c_int64
SESSION, MEMORY, STATUS = 77, 88, 99


class FakeLibrary:
    """Its tensors are numbers; a run doubles the first array into the second; ``says`` is the status of each run."""

    def __init__(self) -> None:
        self.made: list[int] = []
        self.released: list[int] = []
        self.runs = self.says = 0
        create = ctypes.CFUNCTYPE(_W, _W, _W, _W, ctypes.POINTER(_W), _W, ctypes.c_int32, ctypes.POINTER(_W))(
            self._create
        )
        run = ctypes.CFUNCTYPE(_W, _W, _W, _W, ctypes.POINTER(_W), _W, _W, _W, ctypes.POINTER(_W))(self._run)
        release = ctypes.CFUNCTYPE(None, _W)(self.released.append)
        self._keeps = create, run, release
        made, ran, let_go = (function_address(function) for function in self._keeps)
        self.functions = Functions(made, ran, let_go, MEMORY, 0, 0, 0, 0, 0, 0)

    def _create(self, memory: int, address: int, size: int, extents: Any, rank: int, element: int, out: Any) -> int:
        assert (memory, size, list(extents[:rank]), element) == (MEMORY, 16, [4], 1)
        self.made.append(address)
        out[0] = len(self.made)
        return 0

    def _run(self, session: int, _: int, __: int, given: Any, count: int, ___: int, ____: int, results: Any) -> int:
        assert (session, count) == (SESSION, 1)
        self.runs += 1
        source, target = (
            np.ctypeslib.as_array((ctypes.c_float * 4).from_address(self.made[tensor - 1]))
            for tensor in (given[0], results[0])
        )
        target[:] = 2 * source
        return self.says


def table(library: FakeLibrary, status: np.ndarray) -> tuple[Table, SessionRecord]:
    tensors = [[Tensor(name, 1, 16, (4,))] for name in "xy"]
    record = SessionRecord(library.functions, SESSION, *tensors)
    step = record.step("s", caller(), (Given(0), Given(1)), status.ctypes.data, 5)
    return Table((), (step, step), caller(), False, (record,)), record


def test_tensors_are_made_when_arrays_lie_elsewhere() -> None:
    library, status = FakeLibrary(), np.zeros(2, np.int64)
    twice, record = table(library, status)
    x, y, z = (np.arange(4, dtype=np.float32) for _ in range(3))
    twice.run_unchecked([x, y])
    np.testing.assert_array_equal(y, 2 * x)
    assert (library.made, library.released, library.runs) == ([x.ctypes.data, y.ctypes.data], [], 2)
    twice.run_unchecked([x, z])
    np.testing.assert_array_equal(z, 2 * x)
    assert (library.made[2:], library.released) == ([z.ctypes.data], [2])
    record.forget()
    assert library.released == [2, 1, 3]
    twice.run_unchecked([x, z])
    assert library.made[3:] == [x.ctypes.data, z.ctypes.data]


def test_nothing_runs_behind_a_failure() -> None:
    library, status = FakeLibrary(), np.zeros(2, np.int64)
    twice, _ = table(library, status)
    library.says = STATUS
    x = np.zeros(4, np.float32)
    twice.run_unchecked([x, x.copy()])
    assert (library.runs, list(status)) == (1, [STATUS, 5])


def test_a_record_says_how_long_arrays_are() -> None:
    _, record = table(FakeLibrary(), np.zeros(2, np.int64))
    assert bytes_of(record.content.ctypes.data) == (16, 16)


def test_another_session_runs_from_now_on() -> None:
    _, record = table(FakeLibrary(), np.zeros(2, np.int64))
    record.run_in(SESSION + 1)
    assert SESSION + 1 in record.content
    assert SESSION not in record.content
