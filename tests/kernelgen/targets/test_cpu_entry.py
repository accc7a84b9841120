"""Calling kernels: argument checks of the machine-code wrapper and of its Python twin, symbols, threads, the object cache."""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from kernelgen.errors import ArgumentError, CodegenError
from kernelgen.native import entry as native_entry
from kernelgen.nest.nodes import Literal, Load, LoopKind, Nest, Store
from kernelgen.targets.cpu import TARGET
from kernelgen.targets.cpu.runtime import entry, objects
from kernelgen.targets.cpu.runtime import llvm as module
from kernelgen.tensor.dims import Sym, sym
from kernelgen.tensor.dtypes import FLOAT32
from tests.support.nests import I, J, block, buffer, call, loop, map_nest, output

STATIC = map_nest(lambda a, b: call("add", a, b), 6, FLOAT32, FLOAT32)
SYMBOLIC = map_nest(lambda a, b: call("add", a, b), sym("N"), FLOAT32, FLOAT32, symbols=("N",))


def loaded(nest: Nest) -> entry.CpuEntry:
    found = TARGET.load(TARGET.emit(nest), nest)
    assert isinstance(found, entry.CpuEntry)
    return found


def callables(nest: Nest) -> list:
    """The wrapper in machine code and its twin in Python."""
    kernel = loaded(nest)
    assert type(kernel.fast).__name__ == "builtin_function_or_method"
    return [kernel.fast, partial(native_entry._checked_call, kernel)]


def arrays(*sizes: int) -> list[np.ndarray]:
    return [np.arange(size, dtype=np.float32) for size in sizes]


@pytest.mark.parametrize("number", [0, 1])
def test_good_arguments_run(number: int) -> None:
    x, y, z = arrays(6, 6, 6)
    assert callables(STATIC)[number](x, y, z) is None
    np.testing.assert_array_equal(z, x + y)


@pytest.mark.parametrize("number", [0, 1])
def test_arrays_of_another_process_run(number: int) -> None:
    """Pickled ones have dtype objects of their own."""
    x, y, z = pickle.loads(pickle.dumps(arrays(6, 6, 6)))
    assert x.dtype is not np.dtype(np.float32)
    assert callables(STATIC)[number](x, y, z) is None
    np.testing.assert_array_equal(z, x + y)


BAD = {
    "rank": np.zeros((6, 1), np.float32),
    "extent": np.zeros(7, np.float32),
    "dtype": np.zeros(6, np.float64),
    "dtype of as many bytes": np.zeros(6, np.int32),
    "byte order": np.zeros(6, ">f4"),
    "strides": np.zeros(12, np.float32)[::2],
    "no array": [0.0] * 6,
    "subclass": np.zeros(6, np.float32).view(np.recarray),
}


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("fault", [f for f in BAD if f != "subclass"])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_bad_arguments_are_named(number: int, fault: str, position: int) -> None:
    given: list = arrays(6, 6, 6)
    given[position] = BAD[fault]
    name = STATIC.buffers[position].name
    with pytest.raises(ArgumentError, match=rf"{name}: expected .*float32 array of shape \[6\]"):
        callables(STATIC)[number](*given)


@pytest.mark.parametrize("number", [0, 1])
def test_outputs_must_be_writeable(number: int) -> None:
    x, y, z = arrays(6, 6, 6)
    z.flags.writeable = x.flags.writeable = False
    with pytest.raises(ArgumentError, match="y: expected a writeable"):
        callables(STATIC)[number](x, y, z)


@pytest.mark.parametrize("number", [0, 1])
def test_the_count_is_checked(number: int) -> None:
    with pytest.raises(ArgumentError, match="expected 3 arrays: x0, x1, y"):
        callables(STATIC)[number](*arrays(6, 6))


@pytest.mark.parametrize("number", [0, 1])
def test_symbols_come_from_shapes(number: int) -> None:
    function = callables(SYMBOLIC)[number]
    for size in (1, 5, 64, 100):
        x, y, z = arrays(size, size, size)
        function(x, y, z)
        np.testing.assert_array_equal(z, x + y)
    with pytest.raises(ArgumentError, match="x1: expected"):
        function(*arrays(5, 6, 5))


