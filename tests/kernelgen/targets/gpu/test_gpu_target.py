"""The GPU target end to end: CUDA text, through NVRTC, in the PTX interpreter, against the reference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernel_examples import Writer, column_sum, constant, layer_norm, momentum, softmax, tensor, transpose_add

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.errors import BackendUnavailable, CodegenError
from kernelgen.nest.nodes import Block, Compare, For, Grid, If, Literal, LoopKind, Nest, Num, Store, Sync, Var
from kernelgen.nest.walk import map_blocks, statements
from kernelgen.plan import Plan
from kernelgen.samples.inputs import draw
from kernelgen.stages import lower
from kernelgen.targets.gpu.dialects.program import launches
from kernelgen.targets.gpu.launch import interpret
from kernelgen.targets.gpu.launch.interpret import InterpretedEntry
from kernelgen.targets.gpu.target import emit
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.dtypes import BOOL, FLOAT16, INT32
from kernelgen.verify import Status, verify


def total(rows: int, columns: int) -> KernelDesc:
    w, x = Writer(), tensor("x", rows, columns)
    return w.desc("total", (x,), w.op("ReduceSum", x, shape=(1, 1), axis=(0, 1), keep_dims=True))


def scaled(*shape: int, dtype=FLOAT16) -> KernelDesc:
    w, x = Writer(), tensor("x", *shape, dtype=dtype)
    return w.desc("scaled", (x,), w.op("Mul", x, constant(2, dtype), shape=shape))


def any_of(rows: int, columns: int) -> KernelDesc:
    w, x = Writer(), tensor("x", rows, columns)
    positive = w.op("Greater", x, constant(0.99), shape=(rows, columns), dtype=BOOL)
    return w.desc("any_of", (x,), w.op("ReduceAny", positive, shape=(rows, 1), axis=(1,), keep_dims=True))


def rows_and_columns(rows: Dim, columns: Dim) -> KernelDesc:
    """Sums of rows and the greatest of columns in one loop: threads may share the one or the other."""
    w, x = Writer(), tensor("x", rows, columns)
    sums = w.op("ReduceSum", x, shape=(rows, 1), axis=(1,), keep_dims=True)
    return w.desc("both", (x,), sums, w.op("ReduceMax", x, shape=(columns,), axis=(0,), keep_dims=False))


CASES = {
    "short rows": softmax(37, 100),
    "long rows": softmax(3, 1500),
    "rows of one warp": softmax(2000, 64),
    "rows of unknown length": softmax(sym("M"), sym("N")),
    "several reductions of a row": layer_norm(5, 1024),
    "columns": column_sum(40, 100),
    "rows and columns at once": rows_and_columns(sym("N"), 3),
    "transposed": transpose_add(33, 65),
    "in place": momentum(),
    "everything": total(30, 50),
    "halves": scaled(3, 1000),
    "odd halves": scaled(3, 7),
    "integers": scaled(77, 5, dtype=INT32),
    "truths": any_of(9, 300),
}


@pytest.mark.parametrize("name", CASES)
def test_kernels_agree_with_the_reference(name: str) -> None:
    record = verify(CASES[name], "gpu")
    skip_without_compiler(record.reason, record.message)
    assert (record.status, record.message) == (Status.PASSED, "")


def test_a_fused_kernel_rounds_as_its_operators_do() -> None:
    """A product that is added with one rounding differs in the last bit from numpy's, and far more where terms cancel."""
    w, arrays = Writer(), [tensor(name, 4096) for name in "xyz"]
    product = w.op("Mul", *arrays[:2], shape=(4096,))
    kernel, _ = run(w.desc("rounds", tuple(arrays), w.op("Sub", product, arrays[2], shape=(4096,))))
    x, y = (np.random.default_rng(seed).standard_normal(4096).astype(np.float32) for seed in (0, 1))
    assert not kernel(x, y, x * y)[0].any()


def test_what_blocks_that_did_not_run_may_overwrite_is_not_compared() -> None:
    nest = lower(scaled(400, 4096), Plan(), "gpu").nest
    (grid,) = (part for part in nest.body.statements if isinstance(part, Grid))
    later = replace(grid, name=f"{grid.name}_again", body=Block((If((Compare("==", Var("bx"), Num(1)),), grid.body),)))
    again = replace(nest, body=Block((*nest.body.statements, later)))
    x, y = np.ones((2, 400, 4096), np.float16)
    sample = InterpretedEntry(emit(again), again).sample((x, y))
    assert sample.blocks < sample.blocks_in_all
    assert sample.written[1] is not None
    assert not sample.written[1].any()


def test_a_row_is_read_once_and_moved_in_wide_pieces() -> None:
    kernel, entry = run(softmax(4, 1024))
    (report,) = entry.reports
    assert report.counts.of("global load").bytes == 4 * 1024 * 4 == report.counts.of("global store").bytes
    assert report.counts.of("global load").requests == 4 * 1024 // (32 * 4)
    assert report.counts.of("local load").requests == 0
    assert "uint4" in kernel.source


