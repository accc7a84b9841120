"""What LLVM and isl hold of kernels goes with them: counted as live objects."""

from __future__ import annotations

import gc
import threading
import weakref
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from llvmlite import binding

from kernelgen.errors import CodegenError
from kernelgen.native import library
from kernelgen.targets.cpu import TARGET
from kernelgen.targets.cpu.runtime import llvm as module
from kernelgen.targets.cpu.runtime.entry import ENTRY
from tests.kernelgen.targets.test_cpu_entry import STATIC, arrays
from tests.support.forks import in_forked_child

SOURCE = TARGET.emit(STATIC)
OBJECT = module.compile_object(SOURCE, module.detect_host())


def alive(kind: type) -> int:
    gc.collect()
    return sum(isinstance(one, kind) for one in gc.get_objects())


@pytest.fixture(scope="module", autouse=True)
def only_what_is_made_here() -> None:
    """What other tests left, millions of objects, is not looked at each time that something is counted."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> list[weakref.ref[Any]]:
    """Weak references to the linked code of a test."""
    found: list[weakref.ref[Any]] = []
    real = library.Library.__init__

    def watched(self: Any, *arguments: Any) -> None:
        real(self, *arguments)
        found.append(weakref.ref(self))

    monkeypatch.setattr(library.Library, "__init__", watched)
    return found


def test_code_and_its_linkers_go_with_the_kernels(libraries: list[weakref.ref[Any]]) -> None:
    before = alive(binding.ResourceTracker)
    kernels = [module.linked_by_llvm(OBJECT, (ENTRY,), {}) for _ in range(5 * module.LINKS)]
    assert alive(binding.ResourceTracker) == before + len(kernels)
    held = alive(binding.LLJIT)
    del kernels
    assert alive(binding.ResourceTracker) == before
    assert alive(binding.LLJIT) <= held - 4
    assert [one for one in libraries if one()] == []


def test_code_in_a_cycle_of_garbage_goes_before_its_linker() -> None:
    for _ in range(3 * module.LINKS):
        cycle: list[Any] = [module.linked_by_llvm(OBJECT, (ENTRY,), {})]
        cycle.append(cycle)
        del cycle
    before = alive(binding.ResourceTracker)
    gc.collect()
    assert alive(binding.ResourceTracker) == before


def test_a_kernel_runs_after_everything_else_is_gone() -> None:
    kernel = TARGET.load(SOURCE, STATIC)
    function: Any = kernel.fast  # pyright: ignore[reportAttributeAccessIssue]
    for _ in range(2 * module.LINKS):
        module.link(OBJECT, (ENTRY,), {})
    del kernel
    gc.collect()
    x, y, z = arrays(6, 6, 6)
    function(x, y, z)
    np.testing.assert_array_equal(z, x + y)


@pytest.mark.parametrize("source", ["define nonsense", "define i32 @f() { ret void }", SOURCE])
def test_modules_contexts_and_builders_go_with_the_compilation(source: str) -> None:
    kinds = (binding.ModuleRef, binding.context.ContextRef, binding.PassBuilder)
    before = [alive(kind) for kind in kinds]
    for _ in range(20):
        with suppress(CodegenError):
            module.compile_object(source, module.detect_host())
    assert [alive(kind) for kind in kinds] == before


def test_a_child_compiles_though_it_was_forked_while_threads_compiled() -> None:
    stop = threading.Event()

    def compile_on() -> None:
        while not stop.is_set():
            module.compile_object(SOURCE, module.detect_host())

    threads = [threading.Thread(target=compile_on) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        codes = [in_forked_child(lambda: bool(module.compile_object(SOURCE, module.detect_host()))) for _ in range(5)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert codes == [0] * 5
