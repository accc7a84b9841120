"""Kernels in a row run as one table of machine code, with the results and the errors of steps that run one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import graphkernel as gk
from graphkernel.errors import InputError
from graphkernel.runtime.executable import KEPT_SHAPES
from graphkernel.runtime.invocation import make_frame
from graphkernel.runtime.poison import POISONED
from graphkernel.runtime.tables.native_run import NativeRun
from kernelgen.tensor.bind import bind_all

KERNELS = """kernel E(a: f32[N, 4]) { t: f32[N, 4] = Exp(a)
  return t }
kernel K(a: f32[N, 4]) { t: f32[N, 4] = Neg(a)
  return t -> a }
kernel S(a: f32[N, 4], b: f32[N, 4]) { t: f32[N, 4] = Add(a, b)
  return t }
kernel R(a: f32[N, 4]) { t: f32[4] = ReduceSum(a, axis=(0,))
  return t }
"""
GRAPHS = {
    "one kernel": "p: f32[N, 4] = E(x)\n return p",
    "intermediates": "p: f32[N, 4] = E(x)\n q: f32[N, 4] = E(p)\n r: f32[N, 4] = S(q, x)\n return r",
    "views": "p: f32[N, 4] = E(x)\n v: f32[4, N] = Reshape(p, shape=(4, N))\n w: f32[N, 4] = Reshape(v, shape=(N, 4))\n"
    " q: f32[N, 4] = S(w, x)\n o: f32[4, N] = Reshape(q, shape=(4, N))\n return o, v",
    "written over": "p: f32[N, 4] = E(x)\n q: f32[N, 4] = K(p)\n r: f32[N, 4] = S(q, x)\n return r",
    "written over, read later": "p: f32[N, 4] = E(x)\n q: f32[N, 4] = K(p)\n r: f32[N, 4] = S(q, p)\n return r, q",
    "an input written over": "q: f32[N, 4] = K(x)\n r: f32[N, 4] = S(q, x)\n return r",
    "outputs twice": "p: f32[N, 4] = E(x)\n return p, p, x",
    "assigned": "p: f32[N, 4] = E(x)\n q: f32[N, 4] = S(p, y)\n return p, q -> y",
    "assigned, read": "p: f32[N, 4] = S(x, y)\n q: f32[N, 4] = S(p, x)\n return y, p -> x, q -> y",
    "assigned in place": "p: f32[N, 4] = K(x)\n q: f32[N, 4] = S(p, y)\n return q, p -> x",
    "sums": "p: f32[4] = R(x)\n q: f32[4] = R(y)\n return q, p",
    "constants": "p: f32[N, 4] = E(x)\n q: f32[4] = R(p)\n return q, c",
}
MIXED = {
    "a library between": "p: f32[N, 4] = E(x)\n q: f32[N, 4] = Sinh(p)\n r: f32[N, 4] = S(q, p)\n return r, q",
    "a view of a library's": "q: f32[N, 4] = Sinh(x)\n v: f32[4, N] = Reshape(q, shape=(4, N))\n"
    " w: f32[N, 4] = Reshape(v, shape=(N, 4))\n r: f32[N, 4] = E(w)\n s: f32[N, 4] = Sinh(r)\n return s, v",
    "views in a row between libraries": "q: f32[N, 4] = Sinh(x)\n v: f32[4, N] = Reshape(q, shape=(4, N))\n"
    " w: f32[N, 4] = Reshape(v, shape=(N, 4))\n s: f32[N, 4] = Sinh(w)\n p: f32[N, 4] = E(s)\n return p, s",
    "a view that no kernel takes": "q: f32[N, 4] = Sinh(x)\n v: f32[4, N] = Reshape(q, shape=(4, N))\n p: f32[N, 4] = E(x)\n"
    " return p, v",
    "a library first, then written over": "q: f32[N, 4] = Sinh(x)\n r: f32[N, 4] = K(q)\n s: f32[N, 4] = S(r, q)\n"
    " t: f32[N, 4] = Sinh(r)\n return s, t",
    "assigned after a library": "p: f32[N, 4] = E(x)\n q: f32[N, 4] = Sinh(p)\n r: f32[N, 4] = S(q, y)\n return r, r -> y",
}
ROWS = 6


def graph(statements: str, rows: str) -> gk.Graph:
    constant = f"const c: f32[4] = {[0.5] * 4}\n" if " c" in statements else ""
    text = f"{KERNELS}graph f(x: f32[N, 4], y: f32[N, 4]) {{\n{constant} {statements}\n}}\n"
    return gk.parse(re.sub(r"\bN\b", rows, text))


def compiled(statements: str, rows: str = str(ROWS)) -> gk.Executable:
    return gk.compile(graph(statements, rows), opt_level=0, host="numpy")


def arrays(rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    x = np.linspace(-1, 1, rows * 4, dtype=np.float32).reshape(rows, 4)
    return x, (x * x).copy()


def assert_agree(exe: gk.Executable, given: Sequence[np.ndarray]) -> None:
    """Results, and what inputs are afterwards, are those of the graph's meaning."""
    wanted_inputs = [np.array(array) for array in given]
    wanted = gk.evaluate(exe.graph, wanted_inputs)
    for got, want in zip(exe(*given), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    for position, output in exe.program.aliases:
        np.testing.assert_allclose(given[position], wanted[output], rtol=1e-5, atol=1e-6)
    assigned = {position for position, _ in exe.program.aliases}
    for position in {0, 1} - assigned:
        np.testing.assert_array_equal(given[position], wanted_inputs[position])


@pytest.mark.parametrize("rows", [str(ROWS), "N"])
@pytest.mark.parametrize("statements", GRAPHS.values(), ids=GRAPHS)
def test_a_graph_of_kernels_is_one_table(statements: str, rows: str) -> None:
    exe = compiled(statements, rows)
    for number in (ROWS, *((3, 0, ROWS, *range(1, KEPT_SHAPES + 3), ROWS) if rows == "N" else ())):
        for _ in range(3):
            assert_agree(exe, arrays(number))
    frame = make_frame(exe.program, bind_all(exe.program.kinds, exe.program.derived, arrays()))
    assert frame.whole is not None
    assert frame.whole.table.fast is not None


@pytest.mark.parametrize("rows", [str(ROWS), "N"])
@pytest.mark.parametrize("statements", MIXED.values(), ids=MIXED)
def test_kernels_beside_other_steps_are_tables(statements: str, rows: str) -> None:
    exe = compiled(statements, rows)
    for _ in range(3):
        assert_agree(exe, arrays())
    frame = make_frame(exe.program, bind_all(exe.program.kinds, exe.program.derived, arrays()))
    assert frame.whole is None
    assert any(isinstance(action, NativeRun) for action in frame.actions)


@pytest.mark.parametrize("statements", [*GRAPHS.values(), *MIXED.values()], ids=[*GRAPHS, *MIXED])
def test_arrays_that_lie_otherwise_are_taken_too(statements: str) -> None:
    exe = compiled(statements)
    x, y = arrays()
    wide = np.repeat(x, 2, axis=1)[:, ::2]
    bytes_of = np.zeros(y.nbytes + 1, np.uint8)
    odd = bytes_of[1:].view(np.float32).reshape(y.shape)
    odd[...] = y
    for given in ((wide, y), (x.T.copy().T, y), (x, odd), (x, x) if not exe.program.aliases else (x, y)):
        assert_agree(exe, given)


@pytest.mark.parametrize("statements", [*GRAPHS.values(), *MIXED.values()], ids=[*GRAPHS, *MIXED])
def test_results_go_into_given_arrays(statements: str) -> None:
    exe = compiled(statements)
    wanted = exe(*arrays())
    for out in (
        tuple(np.empty_like(w) for w in wanted),
        tuple(np.empty((*w.shape, 2), w.dtype)[..., 0] for w in wanted),
    ):
        for _ in range(2):
            assert all(got is given for got, given in zip(exe(*arrays(), out=out), out, strict=True))
            for got, want in zip(out, wanted, strict=True):
                np.testing.assert_array_equal(got, want)


def test_results_may_lie_in_inputs() -> None:
    exe = compiled(GRAPHS["intermediates"])
    x, y = arrays()
    (wanted,) = exe(x, y)
    exe(x, y, out=(x,))
    np.testing.assert_array_equal(x, wanted)


def test_wrong_arrays_are_named_also_behind_right_ones() -> None:
    exe = compiled(GRAPHS["intermediates"])
    x, y = arrays()
    exe(x, y)
    for given in ((x,), (x, y, x), ([], y), (x[:3], y), (x.astype(np.float64), y), (x, y[0])):
        with pytest.raises(InputError):
            exe(*given)
    with pytest.raises(InputError, match="out= holds 2"):
        exe(x, y, out=(x.copy(), x.copy()))
    with pytest.raises(InputError, match="takes 2 inputs"):
        exe(x, y, x.copy(), out=())
    with pytest.raises(InputError):
        exe(x, y, out=(x.astype(np.float64),))
    assert_agree(exe, (x, y))


def test_an_assigned_input_must_be_writeable_also_behind_one_that_is() -> None:
    exe = compiled(GRAPHS["assigned"])
    exe(*arrays())
    x, y = arrays()
    y.setflags(write=False)
    with pytest.raises(InputError, match="y is assigned to"):
        exe(x, y)


def test_results_stay_what_they_are() -> None:
    """Neither a later call nor a caller who writes into results changes other results."""
    exe = compiled(GRAPHS["views"])
    x, y = arrays()
    first = exe(x, y)
    kept = [array.copy() for array in first]
    exe(x + 1, y)
    for array, copy in zip(first, kept, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_threads_run_one_executable_at_a_time_each() -> None:
    exe = compiled(GRAPHS["written over, read later"], "N")
    inputs = [tuple(a + shift for a in arrays(64 + shift % 2)) for shift in range(8)]
    wanted = [exe(*given) for given in inputs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            for got, want in zip(pool.map(lambda given: exe(*given), inputs), wanted, strict=True):
                np.testing.assert_array_equal(got[0], want[0])
                np.testing.assert_array_equal(got[1], want[1])


@pytest.mark.parametrize("statements", [*GRAPHS.values(), *MIXED.values()], ids=[*GRAPHS, *MIXED])
def test_poisoned_steps_run_one_by_one_with_the_same_results(statements: str) -> None:
    exe = compiled(statements)
    assert_agree(gk.Executable(exe.plan, exe.report, POISONED), arrays())