def test_short_rows_share_a_block_and_need_no_barrier() -> None:
    kernel, entry = run(softmax(2000, 64))
    (launch,) = launches(kernel.nest)
    assert launch.threads == (16, 8, 1)
    assert launch.shared_bytes == entry.reports[0].counts.barriers == 0


def test_neighbouring_threads_read_neighbouring_columns() -> None:
    _, entry = run(column_sum(40, 256))
    assert entry.reports[0].counts.of("global load").sectors_per_needed == 1.0


def test_a_kernel_compiles_when_it_is_called_and_not_before() -> None:
    kernel = kernelgen.compile(softmax(4, 64), "gpu")
    assert isinstance(kernel.entry, InterpretedEntry)
    assert "compiled" not in vars(kernel.entry)


def test_no_spills() -> None:
    _, entry = run(layer_norm(3, 4096))
    assert all(used.spill_loads == 0 for used in entry.compiled.resources.values())


def test_what_takes_too_long_to_interpret_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpret, "STEP_LIMIT", 10)
    record = verify(column_sum(40, 256), "gpu")
    skip_without_compiler(record.reason, record.message)
    assert (record.status, record.reason) == (Status.SKIPPED, "budget")


# ---------------------------------------------------------------- planted faults


def without_barriers(nest: Nest) -> Nest:
    return edited(nest, lambda block: Block(tuple(s for s in block.statements if not isinstance(s, Sync))))


def with_wider_loops(nest: Nest) -> Nest:
    def widen(block: Block) -> Block:
        return Block(
            tuple(
                replace(s, upper=Num(s.upper.value + 1))
                if isinstance(s, For) and s.kind is LoopKind.UNROLL and isinstance(s.upper, Num)
                else s
                for s in block.statements
            )
        )

    return edited(nest, widen)


def without_guards(nest: Nest) -> Nest:
    def bare(block: Block) -> Block:
        parts = [inner for s in block.statements for inner in (s.body.statements if isinstance(s, If) else (s,))]
        return Block(tuple(parts))

    return edited(nest, bare)


def stored_by_all(nest: Nest) -> Nest:
    """The output's first element is stored by every thread."""
    first = next(s for s in statements(nest.body) if isinstance(s, Store) and s.buffer in nest.buffers)
    again = Store(first.buffer, tuple(Num(0) for _ in first.index), Literal(1.0, first.buffer.dtype))
    grids = [replace(g, body=Block((*g.body.statements, again))) for g in nest.body.statements if isinstance(g, Grid)]
    return replace(nest, body=Block(tuple(grids)))


def divergent(nest: Nest) -> Nest:
    guard = Compare("<", Var("tx"), Num(1))

    def some(block: Block) -> Block:
        return Block(tuple(If((guard,), Block((s,))) if isinstance(s, Sync) else s for s in block.statements))

    return edited(nest, some)


def edited(nest: Nest, edit) -> Nest:
    return replace(nest, body=map_blocks(nest.body, edit))


FAULTS = {
    "a missing barrier": (softmax(3, 1500), without_barriers, "shared-race"),
    "a widened loop": (softmax(3, 4096), with_wider_loops, "out-of-bounds"),
    "a dropped guard": (scaled(3, 7), without_guards, "out-of-bounds"),
    "a store by all": (scaled(3, 70), stored_by_all, "global-race"),
    "a divergent barrier": (softmax(3, 1500), divergent, "shared-race|divergent-barrier"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_an_error_that_names_kernel_and_line(name: str) -> None:
    desc, plant, kind = FAULTS[name]
    nest = plant(kernelgen.compile(desc, "gpu").nest)
    entry = InterpretedEntry(emit(nest), nest)
    with pytest.raises(CodegenError, match=kind) as caught:
        call(desc, entry)
    assert f"kernel '{desc.name}_0'" in str(caught.value)
    assert "source line" in str(caught.value)


# ---------------------------------------------------------------- helpers


def run(desc: KernelDesc) -> tuple[kernelgen.Kernel, InterpretedEntry]:
    kernel = kernelgen.compile(desc, "gpu")
    entry = kernel.entry
    assert isinstance(entry, InterpretedEntry)
    call(desc, entry)
    return kernel, entry


def call(desc: KernelDesc, entry: InterpretedEntry) -> None:
    outputs = [np.zeros([int(str(dim)) for dim in t.shape], t.dtype.numpy) for t in desc.outputs]
    try:
        entry((*draw(desc, 0), *outputs), ())
    except BackendUnavailable as error:
        pytest.skip(str(error))


def skip_without_compiler(reason: str, message: str) -> None:
    if reason == "unavailable":
        pytest.skip(message)
