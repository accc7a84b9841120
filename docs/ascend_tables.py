"""The tables of docs/ascend.md that are made by compiling kernels: what overlap and shared memory gain, by the time model.

Times are those of a launch on all cores without data (:mod:`kernelgen.simulators.ascendc.outline`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from docs.markdown import table
from kernelgen.ascendc.printer import print_kernel
from kernelgen.ascendc.reader import read_kernel
from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.link import linked
from kernelgen.driver import compile
from kernelgen.machines.ascend.machines import ASCEND_910B
from kernelgen.nest.nodes import Nest
from kernelgen.simulators.ascendc import Report
from kernelgen.simulators.ascendc.outline import outline
from kernelgen.simulators.ascendc.timeline import picture
from kernelgen.targets.ascend.lower.assemble import assemble
from kernelgen.targets.ascend.lower.launch import blocks_of
from kernelgen.targets.ascend.lower.program import storage
from kernelgen.targets.ascend.lower.tile_lengths import fitted
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dtypes import FLOAT16, FLOAT32, DType
from tests.support.order_launches import launch

ROOT = Path(__file__).parents[1]
PAGE, PICTURE = "docs/ascend.md", "docs/ascend_overlap.svg"
ELEMENTS = 48 * 8192
"""Of the elementwise kernels: 8192 a core."""
ROWS, COLUMNS = 96, 16384


class Chain:
    """Appends operators on one shape."""

    def __init__(self, dtype: DType, *shape: int) -> None:
        self.dtype, self.shape = dtype, shape
        self.ops: list[Operation] = []

    def input(self, name: str) -> Tensor:
        """An input."""
        return Tensor(name, self.shape, self.dtype)

    def constant(self, value: float) -> Tensor:
        """A constant."""
        return Tensor(f"const_{len(self.ops)}", (1,), self.dtype, value=value)

    def op(self, name: str, *inputs: Tensor, shape: tuple[int, ...] = (), **attrs: object) -> Tensor:
        """The result of an operator."""
        result = Tensor(f"t{len(self.ops)}", shape or self.shape, self.dtype)
        self.ops.append(Operation(name, inputs, (result,), Attrs.of(attrs)))
        return result

    def row(self, name: str, operand: Tensor) -> Tensor:
        """One number for each row."""
        return self.op(name, operand, shape=(self.shape[0], 1), axis=(1,), keep_dims=True)

    def desc(self, name: str, inputs: tuple[Tensor, ...], output: Tensor) -> KernelDesc:
        """The kernel."""
        return linked(Document(name, inputs, (output,), tuple(self.ops)))


def sigmoid(chain: Chain, x: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    return chain.op("Reciprocal", chain.op("Add", chain.op("Exp", chain.op("Neg", x)), chain.constant(1.0)))


DRAWN = "1 - 2 / (exp(2 x) + 1)"


def quotient(chain: Chain, x: Tensor) -> Tensor:
    """Computing takes about half the time of the copies."""
    grown = chain.op("Exp", chain.op("Mul", x, chain.constant(2.0)))
    share = chain.op("RealDiv", chain.constant(2.0), chain.op("Add", grown, chain.constant(1.0)))
    return chain.op("Sub", chain.constant(1.0), share)


def elementwise() -> Mapping[str, KernelDesc]:
    """Kernels whose time is mostly copies."""
    half, full = (Chain(dtype, ELEMENTS) for dtype in (FLOAT16, FLOAT32))
    x, y = full.input("x"), full.input("y")
    found = {"x + y": full.desc("add", (x, y), full.op("Add", x, y))}
    for name, kind in (("exp(x)", FLOAT32), ("exp(x), float16", FLOAT16)):
        chain = Chain(kind, ELEMENTS)
        found[name] = chain.desc("exp", (chain.input("x"),), chain.op("Exp", chain.input("x")))
    found["sigmoid(x), float16"] = half.desc("sigmoid", (half.input("x"),), sigmoid(half, half.input("x")))
    swish, ratio = Chain(FLOAT32, ELEMENTS), Chain(FLOAT32, ELEMENTS)
    found["x sigmoid(x)"] = swish.desc("swish", (x,), swish.op("Mul", sigmoid(swish, x), x))
    found[DRAWN] = ratio.desc("ratio", (x,), quotient(ratio, x))
    return found


def large() -> Mapping[str, KernelDesc]:
    """Kernels whose tiles do not fit the unified buffer, or not at a useful length, when each has its own memory."""
    found = {
        f"{times} softmaxes of rows of {columns}": softmaxes(times, columns)
        for times, columns in ((2, 16384), (3, 12000))
    }
    chain = Chain(FLOAT32, ROWS, COLUMNS)
    x = chain.input("x")
    e = chain.op("Exp", x)
    p = chain.op("Sqrt", chain.op("RealDiv", e, chain.row("ReduceSum", e)))
    q = chain.op("Mul", p, x)
    found[f"rows of {COLUMNS} scaled twice"] = chain.desc(
        "scaled", (x,), chain.op("RealDiv", q, chain.row("ReduceMax", q))
    )
    half = Chain(FLOAT16, ELEMENTS * 8)
    found["gelu(x) by tanh, float16"] = half.desc("gelu", (half.input("x"),), gelu(half, half.input("x")))
    return found


def gelu(chain: Chain, x: Tensor) -> Tensor:
    """``x / 2 (1 + tanh(0.79788 (x + 0.044715 x^3)))``."""
    cube = chain.op("Mul", chain.op("Mul", x, x), x)
    inner = chain.op("Add", x, chain.op("Mul", cube, chain.constant(0.044715)))
    share = chain.op("Tanh", chain.op("Mul", inner, chain.constant(0.79788)))
    return chain.op("Mul", chain.op("Mul", x, chain.constant(0.5)), chain.op("Add", share, chain.constant(1.0)))


def softmaxes(times: int, columns: int) -> KernelDesc:
    """Softmax of softmax of ... of rows that stay in the unified buffer."""
    chain = Chain(FLOAT32, ROWS, columns)
    first = x = chain.input("x")
    for _ in range(times):
        power = chain.op("Exp", chain.op("Sub", x, chain.row("ReduceMax", x)))
        x = chain.op("RealDiv", power, chain.row("ReduceSum", power))
    return chain.desc("softmaxes", (first,), x)


def timed(nest: Nest, doubled: bool = True, levels: tuple[str, ...] = storage.LEVELS) -> Report:
    """The estimate for a nest's kernel on all cores that have something to do."""
    kernel = read_kernel(print_kernel(assemble(nest, ASCEND_910B, doubled, levels)))
    return outline(kernel, launch(nest, kernel, {}, blocks_of(nest, ASCEND_910B, {})), ASCEND_910B).report


