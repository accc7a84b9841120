"""Kernels that other processes compile are those that this one compiles; whatever becomes of them, none is lost."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kernel_examples import softmax
from operator_kernels import one

from kernelgen import made_elsewhere as module
from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.errors import UnsupportedError
from kernelgen.kernel import Kernel
from kernelgen.made_elsewhere import ElsewhereKernel, Made, Order, made_elsewhere, workers_for
from kernelgen.native import mapped
from kernelgen.native.records import code_of
from kernelgen.tensor.dims import sym

pytestmark = pytest.mark.skipif(not mapped.is_supported(), reason="machine code is given away on x86-64 Linux")

F = "float32"
PRODUCT = one("MatMul", [(F, (40, 70)), (F, (70, 50))], [(F, (40, 50))])
OPEN = one("Exp", [(F, (sym("batch"), sym("length")))], [(F, (sym("batch"), sym("length")))])
REFUSED = one("Exp", [(F, (2**40, 2**40))], [(F, (2**40, 2**40))])
CHILD = "tests.kernelgen.test_made_elsewhere"


def dies(request: bytes) -> bytes:
    raise SystemExit(3)


def made(*descs: KernelDesc, constants: tuple[int, ...] = ()) -> list[Made]:
    return made_elsewhere([Order(desc, constants) for desc in descs], 2, lambda _: None)


def children() -> set[str]:
    """The processes that this one started and that still run."""
    tasks = Path("/proc/self/task").glob("*/children")
    return {child for path in tasks for child in path.read_text().split()}


def test_kernels_are_the_same_and_say_the_same() -> None:
    descs = (softmax(), OPEN, PRODUCT)
    for desc, found in zip(descs, made(*descs), strict=True):
        here = compile(desc)
        assert isinstance(found, ElsewhereKernel)
        assert (found.source, found.proof) == (here.source, str(here.proof))
        for part in ("name", "arguments", "updated_inputs", "sizes"):
            assert getattr(found.signature, part) == getattr(here.signature, part)
        assert code_of(found) == code_of(here)
    drawn = np.random.default_rng(0).random((3, 5)).astype(np.float32)
    (kernel,) = made(OPEN)
    assert isinstance(kernel, ElsewhereKernel)
    np.testing.assert_allclose(kernel(drawn)[0], np.exp(drawn), rtol=1e-6)


def test_what_constants_decide_is_prepared_here() -> None:
    a, b = (np.random.default_rng(0).random(shape).astype(np.float32) for shape in ((40, 70), (70, 50)))
    (found,), here = made(PRODUCT, constants=(1,)), compile(PRODUCT, constants=(1,))
    assert isinstance(found, ElsewhereKernel)
    assert isinstance(here, Kernel)
    assert here.preparation is not None
    assert (found.prepares, found.taken) == (here.prepares, here.taken)
    for mine, theirs in zip(found.prepare(b), here.prepare(b), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(found(a, *found.prepare(b))[0], here(a, *here.prepare(b))[0])


def test_a_refusal_says_what_it_says_here() -> None:
    with pytest.raises(UnsupportedError) as error:
        compile(REFUSED)
    found, other = made(REFUSED, OPEN)
    assert isinstance(found, UnsupportedError)
    assert (found.code, str(found)) == (error.value.code, str(error.value))
    assert isinstance(other, ElsewhereKernel)


def test_what_text_does_not_hold_is_left_to_the_caller() -> None:
    hinted = replace(softmax(), buffer_stitch=(("sum",),))
    found, other = made(hinted, OPEN)
    assert found is None
    assert isinstance(other, ElsewhereKernel)


@pytest.mark.parametrize("child", [f"{CHILD}:dies", f"{CHILD}:there_is_none", "no.such.module:answer"])
def test_processes_that_die_leave_all_to_the_caller(child: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHILD", child)
    assert made(softmax(), OPEN, PRODUCT) == [None, None, None]


def test_where_no_process_starts_all_is_left_to_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python3")
    assert made(softmax(), OPEN) == [None, None]


def test_an_interrupt_ends_the_processes() -> None:
    before = children()

    def interrupted(_: int) -> None:
        assert children() - before
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made_elsewhere([Order(OPEN)] * 40, 2, interrupted)
    end = time.monotonic() + 60
    while children() - before and time.monotonic() < end:
        time.sleep(0.01)
    assert not children() - before


def test_processes_are_for_several_kernels_and_for_who_has_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "core_count", lambda: 16)
    assert [workers_for(count) for count in (4, 15, 16, 1000)] == [0, 0, 2, 16], "the compiler is here"
    monkeypatch.delitem(sys.modules, "islpy")
    assert [workers_for(count) for count in (1, 3, 4, 15, 24, 1000)] == [0, 0, 1, 1, 3, 16]
    for executable in ("", "/usr/bin/blender", "/opt/uwsgi"):
        monkeypatch.setattr(sys, "executable", executable)
        assert workers_for(1000) == 0


def test_a_preparation_may_have_threads_where_its_kernel_has_none() -> None:
    desc = one("MatMulInteger", [("uint8", (1, 256)), ("int8", (256, 128))], [("int32", (1, 128))])
    (kernel,) = made(desc, constants=(1,))
    assert isinstance(kernel, ElsewhereKernel)
    random = np.random.default_rng(0)
    x, w = (random.integers(0, 100, shape).astype(of) for shape, of in (((1, 256), "uint8"), ((256, 128), "int8")))
    (laid,) = kernel.prepare(w)
    assert np.array_equal(kernel(x, laid)[0], x.astype(np.int32) @ w.astype(np.int32))
