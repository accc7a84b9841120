"""Matrix products in tiles: every data type, transposition and odd size in the PTX interpreter, proofs, planted faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kernelgen
from kernelgen.composite.description import KernelDesc
from kernelgen.errors import BackendUnavailable, CodegenError, NestError, ProofError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Alloc,
    AsyncCopy,
    AwaitCopies,
    Bind,
    Block,
    Compare,
    Copy,
    Grid,
    If,
    LoadFragments,
    MultiplyFragments,
    Nest,
    Num,
    Space,
    Statement,
    Store,
    Sync,
    Var,
)
from kernelgen.nest.text import show
from kernelgen.nest.verify import verify as verify_nest
from kernelgen.nest.walk import map_blocks, statements
from kernelgen.plan import Plan
from kernelgen.poly.proof.races import prove_races
from kernelgen.samples.inputs import draw
from kernelgen.simulators.ptx import Report, run
from kernelgen.stages import lower
from kernelgen.targets.gpu.dialects.program import launches
from kernelgen.targets.gpu.launch.interpret import InterpretedEntry
from kernelgen.targets.gpu.launch.nvrtc import compile_cuda
from kernelgen.targets.gpu.target import emit
from kernelgen.tensor.dims import sym
from tests.support.product_kernels import Shape, convolution, in_squares, layer, mixed, product

FOLDER = Path(__file__).parents[3] / "golden" / "gpu"
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2, "int32": 0.0}
FLIPS = [(False, False), (False, True), (True, False), (True, True)]


# ---------------------------------------------------------------- right results


@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("flips", FLIPS)
def test_odd_sizes_agree_with_the_definition(kind: str, flips: tuple[bool, bool]) -> None:
    """Rows, columns and terms that no tile divides, with rows that are aligned and rows that are not."""
    sizes = (33, 40, 24) if flips[0] else (17, 23, 19)
    agrees(product(Shape(*sizes, (), *flips), kind), kind)


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16"])
def test_a_tail_is_computed_from_registers(kind: str) -> None:
    desc = layer(Shape(40, 24, 40), kind)
    agrees(desc, kind)
    assert len(grids(nest_of(desc))) == 1
    assert not [b for b in nest_of(desc).buffers if b.space is Space.WORKSPACE]


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_a_tail_of_results_in_squares_is_computed_from_registers(kind: str) -> None:
    desc = in_squares(48, 32, 80, kind)
    agrees(desc, kind)
    assert len(grids(nest_of(desc))) == 1
    assert not [b for b in nest_of(desc).buffers if b.space is Space.WORKSPACE]


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_batches_are_blocks(kind: str) -> None:
    agrees(layer(Shape(20, 24, 40, (2, 3), False, True), kind), kind)


def test_operands_are_cast_and_scaled_on_their_way() -> None:
    desc = mixed(Shape(32, 40, 48))
    agrees(desc, "float16")
    assert len(grids(nest_of(desc))) == 1


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize(
    ("image", "weights", "layout"),
    [((2, 7, 6, 8), (9, 3, 2, 8), "NHWC"), ((2, 5, 7, 6), (9, 5, 3, 2), "NCHW")],
)
def test_convolutions_are_products(kind: str, image: tuple[int, ...], weights: tuple[int, ...], layout: str) -> None:
    desc = convolution(kind, image, weights, layout)
    agrees(desc, kind)


@pytest.mark.parametrize("kind", ["float32", "float16"])
def test_sizes_may_be_symbols(kind: str) -> None:
    desc = layer(Shape(sym("M"), sym("N"), sym("K")), kind)
    agrees(desc, kind, {"M": 35, "N": 18, "K": 21})


# ---------------------------------------------------------------- what is made


CASES = {
    "product_by_threads": layer(Shape(1024, 1024, 1024, (), False, True), "float32"),
    "product_by_tensor_cores": layer(Shape(1024, 1024, 1024, (), False, True), "float16"),
}


@pytest.mark.parametrize("name", CASES)
def test_nests_are_as_stored(name: str, request: pytest.FixtureRequest) -> None:
    path, nest = FOLDER / f"{name}.txt", nest_of(CASES[name])
    text = f"{show(nest)}\n{emit(nest)}"
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert path.read_text() == text


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("size", [(1024, 1024, 1024), (4096, 4096, 4096), (128, 768, 768), (sym("M"), 1024, 1024)])
def test_nothing_is_spilled_at_real_sizes(arch: str, kind: str, size: tuple[int, int, int]) -> None:
    try:
        compiled = compile_cuda(emit(nest_of(layer(Shape(*size), kind))), "layer", arch)
    except BackendUnavailable as error:
        pytest.skip(str(error))
    for used in compiled.resources.values():
        assert (used.stack, used.spill_stores, used.spill_loads) == (0, 0, 0)
        assert used.shared <= 48 * 1024


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("flips", FLIPS)
def test_a_block_reads_whole_sectors_and_meets_no_bank_conflicts(kind: str, flips: tuple[bool, bool]) -> None:
    report = one_block(product(Shape(1024, 1024, 128, (), *flips), kind))
    assert report.clean, report
    assert report.counts.of("global load").sectors_per_needed <= 1.05
    # NVRTC makes 48, 49 or 50 loads of one text, from run to run; each beyond 48 conflicts a little.
    assert report.counts.of("shared load").conflicts <= report.counts.of("shared load").cycles // 32
    assert report.counts.of("local load").requests == 0
    if kind == "float16":
        assert report.counts.of("shared store").conflicts == 0
        assert report.counts.instructions["matrix"] > 0


def test_exact_products_are_not_left_to_tensor_cores() -> None:
    """float32 is multiplied as float32."""
    nest = nest_of(product(Shape(64, 64, 64), "float32"))
    assert not any(isinstance(s, MultiplyFragments) for s in statements(nest.body))


def test_a_narrow_matrix_keeps_a_thread_for_a_result() -> None:
    nest = nest_of(product(Shape(64, 4, 64), "float32"))
    assert not any(isinstance(s, Alloc) and s.buffer.space is Space.SHARED and "product" in s.buffer.name
                   for s in statements(nest.body))  # fmt: skip


# ---------------------------------------------------------------- planted faults


Edit = Callable[[Statement], Sequence[Statement]]


def no_barrier(part: Statement) -> Sequence[Statement]:
    return () if isinstance(part, Sync) else (part,)


def same_stage(part: Statement) -> Sequence[Statement]:
    """What is read is filled again at once."""
    return (replace(part, index=Num(0)),) if isinstance(part, Bind) and part.var == "stage" else (part,)


def shifted_store(part: Statement) -> Sequence[Statement]:
    """Each thread also stores to what belongs to its neighbour."""
    if isinstance(part, Store) and part.buffer.space is Space.OUTPUT:
        *rest, last = part.index
        return part, replace(part, index=(*rest, ix.add(last, Num(1))))
    if isinstance(part, Copy) and part.target.space is Space.OUTPUT:
        *rest, last = part.to
        return part, replace(part, to=(*rest, ix.add(last, Num(part.count))))
    return (part,)


def lonely_barrier(part: Statement) -> Sequence[Statement]:
    return (If((Compare("<", Var("tx"), Num(64)),), Block((part,))),) if isinstance(part, Sync) else (part,)


def lonely_lanes(part: Statement) -> Sequence[Statement]:
    guard = Compare("<", Var("tx"), Num(7))
    return (If((guard,), Block((part,))),) if isinstance(part, LoadFragments) else (part,)


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("fault", [no_barrier, same_stage, shifted_store, lonely_barrier])
def test_the_proof_rejects(kind: str, fault: Edit) -> None:
    with pytest.raises(ProofError):
        prove_races(edited(nest_of(product(Shape(64, 64, 64), kind)), fault))


def test_the_proof_rejects_fragments_of_some_lanes() -> None:
    nest = edited(nest_of(product(Shape(64, 64, 64), "float16")), lonely_lanes)
    with pytest.raises(ProofError):
        prove_races(nest)
    with pytest.raises(NestError, match="invariant 14"):
        verify_nest(nest)


def test_fragments_have_their_types() -> None:
    nest = nest_of(product(Shape(64, 64, 64), "float16"))

    def wrong(part: Statement) -> Sequence[Statement]:
        return (replace(part, count=3),) if isinstance(part, LoadFragments) else (part,)

    with pytest.raises(NestError, match="invariant 16"):
        verify_nest(edited(nest, wrong))


def shifted_fragment(part: Statement) -> Sequence[Statement]:
    """A matrix of the terms beside those of the other operand."""
    if isinstance(part, LoadFragments) and "left" in part.source.name:
        *rest, last = part.start
        return (replace(part, start=(*rest, ix.add(last, Num(8)))),)
    return (part,)


def unturned_fragment(part: Statement) -> Sequence[Statement]:
    return (replace(part, transposed=not part.transposed),) if isinstance(part, LoadFragments) else (part,)


def other_columns(part: Statement) -> Sequence[Statement]:
    return (replace(part, right_at=(Num(0), Num(0))),) if isinstance(part, MultiplyFragments) else (part,)


def no_waiting(part: Statement) -> Sequence[Statement]:
    """Tiles are read while they are still on their way."""
    return () if isinstance(part, AwaitCopies) else (part,)


def too_little_waiting(part: Statement) -> Sequence[Statement]:
    return (replace(part, pending=part.pending + 1),) if isinstance(part, AwaitCopies) else (part,)


def no_zeros(part: Statement) -> Sequence[Statement]:
    """Copies of what lies outside go on all the same."""
    return (replace(part, conditions=()),) if isinstance(part, AsyncCopy) else (part,)


def no_guards(part: Statement) -> Sequence[Statement]:
    return part.body.statements if isinstance(part, If) else (part,)


SHOWN = [
    shifted_fragment, unturned_fragment, other_columns, no_barrier, no_guards, no_waiting, too_little_waiting, no_zeros,
]  # fmt: skip


@pytest.mark.parametrize("fault", SHOWN)
def test_the_interpreter_or_the_result_shows(fault: Edit) -> None:
    desc = product(Shape(40, 40, 40), "float16")
    nest = edited(nest_of(desc), fault)
    try:
        found = interpreted(desc, nest, draw(desc, 0), {})
    except CodegenError:
        return
    expected = kernelgen.reference(desc)(*draw(desc, 0))
    assert not np.allclose(found[0].astype(float), expected[0].astype(float), atol=0.05)


# ---------------------------------------------------------------- helpers


def nest_of(desc: KernelDesc) -> Nest:
    return lower(desc, Plan(), "gpu").nest


def grids(nest: Nest) -> list[Grid]:
    return [part for part in nest.body.statements if isinstance(part, Grid)]


def edited(nest: Nest, edit: Edit) -> Nest:
    changed = map_blocks(nest.body, lambda block: Block(tuple(new for part in block.statements for new in edit(part))))
    return replace(nest, body=changed)


def agrees(desc: KernelDesc, kind: str, sizes: dict[str, int] | None = None) -> None:
    """Lowers, verifies, proves, interprets; compares with the reference; products have tiles."""
    nest = nest_of(desc)
    verify_nest(nest)
    assert any(isinstance(s, Alloc) and s.buffer.name == "product0_left" for s in statements(nest.body))
    arrays = draw(desc, 0) if not sizes else [at_sizes(t.shape, t.dtype.numpy, sizes) for t in desc.inputs]
    expected = kernelgen.reference(desc)(*arrays)
    for one, other in zip(interpreted(desc, nest, arrays, sizes or {}), expected, strict=True):
        allowed = TOLERANCE[kind] * max(1.0, float(np.abs(other.astype(float)).max()))
        np.testing.assert_allclose(one.astype(float), other.astype(float), rtol=0, atol=allowed)


def at_sizes(shape: Sequence[object], dtype: np.dtype, sizes: dict[str, int]) -> np.ndarray:
    return np.random.default_rng(5).normal(size=[sizes[str(dim)] for dim in shape]).astype(dtype)


def interpreted(desc: KernelDesc, nest: Nest, arrays: Sequence[np.ndarray], sizes: dict[str, int]) -> list[np.ndarray]:
    """The outputs, as the PTX interpreter computes them."""
    outputs = [np.zeros([sizes.get(str(d)) or int(str(d)) for d in t.shape], t.dtype.numpy) for t in desc.outputs]
    try:
        InterpretedEntry(emit(nest), nest)((*arrays, *outputs), tuple(sizes[name] for name in nest.symbols))
    except BackendUnavailable as error:
        pytest.skip(str(error))
    return outputs


def one_block(desc: KernelDesc) -> Report:
    """What one block of the only launch does, on zeros."""
    nest = nest_of(desc)
    try:
        ptx = compile_cuda(emit(nest), desc.name, "sm_90").ptx
    except BackendUnavailable as error:
        pytest.skip(str(error))
    (launch,) = launches(nest)
    assert isinstance(launch.blocks, Num)
    shapes = [(*map(int, map(str, b.shape)),) for b in nest.buffers]
    arguments = [
        np.zeros(s, b.dtype.numpy).reshape(-1).view(np.uint8) for s, b in zip(shapes, nest.buffers, strict=True)
    ]
    return run(
        ptx,
        launch.blocks.value,
        launch.threads,
        arguments,
        kernel=launch.kernel,
        dynamic_shared=launch.dynamic_shared({}),
        blocks=[5],
    )
