"""LLVM in a process of its own: the same objects, and a module that it dies of costs that module."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import graphkernel as gk
import kernelgen
from graphkernel import ops
from kernelgen.errors import CodegenError
from kernelgen.system import answering
from kernelgen.targets.cpu import TARGET
from kernelgen.targets.cpu.runtime import llvm as module
from kernelgen.targets.cpu.runtime.isolated import CompilerProcess, compiler
from tests.kernelgen.targets.test_cpu_entry import STATIC
from tests.support.forks import in_forked_child

SOURCE = TARGET.emit(STATIC)
HOST = module.detect_host()
DEADLY = 'module asm "there is no parser for this"\n'
"""LLVM aborts, because it has printers of assembly here but no parser."""


@pytest.fixture
def process() -> Iterator[CompilerProcess]:
    made = CompilerProcess()
    yield made
    made.other.end()


def number_of(process: CompilerProcess) -> int:
    assert process.other.process is not None
    return process.other.process.pid


def test_the_object_is_the_same_and_the_process_is_used_again(process: CompilerProcess) -> None:
    assert process.compile_object(SOURCE, HOST) == module.compile_object(SOURCE, HOST)
    first = process.other.process
    assert process.compile_object(SOURCE, HOST) == module.compile_object(SOURCE, HOST)
    assert process.other.process is first


def test_what_llvm_rejects_is_told_and_costs_nothing_else(process: CompilerProcess) -> None:
    process.compile_object(SOURCE, HOST)
    first = process.other.process
    with pytest.raises(CodegenError, match="LLVM rejected the module"):
        process.compile_object("define nonsense", HOST)
    assert process.compile_object(SOURCE, HOST)
    assert process.other.process is first


def test_what_llvm_dies_of_is_told_and_the_next_module_has_a_new_process(process: CompilerProcess) -> None:
    for _ in range(2):
        with pytest.raises(CodegenError, match="LLVM died of the module: signal SIGABRT") as error:
            process.compile_object(DEADLY + SOURCE, HOST)
        assert error.value.source == DEADLY + SOURCE
        assert process.compile_object(SOURCE, HOST)


@pytest.mark.parametrize("source", [SOURCE, SOURCE + "; much more\n" * 100_000])
def test_what_never_ends_is_given_up(source: str) -> None:
    process = CompilerProcess((sys.executable, "-c", "import time; time.sleep(600)"), limit_seconds=0.5)
    start = time.monotonic()
    with pytest.raises(CodegenError, match=r"did not finish the module in 0.5 s"):
        process.compile_object(source, HOST)
    assert time.monotonic() - start < 60
    assert process.other.process is None


@pytest.mark.parametrize("program", ["print('no length')", "import os; os.write(1, b'x' * 7)", "raise SystemExit(3)"])
def test_a_process_that_answers_nonsense_is_an_error(program: str) -> None:
    with pytest.raises(CodegenError, match="LLVM died"):
        CompilerProcess((sys.executable, "-c", program)).compile_object(SOURCE, HOST)


def test_an_interrupt_leaves_no_answer_behind(process: CompilerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> bytes:
        raise KeyboardInterrupt

    process.compile_object(SOURCE, HOST)
    with monkeypatch.context() as patch:
        patch.setattr(answering, "_received", interrupted)
        with pytest.raises(KeyboardInterrupt):
            process.compile_object(SOURCE, HOST)
    other = SOURCE.replace("fadd", "fmul")
    assert process.compile_object(other, HOST) == module.compile_object(other, HOST)


def test_threads_take_turns(process: CompilerProcess) -> None:
    texts = [SOURCE, SOURCE.replace("fadd", "fmul"), SOURCE.replace("fadd", "fsub")] * 3
    found: dict[int, bytes] = {}
    threads = [
        threading.Thread(target=lambda k=k, text=text: found.update({k: process.compile_object(text, HOST)}))
        for k, text in enumerate(texts)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[k] for k in range(len(texts))] == [module.compile_object(text, HOST) for text in texts]


def test_the_process_ends_with_its_parent() -> None:
    receive, send = os.pipe()

    def start() -> bool:
        compiler().compile_object(SOURCE, HOST)
        os.write(send, number_of(compiler()).to_bytes(8, "little"))
        return True  # and the parent is gone without a word, as when it is killed

    assert in_forked_child(start) == 0
    process = int.from_bytes(os.read(receive, 8), "little")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and _runs(process):
        time.sleep(0.05)
    assert not _runs(process)


def _runs(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_child_has_a_process_of_its_own() -> None:
    compiler().compile_object(SOURCE, HOST)
    mine = number_of(compiler())

    def own() -> bool:
        right = compiler().compile_object(SOURCE, HOST) == module.compile_object(SOURCE, HOST)
        return right and number_of(compiler()) != mine

    assert in_forked_child(own) == 0
    assert compiler().compile_object(SOURCE, HOST)
    assert number_of(compiler()) == mine


def test_a_kernel_that_llvm_dies_of_runs_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHKERNEL_ISOLATE_COMPILER", "on")
    deadly = replace(TARGET, emit=lambda nest: DEADLY + TARGET.emit(nest), printer=None)
    x = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    graph = gk.trace(lambda x: ops.exp(x) * 1.25, x)
    exe = gk.compile(graph, 2, compiler=lambda desc, target: kernelgen.compile(desc, deadly))
    (fallback,) = exe.report.fallbacks
    assert "LLVM died of the module" in fallback.reason
    np.testing.assert_allclose(exe(x)[0], np.exp(x) * 1.25, rtol=1e-6)