def test_linear_extents_bind_their_symbol() -> None:
    n = sym("N")
    twice = n * 2 + 1
    assert isinstance(twice, Sym)
    nest = map_nest(lambda a: call("neg", a), twice, FLOAT32, symbols=("N",))
    x, y = arrays(9, 9)
    loaded(nest).fast(x, y)
    np.testing.assert_array_equal(y, -x)
    with pytest.raises(ArgumentError):
        loaded(nest).fast(*arrays(8, 8))


def test_products_of_symbols_use_the_python_twin() -> None:
    m, n = sym("M"), sym("N")
    x, y, z = buffer("x", m, n), buffer("y", m * n), output("z", m * n)
    body = block(loop(I, m * n, Store(z, (I,), Load(y, (I,)))))
    kernel = loaded(Nest("product", ("M", "N"), (x, y, z), body))
    a, b, c = np.zeros((3, 4), np.float32), np.arange(12, dtype=np.float32), np.zeros(12, np.float32)
    kernel.fast(a, b, c)
    np.testing.assert_array_equal(c, b)


def test_argument_shapes_are_what_callers_see() -> None:
    nest = Nest("flat", (), STATIC.buffers, STATIC.body, ((2, 3), (6,), (3, 2)))
    z = np.zeros((3, 2), np.float32)
    loaded(nest).fast(np.ones((2, 3), np.float32), np.ones(6, np.float32), z)
    assert (z == 2).all()


def test_arrays_that_only_fit_by_size_run_when_the_caller_vouches_for_them() -> None:
    x, y, z = (a.reshape(2, 3) for a in arrays(6, 6, 6))
    with pytest.raises(ArgumentError):
        loaded(STATIC).fast(x, y, z)
    loaded(STATIC)((x, y, z), ())
    np.testing.assert_array_equal(z, x + y)


def test_references_are_not_leaked() -> None:
    import sys

    function, given = callables(STATIC)[0], arrays(6, 6, 6)
    before = [sys.getrefcount(a) for a in given], sys.getrefcount(None)
    for _ in range(1000):
        function(*given)
    assert [sys.getrefcount(a) for a in given] == before[0]
    assert abs(sys.getrefcount(None) - before[1]) < 100


def test_long_kernels_let_other_threads_run() -> None:
    x, y = buffer("x", 2000, 1000), output("y", 2000, 1000)
    row = loop(J, 1000, Store(y, (I, J), call("exp", Load(x, (I, J)))))
    assert entry._is_long(Nest("long", (), (x, y), block(loop(I, 2000, row, kind=LoopKind.SERIAL))))
    assert entry._is_long(SYMBOLIC)
    assert not entry._is_long(STATIC)


def test_rejected_text_is_attached() -> None:
    with pytest.raises(CodegenError) as error:
        module.compile_object("define nonsense", module.detect_host())
    assert error.value.source == "define nonsense"


def test_a_cached_kernel_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHKERNEL_CACHE_DIR", str(tmp_path))
    source = TARGET.emit(STATIC)
    TARGET.load(source, STATIC)
    monkeypatch.setattr(objects, "compile_object", lambda *_: pytest.fail("compiled again"))
    kernel = TARGET.load(source, STATIC)
    x, y, z = arrays(6, 6, 6)
    kernel((x, y, z), ())
    np.testing.assert_array_equal(z, x + y)


def test_an_entry_says_whether_its_code_came_from_disk() -> None:
    nest = map_nest(lambda x: call("add", x, Literal(0.123456, FLOAT32)), 5, FLOAT32)
    assert (loaded(nest).from_disk, loaded(nest).from_disk) == (False, True)


def test_kernels_that_are_equal_but_for_their_names_are_one_object() -> None:
    first = map_nest(lambda a, b: call("add", call("mul", a, b), b), 11, FLOAT32, FLOAT32)
    assert not loaded(first).from_disk
    second = replace(first, name="another")
    assert "another" in TARGET.emit(second)
    assert loaded(second).from_disk
