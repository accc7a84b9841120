"""What moves together starts at a multiple: what the passes make is proved, planted claims are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from kernel_examples import Writer, constant, layer_norm, softmax, tensor

from kernelgen.composite.description import KernelDesc
from kernelgen.errors import ProofError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import AsyncCopy, Bind, Block, Copy, If, Index, LoadFragments, Nest, Num, Statement
from kernelgen.nest.walk import map_blocks, statements
from kernelgen.plan import Plan
from kernelgen.poly.proof.vector_alignment import prove_alignment
from kernelgen.stages import lower
from kernelgen.tensor.dims import Dim, sym
from tests.support.product_kernels import Shape, product

Edit = Callable[[Statement], Sequence[Statement]]


def _map(*shape: Dim) -> KernelDesc:
    w, x = Writer(), tensor("x", *shape)
    return w.desc("map", (x,), w.op("Mul", x, constant(2.0), shape=shape))


def _rows(columns: Dim) -> KernelDesc:
    """A row, and a number for all of it."""
    w, x, b = Writer(), tensor("x", 64, columns), tensor("b", 64, 1)
    return w.desc("rows", (x, b), w.op("Add", x, b, shape=(64, columns)))


def _padded() -> KernelDesc:
    """Rows that are one longer than an unknown length."""
    w, x, full = Writer(), tensor("x", 1, 1, sym("N")), (2, 4, sym("N") + 1)
    return w.desc("padded", (x,), w.op("PadAkg", x, shape=full, head=(1, 3, 1), tail=(0, 0, 0), pad_val=0.0))


def _nest(desc: KernelDesc) -> Nest:
    return lower(desc, Plan(), "gpu").nest


NESTS = {
    "map": _nest(_map(512, 1024)),
    "map of any length": _nest(_map(sym("N"))),
    "rows of any length": _nest(_rows(sym("N"))),
    "rows one longer": _nest(_padded()),
    "softmax": _nest(softmax(64, 2048)),
    "layer norm": _nest(layer_norm(128, 1024)),
    "product": _nest(product(Shape(256, 128, 256, ()), "float32")),
    "product of halves": _nest(product(Shape(256, 128, 256, (), False, True), "float16")),
    "product of any size": _nest(product(Shape(sym("M"), 128, 256, (), False, True), "float16")),
}


def _edited(nest: Nest, edit: Edit) -> Nest:
    body = map_blocks(nest.body, lambda block: Block(tuple(s for part in block.statements for s in edit(part))))
    return replace(nest, body=body)


def _next(index: tuple[Index, ...]) -> tuple[Index, ...]:
    return (*index[:-1], ix.add(index[-1], Num(1)))


def _source_one_on(part: Statement) -> Sequence[Statement]:
    return (replace(part, start=_next(part.start)),) if isinstance(part, Copy | AsyncCopy | LoadFragments) else (part,)


def _target_one_on(part: Statement) -> Sequence[Statement]:
    return (replace(part, to=_next(part.to)),) if isinstance(part, Copy | AsyncCopy) else (part,)


def _longer_rows(part: Statement) -> Sequence[Statement]:
    if not isinstance(part, Copy | AsyncCopy | LoadFragments) or len(part.source.shape) < 2:
        return (part,)
    *outer, inner = part.source.shape
    return (replace(part, source=replace(part.source, shape=(*outer, inner + 1))),)


def _first_one_on(part: Statement) -> Sequence[Statement]:
    return (
        (replace(part, index=ix.add(part.index, Num(1))),)
        if isinstance(part, Bind) and part.var == "first"
        else (part,)
    )


def _without_tests(part: Statement) -> Sequence[Statement]:
    return part.body.statements if isinstance(part, If) else (part,)


@pytest.mark.parametrize("name", NESTS)
def test_what_the_passes_make_is_aligned(name: str) -> None:
    nest = NESTS[name]
    wide = [part for part in statements(nest.body) if isinstance(part, Copy | AsyncCopy | LoadFragments)]
    assert bool(prove_alignment(nest)) == bool(wide)


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("map", _source_one_on), ("map", _target_one_on), ("map", _first_one_on),
        ("map of any length", _first_one_on), ("rows of any length", _without_tests), ("rows of any length", _source_one_on),
        ("rows one longer", _without_tests), ("rows one longer", _target_one_on),
        ("softmax", _source_one_on), ("layer norm", _target_one_on), ("product", _source_one_on), ("product", _longer_rows),
        ("product of halves", _source_one_on), ("product of halves", _target_one_on), ("product of halves", _longer_rows),
        ("product of any size", _longer_rows),
    ],
)  # fmt: skip
def test_a_planted_claim_is_rejected(name: str, edit: Edit) -> None:
    prove_alignment(NESTS[name])
    planted = _edited(NESTS[name], edit)
    assert planted != NESTS[name]
    with pytest.raises(ProofError, match="alignment"):
        prove_alignment(planted)
