"""Stages that go wrong inside of the generator: the proof or the checker rejects what comes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import kernel_examples as examples
import pytest

from kernelgen import stages
from kernelgen.checker import check
from kernelgen.composite.description import KernelDesc
from kernelgen.errors import ProofError
from kernelgen.nest.nodes import Accumulate, Call, For, If, IndexBinary, IndexOp, Let, LoopKind, Nest, Store
from kernelgen.nest.walk import map_blocks
from kernelgen.nest_stages import Stage
from kernelgen.plan import Plan
from kernelgen.poly.model.scop import Scop, Statement
from kernelgen.stages import lower
from kernelgen.transforms.common import array_contraction as contraction
from kernelgen.transforms.common import reuse_output_storage as sharing

KERNELS: Mapping[str, Callable[[], KernelDesc]] = {
    "softmax": examples.softmax,
    "layer_norm": examples.layer_norm,
    "column_sum": lambda: examples.column_sum(6, 40),
    "transpose_add": lambda: examples.transpose_add(70, 9),
    "momentum": examples.momentum,
}


def rejected(desc: KernelDesc) -> str:
    """Who rejects the kernel: the check of the proof or of the checker; empty when nobody does."""
    try:
        nest = lower(desc, Plan()).nest
    except ProofError as error:
        return f"proof of {error.check}"
    fault = check(nest, desc, steps=500_000).fault
    return "" if fault is None else f"check of {fault.check}"


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_untouched_generator_passes(kernel: str) -> None:
    assert rejected(KERNELS[kernel]()) == ""


# ---------------------------------------------------------------- the scop


def last_statement(change: Callable[[Statement], Statement]) -> Callable[[Scop], Scop]:
    return lambda scop: replace(scop, statements=(*scop.statements[:-1], change(scop.statements[-1])))


def short_box(statement: Statement) -> Statement:
    first, *others = statement.iterators
    assert isinstance(first.extent, int)
    return replace(statement, iterators=(replace(first, extent=first.extent - 1), *others))


def operands_exchanged(statement: Statement) -> Statement:
    def one(part: Let | Store | Accumulate) -> Let | Store | Accumulate:
        value = part.value
        if isinstance(value, Call) and len(value.args) == 2:
            return replace(part, value=replace(value, args=value.args[::-1]))
        return part

    return replace(statement, body=tuple(map(one, statement.body)))


def accumulation_stored(statement: Statement) -> Statement:
    def one(part: Let | Store | Accumulate) -> Let | Store | Accumulate:
        return Store(part.buffer, part.index, part.value) if isinstance(part, Accumulate) else part

    return replace(statement, body=tuple(map(one, statement.body)))


SCOP_FAULTS: Mapping[str, tuple[str, Callable[[Scop], Scop]]] = {
    "a box is too short": ("column_sum", last_statement(short_box)),
    "a statement is lost": ("softmax", lambda scop: replace(scop, statements=scop.statements[:-1])),
    "statements change places": ("softmax", lambda scop: replace(scop, statements=scop.statements[::-1])),
    "a statement runs twice": (
        "layer_norm",
        lambda scop: replace(scop, statements=(replace(scop.statements[0], name="again"), *scop.statements)),
    ),
    "operands change places": ("softmax", last_statement(operands_exchanged)),
    "a sum keeps its last term": ("column_sum", last_statement(accumulation_stored)),
}


@pytest.mark.parametrize("fault", SCOP_FAULTS)
def test_a_wrong_scop(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, change = SCOP_FAULTS[fault]
    monkeypatch.setattr(stages, "SCOP_STAGES", (*stages.SCOP_STAGES, Stage(change, fault)))
    assert rejected(KERNELS[kernel]())


# ---------------------------------------------------------------- the nest


def without(name: str) -> tuple[Stage[Nest], ...]:
    return tuple(stage for stage in stages.NEST_STAGES if stage.name != name)


@pytest.mark.parametrize("kernel", ["softmax", "layer_norm", "column_sum"])
def test_reductions_are_not_started(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "NEST_STAGES", without("initialize"))
    assert rejected(KERNELS[kernel]()) in ("check of initialised", "check of form")


def test_a_temporary_loses_a_dim_that_its_loops_address(monkeypatch: pytest.MonkeyPatch) -> None:
    find = contraction._local_form

    def careless(buffer, home, on_heap, room):
        found = find(buffer, home, on_heap, room)
        if found is None or not found.dims:
            return found
        return replace(found, buffer=replace(found.buffer, shape=()), dims=())

    monkeypatch.setattr(contraction, "_local_form", careless)
    assert rejected(examples.softmax())


def test_a_temporary_shares_an_output_that_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(temporary, output, uses):
        return (temporary.shape, temporary.dtype) == (output.shape, output.dtype)

    w, x = examples.Writer(), examples.tensor("x", 150, 150)
    e = w.op("Exp", x, shape=(150, 150))
    columns = w.op("ReduceSum", e, shape=(1, 150), axis=(0,), keep_dims=True)
    first = w.op("Div", e, columns, shape=(150, 150))
    rows = w.op("ReduceSum", e, shape=(150, 1), axis=(1,), keep_dims=True)
    desc = w.desc("two", (x,), first, w.op("Div", rows, e, shape=(150, 150)))
    assert rejected(desc) == ""
    monkeypatch.setattr(sharing, "_fit", careless)
    assert rejected(desc)


MARKS: Mapping[str, tuple[str, LoopKind, LoopKind]] = {
    "a reduction runs in parallel": ("softmax", LoopKind.VECTOR, LoopKind.PARALLEL),
    "rows of a column sum run in parallel": ("column_sum", LoopKind.SERIAL, LoopKind.PARALLEL),
    "a reduction is interleaved": ("column_sum", LoopKind.SERIAL, LoopKind.INTERLEAVE),
    "a loop with loops inside is a vector": ("layer_norm", LoopKind.PARALLEL, LoopKind.VECTOR),
}


@pytest.mark.parametrize("fault", MARKS)
def test_wrong_marks(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, before, after = MARKS[fault]

    def marked(nest: Nest) -> Nest:
        def edit(block):
            parts = (
                replace(part, kind=after) if isinstance(part, For) and part.kind is before else part
                for part in block.statements
            )  # fmt: skip
            return replace(block, statements=tuple(parts))

        return replace(nest, body=map_blocks(nest.body, edit))

    monkeypatch.setattr(stages, "NEST_STAGES", (*stages.NEST_STAGES, Stage(marked, fault)))
    assert rejected(KERNELS[kernel]()).startswith("check of ")


def test_a_guard_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles run past the end of what they cover."""

    def unguarded(nest: Nest) -> Nest:
        def edit(block):
            parts = (part.body if isinstance(part, If) else whole(part) for part in block.statements)
            return replace(block, statements=tuple(parts))

        def whole(part):
            if isinstance(part, For) and isinstance(part.upper, IndexBinary) and part.upper.op is IndexOp.MIN:
                return replace(part, upper=part.upper.right)
            return part

        return replace(nest, body=map_blocks(nest.body, edit))

    monkeypatch.setattr(stages, "NEST_STAGES", (*stages.NEST_STAGES, Stage(unguarded, "no guards")))
    assert rejected(KERNELS["transpose_add"]()) == "check of bounds"
