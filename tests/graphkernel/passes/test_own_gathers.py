"""Gathers are kernels on a CPU: negative indices count from the end, and one out of range is an error of the reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import graphkernel
from graphkernel import ops
from graphkernel.errors import RuntimeFailure
from graphkernel.ops import Tensor
from graphkernel.runtime.executable import Executable
from graphkernel.runtime.plan.verify_plan import verify_plan
from graphkernel.runtime.verify_table import verify_tables

TABLE = np.arange(35, dtype=np.float32).reshape(7, 5)


def _added(table: Tensor, indices: Tensor, bias: Tensor) -> Tensor:
    return ops.gather(table, indices) + bias


def _twice(table: Tensor, indices: Tensor, bias: Tensor) -> Tensor:
    """The second gather reads what the first found, on another axis."""
    found = ops.gather(table, indices) + bias
    return ops.gather(found, indices, 1)


@pytest.fixture(params=[np.int32, np.int64])
def indices(request: pytest.FixtureRequest) -> np.ndarray:
    return np.asarray([3, -1, 0, -5, 2], request.param)


def _compiled(indices: np.ndarray, of: Callable[..., Tensor] = _added) -> Executable:
    exe = graphkernel.compile(graphkernel.trace(of, TABLE, indices, np.zeros(5, np.float32)))
    verify_plan(exe.plan)
    verify_tables(exe.program)
    return exe


def test_a_gather_joins_the_kernel_that_reads_it(indices: np.ndarray) -> None:
    exe, bias = _compiled(indices), np.arange(5, dtype=np.float32)
    assert (exe.report.kernel_calls, exe.report.host) == (1, ())
    for _ in range(2):
        np.testing.assert_array_equal(exe(TABLE, indices, bias)[0], TABLE[indices] + bias)


def test_an_index_out_of_range_is_an_error_of_the_one_who_reads(indices: np.ndarray) -> None:
    exe, bias = _compiled(indices), np.zeros(5, np.float32)
    good = TABLE[indices]
    for wrong in (7, -8):
        given = indices.copy()
        given[[2, 4]] = wrong
        for _ in range(2):
            with pytest.raises(RuntimeFailure, match=rf"^Gather \S+ fails: .*idx={wrong} .*\[-7,6\]"):
                exe(TABLE, given, bias)
        np.testing.assert_array_equal(exe(TABLE, indices, bias)[0], good)


def test_each_axis_has_its_own_range(indices: np.ndarray) -> None:
    exe, bias = _compiled(indices, _twice), np.ones(5, np.float32)
    np.testing.assert_array_equal(exe(TABLE, indices, bias)[0], (TABLE[indices] + bias)[:, indices])
    with pytest.raises(RuntimeFailure, match=r"idx=6 .*\[-5,4\]"):
        exe(TABLE, np.full_like(indices, 6), bias)


def _known(table: Tensor) -> tuple[Tensor, ...]:
    places = (np.int64(3), np.asarray([-1]), np.arange(1, 7, 2), np.arange(4).reshape(2, 2))
    return tuple(ops.gather(table * 2.0, place) for place in places)


def test_known_places_in_a_row_are_slices() -> None:
    exe = graphkernel.compile(graphkernel.trace(_known, TABLE))
    assert exe.report.host == ()
    twice = TABLE * 2
    for found, expected in zip(
        exe(TABLE), (twice[3], twice[[-1]], twice[1:7:2], twice[:4].reshape(2, 2, 5)), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_a_package_looks_at_indices_too(indices: np.ndarray, tmp_path: Path) -> None:
    bias = np.ones(5, np.float32)
    _compiled(indices).save(tmp_path / "m.gkx")
    exe = graphkernel.load_compiled(tmp_path / "m.gkx")
    np.testing.assert_array_equal(exe(TABLE, indices, bias)[0], TABLE[indices] + bias)
    with pytest.raises(RuntimeFailure, match="Gather"):
        exe(TABLE, indices + 100, bias)


def test_a_flag_leaves_gathers_to_the_library(indices: np.ndarray) -> None:
    graph = graphkernel.trace(_added, TABLE, indices, np.zeros(5, np.float32))
    exe = graphkernel.compile(graph, flags="--disable_cluster_ops=Gather")
    assert [entry.operators for entry in exe.report.host] == [("Gather",)]
