"""Code for older processors, run on this one: AVX2, AVX2 without half conversions, SSE4, plain x86-64."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from kernelgen.nest.nodes import Call
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.targets.cpu.emit import emit_for
from kernelgen.targets.cpu.loops.block_sizes import sizes_for
from kernelgen.targets.cpu.runtime.llvm import machine_text
from kernelgen.targets.cpu.text.host import LEVELS, Host
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, DType, dtype
from tests.support.errors import ulps
from tests.support.hosts import HOSTS, entry_on, needs_avx2, run_on
from tests.support.kernel_examples import Writer, tensor
from tests.support.nests import call, map_nest, reduce_nest, softmax_nest

pytestmark = needs_avx2


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> Host:
    return HOSTS[request.param]


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("columns", [1, 7, 8, 37])
def test_softmax(host: Host, columns: int) -> None:
    x, y = floats(5, columns), np.zeros((5, columns), np.float32)
    run_on(host, softmax_nest(5, columns), x, y)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "sin", "cos", "tan", "expm1", "log1p", "sinh", "round"])
def test_math(host: Host, name: str) -> None:
    x = np.abs(floats(45)) + np.float32(0.1)
    y = np.zeros_like(x)
    run_on(host, map_nest(lambda a: call(name, a), 45, FLOAT32), x, y)
    import math

    exact = [round(v) if name == "round" else getattr(math, name)(v) for v in x.tolist()]
    np.testing.assert_allclose(y, exact, rtol=1e-6)


ENDS = {
    "exp": (np.exp, (-106, -87.2, 88.6, 91), 1.2), "expm1": (np.expm1, (-31, -16, 88.6, 91), 1.6),
    "sinh": (np.sinh, (-91, -89.3, 89.3, 91), 1.8), "cosh": (np.cosh, (-91, -89.3, 89.3, 91), 1.6),
    "log": (np.log, (1e-45, 1e-37, 3e38, 3.4e38), 1.2), "log1p": (np.log1p, (-1, -0.99, 1e38, 3.4e38), 1.6),
}  # fmt: skip
"""From where to where results become subnormal or infinite, and where arguments do; how far results are off at most."""


@pytest.mark.parametrize("name", ENDS)
def test_functions_at_their_ends(host: Host, name: str) -> None:
    reference, (low, lower, higher, high), bound = ENDS[name]
    inside = np.concatenate([np.linspace(low, lower, 4000), np.linspace(higher, high, 4000)])
    x = np.concatenate([inside, [0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-40, -1e-40]]).astype(np.float32)
    y = np.zeros_like(x)
    run_on(host, map_nest(lambda a: call(name, a), len(x), FLOAT32), x, y)
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64))
    assert ulps(y, exact) <= bound
    assert not y[np.abs(exact) < 2.0**-151].any()
    np.testing.assert_array_equal(np.signbit(y[exact == 0]), np.signbit(exact[exact == 0]))


def test_exp_of_what_is_not_above_zero(host: Host) -> None:
    x = np.concatenate([np.linspace(-110, 110, 40_001), [-np.inf, np.nan, 3e38]]).astype(np.float32)
    y = np.zeros_like(x)
    run_on(host, map_nest(lambda a: call("exp", call("neg", call("abs", a))), len(x), FLOAT32), x, y)
    exact = np.exp(-np.abs(x.astype(np.float64)))
    assert ulps(y, exact) <= 1.2
    assert not y[exact < 2.0**-151].any()


def test_softplus_below_zero(host: Host) -> None:
    x = floats(45) * np.float32(30)
    y = np.zeros_like(x)
    run_on(host, map_nest(lambda a: call("log1p", call("exp", call("neg", call("abs", a)))), 45, FLOAT32), x, y)
    np.testing.assert_allclose(y, np.log1p(np.exp(-np.abs(x.astype(np.float64)))), rtol=4e-7)


@pytest.mark.parametrize("type_", [FLOAT16, BFLOAT16, dtype("int8"), BOOL], ids=str)
def test_narrow_types_have_exact_tails(host: Host, type_: DType) -> None:
    x, y = (floats(2, 45) * 3).astype(type_.numpy)
    z = np.zeros_like(x)
    run_on(host, map_nest(lambda a, b: call("maximum", call("add", a, b), b), 45, type_, type_), x, y, z)
    wide = np.float32 if type_.is_float else type_.numpy
    expected = np.maximum((x.astype(wide) + y.astype(wide)).astype(type_.numpy), y)
    np.testing.assert_array_equal(z.astype(np.float32), expected.astype(np.float32))


def test_every_half_converts_exactly(host: Host) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = np.zeros(1 << 16, np.float32)
    run_on(host, map_nest(lambda a: Call("cast", (a,), FLOAT32), 1 << 16, FLOAT16), halves, wide)
    np.testing.assert_array_equal(wide, halves.astype(np.float32))


@pytest.mark.parametrize("source", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("target", [FLOAT16, BFLOAT16], ids=str)
def test_narrowing_rounds_to_nearest_even(host: Host, source: DType, target: DType) -> None:
    with np.errstate(all="ignore"):
        every = np.arange(1 << 16, dtype=np.uint16).view(target.numpy).astype(source.numpy)
        every = every[np.isfinite(every)]
        ties = (np.sort(every)[1:] + np.sort(every)[:-1]) / 2
        values = np.concatenate(
            [every, ties, np.nextafter(ties, 0), np.nextafter(ties, 9e9), [np.inf, np.nan, 65520.0, 1e38]]
        )
        values = values.astype(source.numpy)
        expected = values.astype(target.numpy).astype(np.float32)
    narrow = np.zeros(len(values), target.numpy)
    run_on(host, map_nest(lambda a: Call("cast", (a,), target), len(values), source), values, narrow)
    if (source, target) == (FLOAT64, BFLOAT16):  # ml_dtypes rounds twice there
        doubly = values.astype(np.float32)
        expected = np.where(doubly.astype(np.float64) == values, expected, narrow.astype(np.float32))
    np.testing.assert_array_equal(narrow.astype(np.float32), expected)


@pytest.mark.parametrize("function", ["add", "maximum"])
def test_reductions(host: Host, function: str) -> None:
    x, y = floats(3, 45), np.zeros(3, np.float32)
    run_on(host, reduce_nest(function, 3, 45), x, y)
    np.testing.assert_allclose(y, x.sum(axis=1) if function == "add" else x.max(axis=1), rtol=1e-5, atol=1e-6)


FEATURES_512 = frozenset(("avx", "avx2", "avx512bw", "avx512f", "avx512vbmi2", "avx512vl", "fma", "f16c"))
BLOCKED = {
    "avx512": Host(
        "icelake-server", frozenset(("avx", "avx2", "avx512bw", "avx512f", "avx512vbmi2", "avx512vl", "fma", "f16c"))
    ),
    "avx2": HOSTS["avx2"],
    "sse4": HOSTS["sse4"],
}


def inner_loops(assembly: str) -> list[str]:
    """The straight blocks that end with a jump back to their own label."""
    blocks: list[str] = []
    for part in re.split(r"\n(?=\.LBB\w+:)", assembly):
        label, body = part.split(":", 1)[0], part.split(":", 1)[-1]
        back = re.search(rf"\n\tj\w+\t{re.escape(label)}\n", body)
        if label.startswith(".LBB") and back:
            blocks.append(body[: back.end()])
    return blocks


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("name", BLOCKED)
def test_blocks_of_products_fill_the_registers_and_no_more(name: str, kind: str, transposed: bool) -> None:
    host, extent = BLOCKED[name], 48
    a, b = (tensor(each, extent, extent, dtype=dtype(kind)) for each in "ab")
    w = Writer()
    y = w.op("BatchMatMul", a, b, shape=(extent, extent), transpose_a=False, transpose_b=transposed)
    desc = w.desc("product", (a, b), y)
    source = emit_for(lower(desc, Plan(cpu=sizes_for(host))).nest, host)
    products = [
        loop for loop in inner_loops(machine_text(source, host)) if re.search(r"\tv?f?n?m(add|ul)\w*p[sd]\t", loop)
    ]
    assert products
    assert not any("%rsp" in loop or "%rbp" in loop for loop in products)


@pytest.mark.parametrize(
    ("more", "ahead"),
    [(("avx512vbmi2",), 4096), (("avx512vbmi2", "sse4a"), 1024), ((), 1024)],
    ids=["Intel", "AMD", "level 4"],
)
def test_words_are_asked_for_farther_ahead_where_that_was_measured(more: tuple[str, ...], ahead: int) -> None:
    level = LEVELS["x86-64-v4"]
    assert sizes_for(Host("any", level.features | set(more))).ahead == ahead


def test_products_of_sizes_nobody_knows(host: Host) -> None:
    """How many rows a block has depends on the registers: what is left below one must not depend on their number."""
    w = Writer()
    a, b = tensor("a", sym("M"), 19), tensor("b", 19, sym("N"))
    y = w.op("BatchMatMul", a, b, shape=(sym("M"), sym("N")), transpose_a=False, transpose_b=False)
    nest = lower(w.desc("product", (a, b), y), Plan(cpu=sizes_for(host))).nest
    run = entry_on(host, nest)
    for rows, columns in product((1, 5, 6, 11, 16, 23), (1, 16, 37)):
        left, right, found = floats(rows, 19), floats(19, columns), np.zeros((rows, columns), np.float32)
        run((left, right, found))
        np.testing.assert_allclose(found, left @ right, rtol=1e-5, atol=1e-5)
