from __future__ import annotations

import sys
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.errors import InputError
from graphkernel.runtime.executable import KEPT_SHAPES

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def chain(x: Any) -> Any:
    """Two kernels with a product between them."""
    square = ops.matmul(ops.add(x, 1.0), ops.transpose(ops.mul(x, 0.1)))
    return ops.exp(ops.neg(ops.abs(square)))


def compiled(function: Any, *specs: Any, level: int = 2) -> gk.Executable:
    return gk.compile(gk.trace(function, *specs), opt_level=level)


def test_kernels_and_regions_alternate() -> None:
    graph = gk.trace(chain, gk.spec(("N", 4)))
    exe = gk.compile(graph, opt_level=2)
    for rows in (3, 1, 5, 3):
        x = np.linspace(-1, 1, rows * 4, dtype=np.float32).reshape(rows, 4)
        np.testing.assert_allclose(exe(x)[0], gk.evaluate(graph, [x])[0], rtol=1e-5)
    assert exe.report.kernel_calls >= 2


def test_outputs_of_two_calls_are_apart() -> None:
    exe = compiled(lambda x: ops.mul(x, 2.0), gk.spec((3, 4)))
    (first,) = exe(X)
    (second,) = exe(X + 1)
    assert (first == X * 2).all()
    assert not np.shares_memory(first, second)


@pytest.mark.parametrize("level", [0, 2])
def test_an_output_is_never_an_input_a_constant_or_another_output(level: int) -> None:
    table = np.arange(20, dtype=np.float32)

    def net(x: Any) -> Any:
        doubled = ops.mul(x, 2.0)
        return x, ops.reshape(x, (4, 3)), table, doubled, doubled, ops.reshape(doubled, (12,))

    exe = compiled(net, gk.spec((3, 4)), level=level)
    x = X.copy()
    results = exe(x)
    for position, result in enumerate(results):
        assert not any(np.shares_memory(result, other) for other in (x, *results[:position]))
        result[...] = -1  # writable, and nobody else's
    assert (x == X).all()
    assert (exe(x)[2] == table).all()
    assert (exe(x)[5] == X.reshape(12) * 2).all()


def test_out_is_written_in_place() -> None:
    exe = compiled(lambda x: (ops.mul(x, 2.0), x), gk.spec((3, 4)))
    buffers = (np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32))
    results = exe(X, out=buffers)
    assert all(result is buffer for result, buffer in zip(results, buffers, strict=True))
    assert (buffers[0] == X * 2).all()
    assert (buffers[1] == X).all()


def test_out_may_be_an_input_or_strided() -> None:
    exe = compiled(lambda x: ops.add(x, ops.reduce_sum(x)), gk.spec((3, 4)))
    x, strided = X.copy(), np.zeros((4, 3), np.float32).T
    exe(x, out=(x,))
    assert (x == X + X.sum()).all()
    exe(X, out=(strided,))
    assert (strided == X + X.sum()).all()


@pytest.mark.parametrize(("call", "message"), [
    (lambda exe: exe(), r"the graph takes 1 inputs \(x: f32\[3, 4\]\), got 0"),
    (lambda exe: exe(X.astype(np.float64)), "input x is float32, got an array of float64"),
    (lambda exe: exe(X.astype(X.dtype.newbyteorder())), "input x is float32, got an array of >f4"),
    (lambda exe: exe(X[:2]), r"input x is f32\[3, 4\], got shape \(2, 4\)"),
    (lambda exe: exe(X, out=()), "the graph has 1 outputs, out= holds 0"),
    (lambda exe: exe(X, out=np.empty_like(X)), r"out= takes a tuple of arrays"),
    (lambda exe: exe(X, out=(np.broadcast_to(X[0], (3, 4)),)), r"got float32\[3, 4\], not writeable"),
    (lambda exe: exe(X, out=(X[0],)), r"out\[0\] must be a writeable array float32\[3, 4\], got float32\[4\]"),
])  # fmt: skip
def test_misfits_are_named(call: Any, message: str) -> None:
    exe = compiled(lambda x: ops.mul(x, 2.0), gk.spec((3, 4)))
    with pytest.raises(InputError, match=message):
        call(exe)
    assert (exe(X)[0] == X * 2).all()


