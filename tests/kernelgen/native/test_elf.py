"""Objects that LLVM makes, loaded without it: right code, nothing taken from what is damaged, memory given back."""

from __future__ import annotations

import ctypes
import gc
import math
import weakref
from pathlib import Path

import numpy as np
import pytest

from kernelgen.errors import CodegenError
from kernelgen.native import mapped
from kernelgen.native.code import PAGE, Code
from kernelgen.native.elf import linked
from kernelgen.native.library import Library
from kernelgen.system.limits import LIMITS
from kernelgen.targets.cpu import TARGET
from kernelgen.targets.cpu.runtime import llvm as module
from kernelgen.targets.cpu.runtime import team, wrapper_ir
from kernelgen.targets.cpu.runtime.llvm import compile_object, detect_host
from tests.kernelgen.targets.test_cpu_entry import STATIC

pytestmark = pytest.mark.skipif(not mapped.is_supported(), reason="objects of this machine are linked by LLVM")

PROGRAM = """
@count = global i32 7
@zeros = global [16 x i32] zeroinitializer
@table = internal constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5]

declare double @sin(double)
declare i32 @given(i32)

define i32 @next() {
  %old = load i32, ptr @count
  %new = add i32 %old, 1
  store i32 %new, ptr @count
  %result = call i32 @given(i32 %new)
  ret i32 %result
}

define double @curve(i32 %place) {
  %where = getelementptr [4 x double], ptr @table, i32 0, i32 %place
  %x = load double, ptr %where
  %y = call double @sin(double %x)
  %first = load i32, ptr @zeros
  %zero = sitofp i32 %first to double
  %sum = fadd double %y, %zero
  ret double %sum
}

define ptr @address_of_sin() {
  ret ptr @sin
}
"""
NAMES = ("next", "curve", "address_of_sin", "count")
GIVEN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda value: 100 * value)


def image() -> bytes:
    return compile_object(PROGRAM, detect_host())


def loaded(code: Code) -> Library:
    return mapped.load_code(code, {"given": ctypes.cast(GIVEN, ctypes.c_void_p).value or 0})


def test_functions_constants_variables_and_functions_from_outside() -> None:
    library = loaded(linked(image(), NAMES))
    count = ctypes.CFUNCTYPE(ctypes.c_int)(library.addresses["next"])
    assert [count(), count()] == [800, 900]
    assert ctypes.c_int32.from_address(library.addresses["count"]).value == 9
    curve = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int)(library.addresses["curve"])
    assert [curve(k) for k in range(4)] == [math.sin(k + 1.5) for k in range(4)]
    found = ctypes.CFUNCTYPE(ctypes.c_void_p)(library.addresses["address_of_sin"])()
    assert found == ctypes.cast(ctypes.CDLL(None).sin, ctypes.c_void_p).value


def test_each_loading_has_variables_of_its_own() -> None:
    code = linked(image(), NAMES)
    counts = [ctypes.CFUNCTYPE(ctypes.c_int)(loaded(code).addresses["next"]) for _ in range(2)]
    kept = [loaded(code) for _ in range(2)]
    counts = [ctypes.CFUNCTYPE(ctypes.c_int)(library.addresses["next"]) for library in kept]
    assert [count() for count in counts] == [800, 800]


def test_it_does_what_llvm_makes_of_the_same_object() -> None:
    given = {"given": ctypes.cast(GIVEN, ctypes.c_void_p).value or 0}
    by_llvm = module.linked_by_llvm(image(), NAMES, given)
    ours = loaded(linked(image(), NAMES))
    for library in (by_llvm, ours):
        assert ctypes.CFUNCTYPE(ctypes.c_int)(library.addresses["next"])() == 800


def test_code_may_run_and_not_be_written() -> None:
    library = loaded(linked(image(), NAMES))
    start = library.addresses["next"] // PAGE * PAGE
    (line,) = (line for line in Path("/proc/self/maps").read_text().splitlines() if line.startswith(f"{start:x}-"))
    assert line.split()[1] == "r-xp"


def test_memory_is_given_back() -> None:
    library = loaded(linked(image(), NAMES))
    seen, start = weakref.ref(library), library.addresses["next"] // PAGE * PAGE
    del library
    gc.collect()
    assert seen() is None
    assert not any(line.startswith(f"{start:x}-") for line in Path("/proc/self/maps").read_text().splitlines())


def test_what_a_process_does_not_have_is_told_of() -> None:
    with pytest.raises(CodegenError, match="calls given, which this process does not have"):
        mapped.load_code(linked(image(), NAMES), {})
    with pytest.raises(CodegenError, match="it has no missing"):
        linked(image(), ("missing",))


def test_the_same_source_gives_the_same_bytes() -> None:
    sources = (PROGRAM, TARGET.emit(STATIC), team.TEXT, wrapper_ir.TEXT)
    for source in sources:
        assert compile_object(source, detect_host()) == compile_object(source, detect_host())


def test_a_damaged_object_is_refused_or_stays_within_its_memory() -> None:
    """Whatever single bytes are changed: an error that says so, or code whose every offset lies inside of it."""
    sound, random = image(), np.random.default_rng(0)
    for _ in range(1000):
        damaged = bytearray(sound)
        for place in random.integers(len(damaged), size=random.integers(1, 4)):
            damaged[place] = random.integers(256)
        cut = bytes(damaged[: random.integers(len(damaged))]) if random.random() < 0.1 else bytes(damaged)
        try:
            code = linked(cut, NAMES)
        except CodegenError:
            continue
        assert len(code.content) <= 2 * LIMITS.object_bytes
        assert all(0 <= offset < len(code.content) for _, offset in code.exports)


@pytest.mark.parametrize(
    "parts",
    [
        (bytes(PAGE), 1, PAGE),
        (bytes(PAGE), PAGE, 0),
        (bytes(PAGE), 0, 0, (("f", PAGE),)),
        (bytes(PAGE), 0, 0, (("f", -1),)),
        (bytes(2 * PAGE), PAGE, PAGE, (), ((0, "sin"),)),
        (bytes(PAGE), 0, 0, (), ((PAGE - 1, "sin"),)),
        (bytes(PAGE), 0, 0, (), (), ((0, PAGE),)),
    ],
)
def test_code_whose_offsets_do_not_fit_is_none(parts: tuple[bytes, int, int]) -> None:
    with pytest.raises(CodegenError):
        Code(*parts).checked()
