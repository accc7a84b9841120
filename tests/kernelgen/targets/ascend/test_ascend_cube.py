"""Products on the cube unit: right by the simulator in every layout and size, faults rejected, cut as memories allow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernel_examples import Writer, constant, tensor

from kernelgen.ascendc.instructions import AIC_ONLY, AIV_ONLY, MIX
from kernelgen.ascendc.printer import print_kernel
from kernelgen.ascendc.reader import read_kernel
from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.driver import compile
from kernelgen.errors import CodegenError
from kernelgen.kernel import Kernel
from kernelgen.machines.ascend.machines import ASCEND_910B
from kernelgen.samples.inputs import draw
from kernelgen.semantics import reference
from kernelgen.simulators.ascendc import Report
from kernelgen.targets.ascend.entry import SimulatedEntry
from kernelgen.targets.ascend.lower.cube.core_plan import plan_of
from kernelgen.targets.ascend.lower.cube.tile_sizes import (
    Problem,
    Sizes,
    candidates,
    choose,
    estimate,
    problem_of,
    unit_of,
)
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType
from tests.support.order_launches import launches
from tests.support.redundant_flags import minimality


def product(
    m: Dim,
    n: Dim,
    k: Dim,
    dtype: DType = FLOAT16,
    out: DType | None = None,
    left: bool = False,
    right: bool = False,
    tail: str = "",
) -> KernelDesc:
    """A matrix product; ``left`` and ``right`` say what is transposed, ``tail`` what follows (bias, relu, exp)."""
    w, kind = Writer(), out or dtype
    a = tensor("a", *((k, m) if left else (m, k)), dtype=dtype)
    b = tensor("b", *((n, k) if right else (k, n)), dtype=dtype)
    inputs = (a, b)
    y = w.op("MatMul", a, b, shape=(m, n), dtype=kind, transpose_a=left, transpose_b=right, dst_type=kind.name)
    for step in tail.split():
        if step == "bias":
            inputs = (*inputs, tensor("bias", n, dtype=kind))
            y = w.op("Add", y, inputs[-1], shape=(m, n))
        elif step == "relu":
            y = w.op("Maximum", y, constant(0.0, kind), shape=(m, n))
        else:
            y = w.op("Exp", w.op("Minimum", y, constant(1.0, kind), shape=(m, n)), shape=(m, n))
    return w.desc("product", inputs, y)


def batched(batch: tuple[Dim, ...], m: Dim, n: Dim, k: Dim, right: bool = False, power: bool = False) -> KernelDesc:
    w, a = Writer(), tensor("a", *batch, m, k, dtype=FLOAT16)
    b = tensor("b", *batch, *((n, k) if right else (k, n)), dtype=FLOAT16)
    y = w.op("BatchMatMul", a, b, shape=(*batch, m, n), transpose_a=False, transpose_b=right)
    y = w.op("Exp", w.op("Minimum", y, constant(1.0, FLOAT16), shape=y.shape), shape=y.shape) if power else y
    return w.desc("batched", (a, b), y)


def fractals(m: int, n: int, k: int, left: bool, right: bool) -> KernelDesc:
    """A product of matrices in NZ."""

    def nz(name: str, rows: int, columns: int) -> Tensor:
        return replace(tensor(name, columns // 16, rows // 16, 16, 16, dtype=FLOAT16), layout="FRACTAL_NZ")

    w = Writer()
    a = nz("a", *((k, m) if left else (m, k)))
    b = nz("b", *((n, k) if right else (k, n)))
    w.op("MatMul", a, b, shape=(n // 16, m // 16, 16, 16), transpose_a=left, transpose_b=right, dst_type="float16")
    y = replace(w.ops[0].out, layout="FRACTAL_NZ")
    w.ops[0] = replace(w.ops[0], outs=(y,))
    return w.desc("fractals", (a, b), y)


def attention(batch: int, queries: int, keys: int, depth: int) -> KernelDesc:
    """softmax(q k^T) v: two products with vector work between them."""
    w = Writer()
    q = tensor("q", batch, queries, depth, dtype=FLOAT16)
    k, v = (tensor(name, batch, keys, depth, dtype=FLOAT16) for name in "kv")
    full, row = (batch, queries, keys), (batch, queries, 1)
    scores = w.op("BatchMatMul", q, k, shape=full, transpose_a=False, transpose_b=True)
    top = w.op("ReduceMax", scores, shape=row, axis=(2,), keep_dims=True)
    power = w.op("Exp", w.op("Sub", scores, top, shape=full), shape=full)
    total = w.op("ReduceSum", power, shape=row, axis=(2,), keep_dims=True)
    share = w.op("RealDiv", power, total, shape=full)
    y = w.op("BatchMatMul", share, v, shape=(batch, queries, depth), transpose_a=False, transpose_b=False)
    return w.desc("attention", (q, k, v), y)


def rounded(m: int, n: int, k: int) -> KernelDesc:
    """A product of float32 matrices that are rounded to half precision first."""
    w, a, b = Writer(), tensor("a", m, k), tensor("b", k, n)
    c, d = (w.op("Cast", one, shape=one.shape, dtype=FLOAT16, dst_type="float16") for one in (a, b))
    y = w.op("MatMul", c, d, shape=(m, n), dtype=FLOAT32, transpose_a=False, transpose_b=False, dst_type="float32")
    return w.desc("rounded", (a, b), y)


def convolution() -> KernelDesc:
    """Windows of 3 x 3, every second place, channels last."""
    w = Writer()
    x, k, y = (
        replace(tensor(name, *shape, dtype=FLOAT16), layout="NHWC")
        for name, shape in (("x", (2, 9, 13, 20)), ("k", (24, 3, 3, 20)), ("y", (2, 4, 6, 24)))
    )
    window, step, whole = (3, 3), (1, 1, 2, 2), (1, 1, 1, 1)
    w.op("Conv2D", x, k, shape=y.shape, kernel_size=window, stride=step, pad=(0, 0, 0, 0), dilation=whole, group=1)
    w.ops[0] = replace(w.ops[0], outs=(y,))
    return w.desc("convolution", (x, k), y)


CASES: dict[str, tuple[KernelDesc, str]] = {
    "whole fractals": (product(64, 96, 128), AIC_ONLY),
    "ragged": (product(61, 37, 83), AIC_ONLY),
    "left transposed": (product(61, 37, 83, left=True), AIC_ONLY),
    "right transposed": (product(61, 37, 83, right=True), AIC_ONLY),
    "both transposed": (product(61, 37, 83, left=True, right=True), AIC_ONLY),
    "float32 out": (product(40, 33, 70, out=FLOAT32), AIC_ONLY),
    "bfloat16": (product(40, 33, 70, dtype=BFLOAT16), AIC_ONLY),
    "relu": (product(40, 33, 70, tail="relu"), AIC_ONLY),
    "many steps": (product(33, 50, 1500), AIC_ONLY),
    "kept factor": (product(700, 320, 100), AIC_ONLY),
    "more tiles than cores": (batched((30,), 20, 50, 100), AIC_ONLY),
    "batch of two axes": (batched((2, 3), 32, 48, 64, right=True), AIC_ONLY),
    "NZ": (fractals(64, 96, 128, left=False, right=False), AIC_ONLY),
    "NZ left transposed": (fractals(64, 96, 128, left=True, right=False), AIC_ONLY),
    "NZ right transposed": (fractals(64, 96, 128, left=False, right=True), AIC_ONLY),
    "batch and exp": (batched((3, 5), 50, 64, 40, power=True), MIX),
    "bias": (product(64, 96, 128, tail="bias relu"), MIX),
    "exp": (product(61, 37, 83, out=FLOAT32, tail="exp"), MIX),
    "rounded factors": (rounded(64, 80, 48), MIX),
    "convolution": (convolution(), AIC_ONLY),
    "attention": (attention(2, 20, 33, 16), MIX),
    "matrix and vector": (product(64, 1, 128), AIV_ONLY),
    "float32": (product(20, 20, 20, dtype=FLOAT32), AIV_ONLY),
}


def run(kernel: Kernel, text: str | None = None) -> tuple[list[np.ndarray], Report]:
    """Outputs and report on drawn inputs; raises CodegenError where the run is not clean."""
    entry = SimulatedEntry(text or kernel.source, kernel.nest)
    outputs = replace(kernel, entry=entry)(*draw(kernel.desc))
    return [np.asarray(one, np.float64) for one in outputs], entry.reports[0]


def expected(desc: KernelDesc) -> list[np.ndarray]:
    return [np.asarray(one, np.float64) for one in reference(desc)(*draw(desc))]


@pytest.mark.parametrize("name", CASES)
def test_products_agree_with_their_meaning(name: str) -> None:
    desc, kind = CASES[name]
    kernel = compile(desc, "ascend")
    assert read_kernel(kernel.source).kind == kind
    assert print_kernel(read_kernel(kernel.source)) == kernel.source
    tolerance = 2e-2 if "bfloat16" in name else 2e-3
    for one, other in zip(run(kernel)[0], expected(desc), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())


def test_one_kernel_serves_many_sizes() -> None:
    kernel = compile(product(sym("M"), sym("N"), sym("K")), "ascend")
    random = np.random.default_rng(0)
    for m, n, k in ((1, 1, 1), (5, 7, 9), (16, 16, 16), (193, 161, 333), (1, 300, 65)):
        a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
        (found,) = kernel(a, b)
        wanted = a.astype(np.float32) @ b.astype(np.float32)
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())


def test_what_follows_element_by_element_is_done_on_the_way_out() -> None:
    source = compile(product(64, 64, 64, tail="relu"), "ascend").source
    assert "true, QuantMode_t::F322F16, 0, 1, 0, 0, 0" in source
    assert "ASCEND_IS_AIC" not in source


STEPS = batched((26,), 40, 33, 1000)
"""Several steps along the depth and several tiles for a core: every flag of a product is there."""
FAULTS = {
    "copied before it was used": ("WaitFlag<HardEvent::MTE1_MTE2>", 0),
    "loaded before it was copied": ("WaitFlag<HardEvent::MTE2_MTE1>", 0),
    "multiplied before it was loaded": ("WaitFlag<HardEvent::MTE1_M>", 0),
    "loaded before it was multiplied": ("WaitFlag<HardEvent::M_MTE1>", 0),
    "out before it was summed": ("WaitFlag<HardEvent::M_FIX>", 0),
    "summed before it was out": ("WaitFlag<HardEvent::FIX_M>", 0),
    "two Mmad at once": ("PipeBarrier<PIPE_M>", 0),
    "no zeros": ("InitConstValue", 0),
    "no Mmad": ("Mmad", 0),
    "no left factor": ("DataCopy(a_l1", 0),
    "nothing out": ("Fixpipe", 0),
}


def without(text: str, start: str) -> str:
    """The text without the first line that begins so."""
    lines = text.splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.strip().startswith(start))
    return "".join(lines[:at] + lines[at + 1 :])


def is_rejected(kernel: Kernel, text: str) -> bool:
    """Whether the simulator finds a fault, or the numbers are wrong."""
    try:
        found = run(kernel, text)[0]
    except CodegenError:
        return True
    return any(
        not np.allclose(one, other, rtol=1e-2, atol=1e-2)
        for one, other in zip(found, expected(kernel.desc), strict=True)
    )


@pytest.fixture(scope="module")
def stepping() -> Kernel:
    return compile(STEPS, "ascend")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lost_line_is_found(stepping: Kernel, fault: str) -> None:
    assert is_rejected(stepping, without(stepping.source, FAULTS[fault][0]))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("deep_0 == 0", "deep_0 == 1"),  # sums that start from what was there
        ("deep_0 < 2;", "deep_0 < 1;"),  # a step too few
        ("Mmad(sums_0, a_l0_0[half_step_0 * 16128]", "Mmad(sums_0, a_l0_0[0]"),  # the other copy of two
        ("F322F16", "F322BF16"),
        ("false, 0});", "true, 0});"),  # a factor transposed that is not
    ],
)
def test_planted_faults_are_found(stepping: Kernel, old: str, new: str) -> None:
    assert old in stepping.source
    assert not is_rejected(stepping, stepping.source)
    assert is_rejected(stepping, stepping.source.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("pads_0, 48, 1, 672", "pads_0, 32, 1, 672", "bad-parameter"),  # more rows than the image has
        ("pads_0, 48, 1, 672", "pads_0, 48, 1, 320", "bad-parameter"),  # more columns than it has
        ("step_0 * 21 * 16)", "step_0 * 21 * 16 + 8)", "bad-parameter"),  # within a fractal
        ("pads_0, 48, 1, 672", "pads_0, 64, 1, 672", "uninitialised|out-of-bounds"),  # the wrong distance of columns
        ("0, 1, 1, 1, 1, 1, 1,", "0, 2, 1, 1, 1, 1, 1,", "not-modelled"),  # every other point
        ("672, 1, 48, 48,", "672, 1, 48, 64,", "bad-parameter"),  # more columns of b than there are
        ("a_l1_0[half_deep_0 * 32256]", "a_l1_0[half_deep_0 * 32256 + 8]", "misaligned"),
    ],
)
def test_faults_of_windows_are_found(stepping: Kernel, old: str, new: str, kind: str) -> None:
    at = stepping.source.index("LoadData3DParamsV2") - 80
    head, tail = stepping.source[:at], stepping.source[at:]
    assert old in tail
    with pytest.raises(CodegenError, match=kind):
        run(stepping, head + tail.replace(old, new, 1))


@pytest.mark.parametrize(
    ("case", "lost"),
    [
        ("bias", "CrossCoreWaitFlag"),
        ("bias", "CrossCoreSetFlag<2, PIPE_FIX>"),
        ("attention", "CrossCoreSetFlag<0, PIPE_FIX>"),
        ("attention", "CrossCoreSetFlag<2, PIPE_MTE3>"),
    ],
)
def test_cores_that_do_not_wait_for_each_other_are_found(case: str, lost: str) -> None:
    kernel = compile(CASES[case][0], "ascend")
    assert is_rejected(kernel, without(kernel.source, lost))


def test_vector_cores_take_tiles_as_they_come() -> None:
    kernel = compile(batched((60,), 48, 64, 160, power=True), "ascend")
    assert "CrossCoreSetFlag<0" not in kernel.source
    spans = run(kernel)[1].spans
    last = max(span.stop for span in spans if span.pipe == "FIX")
    first = min(span.start for span in spans if span.pipe == "MTE3")
    assert first < last


@pytest.mark.parametrize("tail", ["softmax", "ragged tiles"])
def test_vector_cores_wait_for_all_tiles_where_they_must(tail: str) -> None:
    desc = attention(2, 40, 48, 32) if tail == "softmax" else product(300, 1100, 64, tail="exp")
    assert "CrossCoreSetFlag<0, PIPE_FIX>" in compile(desc, "ascend").source


def sizes_of(desc: KernelDesc) -> tuple[Sizes, Problem]:
    (found,) = plan_of(compile(desc, "ascend").nest, ASCEND_910B).products
    return choose(found, ASCEND_910B), problem_of(found)


def test_tiles_fit_the_memories_twice() -> None:
    memories = ASCEND_910B.memories
    problem = sizes_of(product(700, 320, 1000))[1]
    for sizes in candidates(problem, unit_of(ASCEND_910B)):
        assert 2 * 2 * sizes.rows * sizes.step <= memories["L0A"]
        assert 2 * 2 * sizes.columns * sizes.step <= memories["L0B"]
        assert 4 * sizes.rows * sizes.columns <= memories["L0C"]
        assert sizes.deep % sizes.step == sizes.step % 16 == 0


def test_a_factor_is_kept_where_reading_it_again_takes_longer() -> None:
    sizes, problem = sizes_of(product(1024, 1024, 1024))
    other = replace(sizes, kept="none", reach=1)
    assert sizes.kept != "none"
    assert estimate(sizes, problem, unit_of(ASCEND_910B)) < estimate(other, problem, unit_of(ASCEND_910B))


def test_the_estimate_is_near_the_simulated_time() -> None:
    desc = product(256, 384, 512)
    sizes, problem = sizes_of(desc)
    cycles = run(compile(desc, "ascend"))[1].pipeline_cycles
    assert estimate(sizes, problem, unit_of(ASCEND_910B)) == pytest.approx(cycles, rel=0.25)


@pytest.mark.parametrize(("left", "right"), [(False, False), (False, True), (True, False), (True, True)])
def test_mmad_is_busy_half_of_the_time_in_a_product_of_some_tiles(left: bool, right: bool) -> None:
    """One load a factor and step, and no barrier of all pipes where one factor stays in L1."""
    kernel = compile(product(2048, 1024, 512, left=left, right=right), "ascend")
    assert kernel.source.count("PipeBarrier<PIPE_ALL>") == 1
    assert kernel.source.count("LoadData(") == 2
    report = run(kernel)[1]
    assert report.pipe_cycles()["M"] > 0.5 * report.cycles


def test_pipes_of_a_cube_core_overlap() -> None:
    report = run(compile(batched((48,), 128, 128, 512), "ascend"))[1]
    busy = report.pipe_cycles()
    assert sum(busy.values()) > 1.5 * report.pipeline_cycles


@pytest.mark.parametrize(
    "desc", [STEPS, product(700, 320, 1000), product(sym("M"), sym("N"), sym("K"))], ids=("steps", "kept", "open")
)
def test_no_flag_or_barrier_of_a_product_is_idle(desc: KernelDesc) -> None:
    built = compile(desc, "ascend")
    kernel = read_kernel(built.source)
    found = minimality(kernel, list(launches(built.nest, kernel, ASCEND_910B)), ASCEND_910B)
    assert found.groups
    assert not found.idle
