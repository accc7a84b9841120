"""All that a kernel does at the size of its file must have been run at some size; what never ran is a failure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kernel_examples import Writer, softmax, tensor

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.kernel import Kernel
from kernelgen.plan import Plan
from kernelgen.targets.gpu.launch import interpret
from kernelgen.tensor.dtypes import INT32
from kernelgen.verify import Status, own_sizes, verify
from kernelgen.verify.own_sizes import features_of
from kernelgen.verify.record import sizes_run


def exponential(rows: int, columns: int = 4096) -> KernelDesc:
    w, x = Writer(), tensor("x", rows, columns)
    return w.desc("exponential", (x,), w.op("Exp", x, shape=(rows, columns)))


def test_a_kernel_runs_at_its_own_size_where_the_simulator_stands_it() -> None:
    record = verify(exponential(512), "ascend")
    assert (record.status, record.message) == (Status.PASSED, "")
    assert record.argument_bytes[-1] == record.own_bytes == 2 * 512 * 4096 * 4
    assert all(record.features.values())


def test_features_name_loops_double_buffering_and_instructions_with_the_size_at_which_they_ran() -> None:
    record = verify(exponential(4096), "ascend")
    assert record.status is Status.PASSED
    assert record.own_bytes not in record.argument_bytes
    words = record.features
    assert {"loop of V, MTE2, MTE3: several turns", "SetFlag, id, HardEvent::MTE2_V, id of a half"} <= words.keys()
    assert words["loop of V, MTE2, MTE3: several turns"] > record.argument_bytes[0]
    assert any(word.startswith("Exp, ") and size == record.argument_bytes[0] for word, size in words.items())


@pytest.mark.parametrize("target", ["ascend", "cpu", "gpu"])
def test_what_no_size_runs_is_a_failure(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_sizes, "SIZES", {"ascend": (64 << 10,), "gpu": (1 << 20,)})
    monkeypatch.setattr(own_sizes, "WHOLE_SIZES", (64 << 10,))
    desc = exponential(1 << 14, 64)

    def compiler(found: KernelDesc, name: str, plan: Plan | None = None) -> Kernel:
        kernel = kernelgen.compile(found, name, plan)
        return kernel if found is not desc else replace(kernel, entry=With(kernel.entry, {"only this size"}))

    record = verify(desc, target, compiler=compiler, byte_limit=1 << 20)
    if record.reason == "unavailable":
        pytest.skip(record.message)
    assert (record.status, record.reason) == (Status.FAILED, "unseen")
    assert "only this size" in record.message
    assert record.features["only this size"] == 0


class With:
    """An entry whose kernel does something more than it says."""

    def __init__(self, entry: Any, words: set[str]) -> None:
        self.entry, self.words = entry, frozenset(words)

    def features(self, symbols: tuple[int, ...]) -> frozenset[str]:
        return self.words

    def __call__(self, arrays: tuple[object, ...], symbols: tuple[int, ...]) -> None:
        self.entry(arrays, symbols)


@pytest.mark.parametrize("target", ["ascend", "cpu", "gpu", "python"])
def test_the_same_kernel_at_two_sizes_of_several_turns_has_the_same_features(target: str) -> None:
    small, large = (features_of(kernelgen.compile(softmax(rows, 256), target)) for rows in (48 * 640, 96 * 640))
    assert small == large != frozenset()


def test_a_fault_of_the_second_half_of_a_double_buffer_is_found() -> None:
    """At the smallest size there is one turn, and the fault does nothing."""

    def broken(desc: KernelDesc, target: str) -> Kernel:
        kernel = kernelgen.compile(desc, target)
        first, _, rest = kernel.source.partition("Exp(")
        source = first + "Exp(" + rest.replace("[half_k_0 *", "[0 *", 1)
        return replace(kernel, source=source, entry=replace(kernel.entry, source=source))  # pyright: ignore[reportArgumentType]

    assert verify(exponential(16, 32), "ascend", compiler=broken).status is Status.PASSED
    record = verify(exponential(4096), "ascend", compiler=broken)
    assert record.status is Status.FAILED


def test_launches_that_build_on_each_other_run_whole_where_a_sample_of_blocks_would_write_no_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interpret, "WHOLE_THREADS", 1)  # the first launch is too large for a sample of the second
    w, x = Writer(), tensor("x", 8, 1 << 16)
    record = verify(w.desc("sums", (x,), w.op("ReduceSum", x, shape=(8,), axis=(1,))), "gpu", byte_limit=1 << 20)
    if record.reason == "unavailable":
        pytest.skip(record.message)
    assert (record.status, record.message) == (Status.PASSED, "")
    assert record.features["load from workspace float32"] > record.argument_bytes[0]


def segment_sum(rows: int, columns: int, segments: int) -> KernelDesc:
    w, x, which = Writer(), tensor("x", rows, columns, 3), tensor("which", rows, columns, dtype=INT32)
    return w.desc("sums", (x, which), w.op("UnsortedSegmentSum", x, which, shape=(segments, 3), num_segments=segments))


def test_what_pays_for_large_kernels_only_is_seen_in_a_small_model_of_one() -> None:
    """A core's own sums of 2,000 segments pay for many millions of terms, each of which is a copy in the simulator."""
    large, small = segment_sum(4000, 4000, 2000), segment_sum(4, 4000, 2000)
    own = features_of(kernelgen.compile(large, "ascend"))
    assert own - features_of(kernelgen.compile(small, "ascend"))
    assert own <= features_of(kernelgen.compile(small, "ascend", Plan(stands_for=1000)))


def test_the_closing_line_counts_sizes_and_features() -> None:
    record = verify(softmax(4, 8), "python")
    assert (
        sizes_run([record])
        == f"1 of 1 at their own size; {len(record.features)} of {len(record.features)} features run"
    )