@pytest.mark.parametrize("level", [0, 1, 2])
def test_assignment_reaches_the_caller_after_all_readers(level: int) -> None:
    def step(weight: Any, gradient: Any) -> Any:
        updated = ops.assign(weight, ops.sub(weight, ops.mul(gradient, 0.5)))
        return ops.add(updated, 1.0), ops.exp(weight)

    weight, gradient = np.ones((3, 4), np.float32), np.full((3, 4), 2, np.float32)
    results = compiled(step, gk.spec((3, 4)), gk.spec((3, 4)), level=level)(weight, gradient)
    assert (weight == 0).all()
    assert (results[0] == 1).all()
    np.testing.assert_allclose(results[1], np.full((3, 4), np.e), rtol=1e-6)  # the content before


def test_an_input_that_is_assigned_to_must_be_writeable() -> None:
    exe = compiled(lambda weight: ops.assign(weight, ops.mul(weight, 2.0)), gk.spec((3, 4)))
    fixed = X.copy()
    fixed.setflags(write=False)
    with pytest.raises(InputError, match="input weight is assigned to by the graph, but its array is not writeable"):
        exe(fixed)
    assert (fixed == X).all()


def test_threads_do_not_share_buffers() -> None:
    graph = gk.trace(chain, gk.spec((3, 4)))
    exe = gk.compile(graph, opt_level=2)
    inputs = [X * scale for scale in np.linspace(0.1, 1, 24, dtype=np.float32)]
    expected = [exe(x)[0] for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        for got, wanted in zip(pool.map(lambda x: exe(x)[0], inputs), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_buffers_of_few_shapes_are_kept() -> None:
    exe = compiled(chain, gk.spec(("N", 4)))
    for rows in range(1, KEPT_SHAPES + 4):
        exe(np.ones((rows, 4), np.float32))
    assert len(exe._frames) == KEPT_SHAPES


def test_tensors_without_elements_run() -> None:
    exe = compiled(chain, gk.spec(("N", 4)), level=0)
    assert exe(np.zeros((0, 4), np.float32))[0].shape == (0, 0)


def test_unknown_constants_are_named() -> None:
    def net(x: Any) -> Any:
        return ops.add(x, np.arange(20, dtype=np.float32))

    text = str(gk.trace(net, gk.spec(20)))
    with pytest.raises(InputError, match=r"the content of constant .* is unknown"):
        gk.compile(gk.parse(text))(np.ones(20, np.float32))


def test_threads_with_more_shapes_than_are_kept_never_meet() -> None:
    """They take frames, give them back and drop old ones all at once, switching as often as Python can."""
    executable = gk.compile(gk.trace(lambda x: ops.sinh(x) + 1.0, gk.spec(("N",))), 0, host="numpy")
    arrays = [np.full(size, size / 8, np.float32) for size in range(1, KEPT_SHAPES + 3)]
    expected = [np.sinh(array) + 1 for array in arrays]

    def calls(start: int) -> bool:
        places = [(start * 7 + turn) % len(arrays) for turn in range(400)]
        return all(np.allclose(executable(arrays[place])[0], expected[place]) for place in places)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(calls, range(8)))
    finally:
        sys.setswitchinterval(before)


class Contended(OrderedDict[Any, Any]):
    """Frames that another thread takes, or whose shapes it drops, in the moment before they are taken."""

    def move_to_end(self, key: Any, last: bool = True) -> None:
        super().move_to_end(key, last)
        if len(self[key]) > 1:
            del self[key]
        else:
            self[key].clear()


@pytest.mark.parametrize("free", [1, 2])
def test_a_frame_that_is_gone_when_it_is_taken_is_made_anew(free: int) -> None:
    executable = gk.compile(gk.trace(lambda x: ops.sinh(x) + 1.0, gk.spec(("N",))), 0, host="numpy")
    executable(X[0])
    (key,) = executable._frames
    executable._frames = Contended({key: executable._frames[key] * free})
    np.testing.assert_allclose(executable(X[0])[0], np.sinh(X[0]) + 1, rtol=1e-6)
