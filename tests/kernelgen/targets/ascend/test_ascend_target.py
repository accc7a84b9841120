"""Nests as AscendC: right by the simulator, no flag too many, overlapping turns, memory shared where it must be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from kernel_examples import (
    column_sum,
    half_sum,
    layer_norm,
    momentum,
    own_transpose,
    softmax,
    split_reshape,
    transpose_add,
    two_phase_branches,
)

from kernelgen.ascendc.printer import print_kernel
from kernelgen.ascendc.reader import read_kernel
from kernelgen.driver import compile
from kernelgen.errors import CodegenError, UnsupportedError
from kernelgen.kernel import Kernel
from kernelgen.machines.ascend.machines import ASCEND_910B
from kernelgen.samples.inputs import draw
from kernelgen.semantics import reference
from kernelgen.simulators.ascendc import Report
from kernelgen.targets.ascend import entry
from kernelgen.targets.ascend.entry import SimulatedEntry
from kernelgen.targets.ascend.lower.assemble import assemble
from kernelgen.targets.ascend.lower.program import storage
from kernelgen.tensor.dims import sym

CASES = {
    "softmax": softmax(4, 300),
    "layer_norm": layer_norm(3, 300),
    "column_sum": column_sum(9, 150),
    "transpose_add": transpose_add(20, 36),
    "own_transpose": own_transpose(20),
    "momentum": momentum(),
    "half_sum": half_sum(),
    "reshape": split_reshape(),
    "branches": two_phase_branches(),
    "softmax_symbolic": softmax(sym("M"), sym("N")),
}
MINIMAL = ("softmax", "layer_norm", "column_sum", "transpose_add", "momentum")


def run(kernel: Kernel, text: str | None = None, doubled: bool = True) -> Report:
    """The report of a run on drawn inputs; raises CodegenError where it is not clean."""
    entry = SimulatedEntry(text or kernel.source, kernel.nest)
    replace(kernel, entry=entry)(*draw(kernel.desc))
    return entry.reports[0]


@pytest.mark.parametrize("name", CASES)
def test_kernels_agree_with_their_meaning(name: str) -> None:
    desc = CASES[name]
    given, expected = draw(desc), draw(desc)
    found, wanted = compile(desc, "ascend")(*given), reference(desc)(*expected)
    for one, other in zip((*found, *given), (*wanted, *expected), strict=True):
        np.testing.assert_allclose(np.asarray(one, np.float64), np.asarray(other, np.float64), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", CASES)
def test_the_text_reads_back(name: str) -> None:
    text = compile(CASES[name], "ascend").source
    assert print_kernel(read_kernel(text)) == text


def without_flags(text: str) -> Iterator[str]:
    """The text without each barrier, and without all sets and waits of each flag."""
    lines = text.splitlines()
    groups: dict[str, set[int]] = {}
    for number, line in enumerate(lines[:-2]):
        flag = re.search(r"(?:Set|Wait)Flag<(\w+::\w+)>\((.*)\)", line)
        if flag:
            groups.setdefault(
                flag[1] + (" of two" if "half" in text and flag[1] in halves(text) else flag[2]), set()
            ).add(number)
        elif "PipeBarrier" in line:
            groups[f"barrier {number}"] = {number}
    for numbers in groups.values():
        yield "\n".join(line for number, line in enumerate(lines) if number not in numbers) + "\n"


def halves(text: str) -> frozenset[str]:
    """Events that have an id for each of two turns."""
    return frozenset(re.findall(r"Flag<(\w+::\w+)>\(half", text))


@pytest.mark.parametrize("name", MINIMAL)
def test_every_flag_and_barrier_is_needed(name: str) -> None:
    kernel = compile(CASES[name], "ascend")
    assert run(kernel).clean
    for fewer in without_flags(kernel.source):
        with pytest.raises(CodegenError):
            run(kernel, fewer)


def test_one_kernel_serves_many_sizes() -> None:
    kernel = compile(softmax(sym("M"), sym("N")), "ascend")
    for shape in ((1, 1), (3, 17), (50, 8), (2, 9000)):
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        (found,) = kernel(x)
        power = np.exp(x - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(found, power / power.sum(axis=1, keepdims=True), rtol=1e-4, atol=1e-6)


def test_storage_rewrite_fits_what_does_not_fit_without_it() -> None:
    nest = compile(layer_norm(3, 4096), "ascend").nest
    assert assemble(nest, ASCEND_910B).body
    small = replace(ASCEND_910B, memories={**ASCEND_910B.memories, "UB": 60 * 1024})
    assert assemble(nest, small).body
    with pytest.raises(UnsupportedError, match="do not fit"):
        assemble(nest, replace(small, memories={**small.memories, "UB": 4 * 1024}), levels=(storage.ALONE,))


def test_a_sample_is_the_first_and_the_last_blocks_and_those_between(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no block of the sample has written is told from what is final; nobody asks for it."""
    monkeypatch.setattr(entry, "MOST_STATEMENTS", 1)
    kernel = compile(softmax(4096, 100), "ascend")
    (x,) = draw(kernel.desc, 0)
    found = np.full((4096, 100), np.nan, np.float32)
    sample = kernel.sample([x], [found])
    assert sample is not None
    assert (sample.blocks, sample.blocks_in_all) == (2, 48)
    (written,) = [mask.reshape(found.shape) for mask in sample.written if mask is not None]
    assert written[0].all()
    assert written[-1].all()
    assert 0 < np.count_nonzero(written) < written.size / 8
    (wanted,) = reference(kernel.desc)(x)
    np.testing.assert_allclose(found[written], wanted[written], rtol=1e-5)


def test_cores_that_meet_have_no_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "MOST_STATEMENTS", 1)
    kernel = compile(column_sum(2000, 640), "ascend")
    assert "CrossCore" in kernel.source
    (x,) = draw(kernel.desc, 0)
    whole = kernel.sample([x], [np.zeros(640, np.float32)])
    assert whole is not None
    assert whole.blocks == whole.blocks_in_all
    monkeypatch.setattr(entry, "MOST_SAMPLED", 1)
    with pytest.raises(UnsupportedError, match="budget"):
        kernel.sample([x], [np.zeros(640, np.float32)])
