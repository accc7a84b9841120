"""Regions of onnxruntime between kernels are steps of one table of machine code, with the results and errors of others."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import graphkernel as gk
from graphkernel.errors import RuntimeFailure
from graphkernel.runtime.invocation import make_frame
from graphkernel.runtime.tables.native_run import WholeRun
from graphkernel.runtime.verify_table import broken, verify_frame
from kernelgen.native.table import Table, TableStep
from tests.support.forks import in_forked_child

KERNELS = """kernel E(a: f32[N, 4]) { t: f32[N, 4] = Exp(a)
  return t }
kernel S(a: f32[N, 4], b: f32[N, 4]) { t: f32[N, 4] = Add(a, b)
  return t }
"""
HYPERBOLIC = 'Onnx(p, op_type="Sinh", opset=17, result_types=("f32[N, 4]",))'
BETWEEN = (
    f"x: f32[N, 4]) {{ p: f32[N, 4] = E(x)\n q: f32[N, 4] = {HYPERBOLIC}\n r: f32[N, 4] = S(q, p)\n return r, q }}"
)
FOUND = """x: f32[N, 4]) { p: f32[N, 4] = E(x)
  i: i64[2, u0] = Onnx(p, op_type="NonZero", opset=17, result_types=("i64[2, u0]",), defines=("u0",))
  return p, i }"""
LOOKED_UP = """x: f32[N, 4], i: i64[1, 1]) { p: f32[N, 4] = E(x)
  q: f32[1, 4] = Onnx(p, i, op_type="GatherND", opset=17, result_types=("f32[1, 4]",))
  return q }"""


def compiled(body: str, rows: str = "6") -> gk.Executable:
    text = f"{KERNELS}graph f({body}".replace("[N,", f"[{rows},")
    return gk.compile(gk.parse(text), opt_level=0, host="onnxruntime")


def given(rows: int = 6) -> np.ndarray:
    return np.linspace(-1, 1, rows * 4, dtype=np.float32).reshape(rows, 4)


def whole_of(exe: gk.Executable) -> WholeRun:
    found = make_frame(exe.program, {}).whole
    assert found is not None
    return found


def is_right(exe: gk.Executable, x: np.ndarray) -> bool:
    p = np.exp(x)
    sums, hyperbolic = exe(x)
    return bool(np.allclose(hyperbolic, np.sinh(p), rtol=1e-5) and np.allclose(sums, np.sinh(p) + p, rtol=1e-5))


def test_the_extents_of_what_a_region_found_are_no_fallback() -> None:
    exe = compiled(FOUND.replace("return p, i", "s: i64[2] = Shape(i)\n  return s"))
    assert exe.report.fallbacks == ()
    np.testing.assert_array_equal(exe(given())[0], [2, 24])


def test_a_region_between_kernels_is_a_step_of_their_table() -> None:
    names = [step.name for step in whole_of(compiled(BETWEEN)).table.steps]
    assert [name.startswith("region") for name in names] == [False, True, False]


@pytest.mark.parametrize("rows", ["6", "N"])
def test_results_are_those_of_steps_one_by_one(rows: str) -> None:
    exe = compiled(BETWEEN, rows)
    for count in (6, 6, 6) if rows == "6" else (3, 6, 3, 1):
        x = given(count)
        assert is_right(exe, x)
        assert is_right(exe, np.asfortranarray(x))
        out = np.empty_like(x), np.empty_like(x)
        assert exe(x, out=out) == out
        np.testing.assert_array_equal(out, exe(x))


def test_results_of_calls_stay_apart() -> None:
    exe, x = compiled(BETWEEN), given()
    first = exe(x)
    before = [array.copy() for array in first]
    exe(x + 1)
    np.testing.assert_array_equal(first, before)


def test_an_array_that_was_freed_is_told_anew() -> None:
    exe = compiled(BETWEEN)
    for shift in range(50):
        assert is_right(exe, given() + np.float32(shift / 50))


def test_an_input_that_lies_in_out_is_copied() -> None:
    exe, x = compiled(BETWEEN), given()
    wanted = exe(x.copy())
    other = np.empty_like(x)
    np.testing.assert_array_equal(exe(x, out=(other, x)), wanted)


def test_threads_have_tables_of_their_own() -> None:
    exe = compiled(BETWEEN)
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(lambda shift: is_right(exe, given() + np.float32(shift / 64)), range(64)))


def test_a_forked_child_runs_a_session_of_its_own() -> None:
    exe = compiled(BETWEEN)
    assert is_right(exe, given())
    assert in_forked_child(lambda: is_right(exe, given())) == 0
    assert is_right(exe, given())


def test_a_package_runs_regions_in_its_table(tmp_path: Path) -> None:
    compiled(BETWEEN).save(tmp_path / "net.gkx")
    loaded = gk.load_compiled(tmp_path / "net.gkx")
    assert len(whole_of(loaded).table.steps) == 3
    assert is_right(loaded, given())


def test_what_the_library_allocates_is_a_result_of_its_own() -> None:
    exe = compiled(FOUND)
    assert whole_of(exe).allocated
    some = given()
    some[::2] = -np.inf  # whose exponential is 0
    (_, first), (_, second) = exe(some), exe(given())
    np.testing.assert_array_equal(first, np.array(np.nonzero(np.exp(some))))
    np.testing.assert_array_equal(second, np.array(np.nonzero(np.exp(given()))))
    out = np.empty_like(some), np.empty((2, 12), np.int64)
    assert exe(some, out=out)[1] is out[1]
    np.testing.assert_array_equal(out[1], first)


def test_a_session_that_fails_is_named_and_runs_again() -> None:
    exe = compiled(LOOKED_UP)
    for _ in range(3):
        np.testing.assert_allclose(exe(given(), np.array([[2]]))[0], np.exp(given()[2:3]), rtol=1e-6)
        with pytest.raises(RuntimeFailure, match=r"GatherND q fails: .*index"):
            exe(given(), np.array([[6]]))


def test_a_step_that_is_not_promised_to_fit_says_so() -> None:
    exe = compiled(FOUND.replace("i64[2, u0]", "i64[1, u0]"))
    with pytest.raises(RuntimeFailure, match=r"NonZero i fails: .*result 0 has the shape \(2, 24\)"):
        exe(given())


def faulty(table: Table) -> Iterator[Table]:
    """The session's step left out, in another place, and on other arrays."""
    kernel, session, last = table.steps

    def with_steps(*steps: TableStep) -> Table:
        return Table(table.given, steps, table.caller, table.releases_lock, table.keeps)

    yield with_steps(kernel, last)
    yield with_steps(session, kernel, last)
    yield with_steps(kernel, session._replace(arguments=session.arguments[::-1]), last)
    yield with_steps(kernel, session._replace(arguments=(session.arguments[0],) * 2), last)


def test_faults_of_tables_with_sessions_are_found() -> None:
    program = compiled(BETWEEN).program
    frame = make_frame(program, {})
    verify_frame(program, frame)
    whole = whole_of(compiled(BETWEEN))
    assert frame.whole is not None
    for table in faulty(frame.whole.table):
        changed = WholeRun(table, whole.makers, whole.watch, whole.sources, whole.is_parallel, whole.allocated)
        assert list(broken(program, frame._replace(whole=changed)))
