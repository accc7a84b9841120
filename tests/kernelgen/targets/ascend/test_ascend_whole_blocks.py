"""Machines without DataCopyPad: copies in whole blocks that keep to their own bytes, or a refusal; and all five machines."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernel_examples import (
    Writer,
    column_sum,
    half_sum,
    layer_norm,
    momentum,
    softmax,
    split_reshape,
    tensor,
    transpose_add,
)

from kernelgen.composite.description import KernelDesc
from kernelgen.driver import compile
from kernelgen.errors import CodegenError, UnsupportedError
from kernelgen.kernel import Kernel
from kernelgen.machines.ascend.machines import MACHINES
from kernelgen.samples.inputs import draw
from kernelgen.semantics import reference
from kernelgen.targets import find_target
from kernelgen.targets.ascend.entry import SimulatedEntry
from kernelgen.tensor.dims import Sym, sym

WITHOUT_PADS = ("910A", "310P")


def elementwise(*shape: int | Sym) -> KernelDesc:
    w, x, y = Writer(), tensor("x", *shape), tensor("y", *shape)
    return w.desc("elementwise", (x, y), w.op("Exp", w.op("Add", x, y, shape=shape), shape=shape))


def row_sums(rows: int, columns: int) -> KernelDesc:
    w, x = Writer(), tensor("x", rows, columns)
    return w.desc("row_sums", (x,), w.op("ReduceSum", x, shape=(rows,), axis=(1,)))


CASES = {
    "elementwise": elementwise(5, 1001),
    "all sizes": elementwise(sym("N")),
    "row sums": row_sums(100, 60),
    "rows of whole blocks": softmax(32, 64),
    "rows that share blocks": softmax(64, 50),
    "half": half_sum(),
    "long rows": layer_norm(3, 300),
    "column sums": column_sum(9, 150),
    "transpose": transpose_add(20, 36),
    "in place": momentum(),
}
REFUSED = {
    "open rows": (softmax(sym("M"), sym("N")), "its rows share blocks"),
    "short rows": (split_reshape(), "may share a block of 32 bytes with others, and be shorter"),
    "one number a core": (row_sums(64, 2000), "its rows share blocks"),
}


def checked(desc: KernelDesc, machine: str) -> Kernel:
    """The kernel, after a run that agreed with the reference; the simulator's findings are errors."""
    kernel = compile(desc, f"ascend:{machine}")
    given, expected = draw(desc), draw(desc)
    found, wanted = kernel(*given), reference(desc)(*expected)
    for one, other in zip((*found, *given), (*wanted, *expected), strict=True):
        np.testing.assert_allclose(np.asarray(one, np.float64), np.asarray(other, np.float64), rtol=1e-3, atol=1e-3)
    return kernel


@pytest.mark.parametrize("machine", WITHOUT_PADS)
@pytest.mark.parametrize("name", CASES)
def test_kernels_agree_with_their_meaning_without_padded_copies(name: str, machine: str) -> None:
    text = checked(CASES[name], machine).source
    assert "DataCopyPad" not in text
    assert "DataCopy(" in text


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("name", ["elementwise", "row sums"])
def test_every_machine_runs_elementwise_and_row_reductions(name: str, machine: str) -> None:
    checked(CASES[name], machine)


@pytest.mark.parametrize("name", REFUSED)
def test_stores_that_would_touch_others_are_refused(name: str) -> None:
    desc, said = REFUSED[name]
    with pytest.raises(UnsupportedError, match=said) as refusal:
        compile(desc, "ascend:910A")
    assert refusal.value.code == "unsupported-layout"


def test_tails_need_no_scalars_where_stores_begin_at_blocks() -> None:
    text = compile(CASES["elementwise"], "ascend:910A").source
    assert "SetValue" not in text
    copied = re.findall(r"DataCopy\(\w+_gm\S*, .*, (.*)\);", text)
    assert copied
    assert all(count.isdigit() or "/ 8 * 8" in count for count in copied), "whole blocks of eight float32"


def test_rows_that_share_blocks_copy_their_last_block_by_itself() -> None:
    text = compile(CASES["rows that share blocks"], "ascend:910A").source
    main = re.search(r"DataCopy\(t4_gm\[(.*)\], \w+\[.*\], 48\);", text)
    edge = re.search(r"DataCopy\(t4_gm\[(.*)\], edge_0, 8\);", text)
    assert main is not None
    assert edge is not None
    assert edge[1] == f"{main[1]} + 42", "elements 42 to 50 of each row"
    assert "edge_0.SetValue(" in text


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (r"(DataCopy\(t4_gm\[.*\], \w+\[.*\], )48\)", r"\g<1>56)", "cores-conflict"),
        (r"(DataCopy\(t4_gm\[.*\], edge_0, )8\)", r"\g<1>6)", "odd-length"),
        (r" \+ 42\], edge_0", r" + 43], edge_0", "cores-conflict|write-after-write|unwritten-output"),
        (r".*PipeBarrier<PIPE_MTE3>\(\);\n", "", "write-after-write"),
    ],
)
def test_planted_faults_are_found(old: str, new: str, kind: str) -> None:
    kernel = compile(CASES["rows that share blocks"], "ascend:910A")
    text, count = re.subn(old, new, kernel.source)
    assert count, "the fault is planted"
    entry = SimulatedEntry(text, kernel.nest, MACHINES["910A"])
    arrays = (*draw(kernel.desc), *(np.zeros((64, 50), np.float32) for _ in kernel.desc.outputs))
    with pytest.raises(CodegenError, match=kind):
        entry(arrays)


def test_a_kernel_of_another_machine_is_found_out() -> None:
    kernel = compile(CASES["elementwise"], "ascend:910B")
    entry = find_target("ascend:910A").load(kernel.source, kernel.nest)
    with pytest.raises(CodegenError, match="DataCopyPad"):
        entry((*draw(kernel.desc), np.zeros((5, 1001), np.float32)), ())
