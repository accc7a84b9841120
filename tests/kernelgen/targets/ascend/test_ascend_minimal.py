"""No flag and no barrier of a kernel is one too many; one that is, is found."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from kernel_examples import column_sum, layer_norm, momentum, own_transpose, softmax, split_reshape, transpose_add

from kernelgen.ascendc.reader import read_kernel
from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.errors import ProofError
from kernelgen.machines.ascend.machines import ASCEND_910B
from kernelgen.simulators.ascendc.outline import Launch
from kernelgen.tensor.dims import sym
from tests.kernelgen.targets.ascend.kernels import SAMPLES, Sample
from tests.support.order_launches import launches
from tests.support.redundant_flags import Minimality, minimality

CASES = {
    "softmax": softmax(4, 300),
    "long_softmax": softmax(100, 9000),
    "layer_norm": layer_norm(3, 300),
    "column_sum": column_sum(9, 150),
    "transpose_add": transpose_add(20, 36),
    "own_transpose": own_transpose(20),
    "momentum": momentum(),
    "turns": momentum(48 * 8 * 8192),
    "reshape": split_reshape(),
    "open_sizes": softmax(sym("M"), sym("N")),
}


def of_kernel(desc: KernelDesc) -> Minimality:
    kernel = compile(desc, "ascend")
    read = read_kernel(kernel.source)
    return minimality(read, tuple(launches(kernel.nest, read, ASCEND_910B)), ASCEND_910B)


def of_text(text: str, sample: Sample) -> Minimality:
    arguments = {name: (array.dtype, array.size) for name, array in {**sample.inputs, **sample.expected}.items()}
    return minimality(read_kernel(text), (Launch(arguments, sample.blocks, sample.tiling),), ASCEND_910B)


def idle(found: Minimality) -> Sequence[tuple[int, ...]]:
    return [group.lines for group in found.idle]


def lines_with(text: str, pattern: str) -> tuple[int, ...]:
    return tuple(number for number, line in enumerate(text.splitlines(), 1) if re.search(pattern, line))


@pytest.mark.parametrize("name", CASES)
def test_every_flag_and_barrier_is_needed(name: str) -> None:
    found = of_kernel(CASES[name])
    assert found.groups
    assert (found.idle, found.unseen) == ((), ())


def test_a_flag_has_all_its_sets_and_waits() -> None:
    text = SAMPLES["double"].text
    found = of_text(text, SAMPLES["double"])
    flags = {group.lines for group in found.groups if group.kind == "flag MTE3_V"}
    assert flags == {lines_with(text, "Flag<HardEvent::MTE3_V>")}
    assert not found.idle


def test_a_barrier_too_many_is_found() -> None:
    sample = SAMPLES["single"]
    text = sample.text.replace("PipeBarrier<PIPE_V>();", "PipeBarrier<PIPE_V>();\n        PipeBarrier<PIPE_MTE2>();", 1)
    assert idle(of_text(text, sample)) == [lines_with(text, "PIPE_MTE2")]


def test_a_flag_too_many_is_found() -> None:
    sample = SAMPLES["single"]
    more = "SetFlag<HardEvent::MTE2_MTE3>(3);\n    WaitFlag<HardEvent::MTE2_MTE3>(3);\n    "
    text = sample.text.replace("    for (", f"    {more}for (", 1)
    assert idle(of_text(text, sample)) == [lines_with(text, "MTE2_MTE3")]


def test_a_flag_that_no_launch_comes_to_is_told_apart() -> None:
    sample = SAMPLES["single"]
    more = "if (GetBlockIdx() > 99) {\n        PipeBarrier<PIPE_V>();\n    }\n    "
    text = sample.text.replace("    for (", f"    {more}for (", 1)
    found = of_text(text, sample)
    assert len(found.unseen) == 1
    assert not found.idle


def test_a_text_without_a_proved_order_is_refused() -> None:
    sample = SAMPLES["single"]
    with pytest.raises(ProofError, match="no proved order"):
        of_text(sample.text.replace("        PipeBarrier<PIPE_V>();\n", "", 1), sample)
