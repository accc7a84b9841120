"""Kernels that are too large for the interpreter: what of them runs, what is compared, and what the record says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from kernel_examples import Writer, column_sum, constant, softmax, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.errors import BackendUnavailable
from kernelgen.kernel import Kernel
from kernelgen.machines.gpu.device import HOPPER
from kernelgen.native.signature import Signature
from kernelgen.samples.inputs import draw
from kernelgen.targets import Target
from kernelgen.targets.gpu.launch.entry import GpuEntry
from kernelgen.verify import Record, Status, verify
from kernelgen.verify import verify_one as one


def scaled_rows(rows: int) -> KernelDesc:
    w, x = Writer(), tensor("x", rows, 100)
    return w.desc("scaled_rows", (x,), w.op("Mul", x, constant(2), shape=(rows, 100)))


def checked(record: Record) -> Record:
    if record.reason == "unavailable":
        pytest.skip(record.message)
    return record


def test_a_large_kernel_runs_small_and_whole_then_large_and_sampled() -> None:
    record = checked(verify(softmax(2000, 512), "gpu"))
    assert (record.status, record.message) == (Status.PASSED, "")
    assert record.scaled
    assert 0 < record.sampled["blocks"] < record.sampled["blocks_in_all"]
    assert 0 < record.sampled["elements"] < record.sampled["elements_in_all"] == 2000 * 512


def test_small_kernels_run_whole() -> None:
    record = checked(verify(softmax(20, 50), "gpu"))
    assert (record.status, record.scaled, dict(record.sampled)) == (Status.PASSED, False, {})


def test_what_does_not_shrink_is_sampled_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one, "shrink", lambda desc, limit: desc)
    monkeypatch.setattr(one, "INTERPRETED_AT_MOST", 1 << 20)
    record = checked(verify(softmax(2000, 512), "gpu"))
    assert (record.status, record.scaled) == (Status.PASSED, False)
    assert record.sampled["blocks"] < record.sampled["blocks_in_all"]


def test_a_fault_of_the_large_kernel_alone_is_found() -> None:
    def broken(desc: KernelDesc, target: str) -> Kernel:
        kernel = kernelgen.compile(desc, target)
        if desc.inputs[0].shape[0] != 20_000:
            return kernel
        source = kernel.source.replace("* 2.0f", "* 3.0f")
        assert source != kernel.source
        return replace(kernel, entry=GpuEntry(source, kernel.nest))

    record = checked(verify(scaled_rows(20_000), "gpu", compiler=broken))
    assert (record.status, record.reason) == (Status.FAILED, "wrong-answer")


def test_launches_that_others_build_on_run_whole() -> None:
    kernel = kernelgen.compile(column_sum(4000, 64), "gpu").without_device()
    outputs = tuple(np.full([int(str(d)) for d in t.shape], np.nan, np.float32) for t in kernel.desc.outputs)
    inputs = draw(kernel.desc, 0)
    try:
        sample = kernel.sample(inputs, outputs)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    assert sample is not None
    (expected,) = kernelgen.reference(kernel.desc)(*inputs)
    (mask,) = sample.written
    known = np.ones(expected.size, bool) if mask is None else mask
    assert known.any()
    np.testing.assert_allclose(outputs[0].reshape(-1)[known], expected.reshape(-1)[known], rtol=1e-4)


def test_targets_that_run_whole_have_no_samples() -> None:
    kernel = kernelgen.compile(softmax(4, 8), "python")
    assert kernel.without_device() is kernel
    assert kernel.sample(draw(kernel.desc, 0), kernel(*draw(kernel.desc, 0))) is None


def test_a_device_that_is_asked_for_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GpuEntry, "on_device", lambda self, desc: None)
    record = verify(softmax(4, 8), "gpu", device=True)
    assert (record.status, record.reason) == (Status.SKIPPED, "unavailable")


def test_the_device_runs_large_kernels_as_they_are() -> None:
    desc, seen = softmax(2000, 512), list[Any]()

    class Entry:
        interpreter: Any = None

        def on_device(self, signature: Signature) -> Any:
            assert [each.shape for each in signature.inputs] == [(2000, 512)]

            def call(inputs: Any, out: Any) -> tuple[Any, ...]:
                seen.append(inputs[0].shape)
                return kernelgen.reference(desc)(*inputs, out=out)

            return call

        def __call__(self, arrays: tuple[object, ...], symbols: tuple[int, ...]) -> None:
            raise AssertionError("the interpreter is not asked for")

    device = Target("gpu", lambda nest: "", lambda source, nest: Entry(), machine=HOPPER)
    record = verify(desc, "gpu", device=True, compiler=lambda desc, _: kernelgen.compile(desc, device))
    assert (record.status, record.message) == (Status.PASSED, "")
    assert set(seen) == {(2000, 512)}
    assert not record.scaled