@cache
def overlaps() -> Mapping[str, tuple[Report, Report]]:
    """Kernel -> one copy of every tile, two copies."""
    nests = {name: compile(desc, "ascend").nest for name, desc in elementwise().items()}
    return {name: (timed(nest, doubled=False), timed(nest)) for name, nest in nests.items()}


def overlap_table() -> str:
    """What two copies of tiles gain."""
    head = ("kernel", "one copy, cycles", "two copies", "gain", "bound by", "MTE2", "V", "MTE3")
    rows: list[Sequence[str]] = []
    for name, (single, double) in overlaps().items():
        busy = double.pipe_cycles()
        shares = [f"{busy[pipe] / double.pipeline_cycles:.0%}" for pipe in ("MTE2", "V", "MTE3")]
        gain = f"{single.cycles / double.cycles:.2f}"
        rows.append((f"`{name}`", f"{single.cycles:.0f}", f"{double.cycles:.0f}", gain, double.bound_by, *shares))
    return table(head, rows)


@cache
def storages() -> Mapping[str, tuple[str, ...]]:
    """Kernel -> cells of the table."""
    return {name: _storage(compile(desc, "ascend").nest) for name, desc in large().items()}


def _storage(nest: Nest) -> tuple[str, ...]:
    program, layout = fitted(nest, ASCEND_910B, True, storage.LEVELS)
    alone = storage.place(program, 1 << 30, (storage.ALONE,))
    needed = alone.size if alone is not None else 0
    with_rewrite = timed(nest)
    without = timed(nest, levels=(storage.ALONE,))
    cells = (f"{needed:,}", f"{layout.size:,}", f"{without.cycles:.0f}", f"{with_rewrite.cycles:.0f}")
    return str(len(program.tiles)), *cells


def storage_table() -> str:
    """What sharing of memory gains."""
    head = ("kernel", "tiles", "bytes, each alone", "bytes, shared", "cycles without", "cycles")
    return table(head, [(name, *cells) for name, cells in storages().items()])


def pages() -> Mapping[str, str]:
    """File name, from the root -> text."""
    page = (ROOT / PAGE).read_text()
    for mark, text in (("overlap", overlap_table()), ("storage", storage_table())):
        between = re.compile(rf"(<!-- {mark}: .*? -->\n).*?(<!-- end of {mark} -->)", re.DOTALL)
        page = between.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)
    return {PAGE: page, PICTURE: picture(overlaps()[DRAWN][1])}
