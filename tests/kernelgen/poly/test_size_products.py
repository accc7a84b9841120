"""Products of sizes get names, so that guards over them exclude each other; what has a single size in it stays."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kernel_examples import Writer, constant, tensor

import kernelgen
from kernelgen.errors import ProofError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import Bind, Block, Buffer, Compare, For, Grid, If, Literal, Nest, Num, Space, Store, Var
from kernelgen.nest.walk import map_blocks
from kernelgen.poly.model.size_products import size_products, with_products
from kernelgen.poly.proof.races import prove_races
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import FLOAT32

N, M, X = Var("N"), Var("M"), Var("x")
SIZES = ("M", "N")


def test_products_are_named_whatever_their_order_and_factor() -> None:
    four = ix.multiply(ix.multiply(Num(4), N), M)
    known = (*SIZES, "M*N")
    assert with_products(ix.multiply(M, N), known) == Var("M*N")
    assert with_products(ix.add(X, four), known) == ix.add(X, ix.multiply(Var("M*N"), Num(4)))
    assert with_products(ix.multiply(N, N), known) == ix.multiply(N, N)  # not among the sizes
    assert with_products(ix.multiply(X, N), known) == ix.multiply(X, N)  # no product of sizes alone


def scaled() -> Nest:
    """A kernel over [N, M] in chunks: whole ones by wide accesses, the last one element by element."""
    w, x = Writer(), tensor("x", sym("N"), sym("M"))
    desc = w.desc("scaled", (x,), w.op("Mul", x, constant(2), shape=x.shape))
    return kernelgen.compile(desc, "gpu").nest


def test_whole_chunks_and_the_last_one_do_not_race() -> None:
    nest = scaled()
    grids = [part for part in nest.body.statements if isinstance(part, Grid)]
    assert size_products(grids, nest.symbols) == ("M*N",)
    assert {fact.check for fact in prove_races(nest)} == {"races"}


def test_guards_that_overlap_are_a_race() -> None:
    def always(block: Block) -> Block:
        """Whole chunks are also taken element by element."""
        parts = [
            replace(part, conditions=(Compare("<=", Num(0), N),))
            if isinstance(part, If)
            and ix.variables(part.conditions[0].left) == frozenset("NM")
            and part.conditions[0].op == "<"
            else part
            for part in block.statements
        ]
        return Block(tuple(parts))

    nest = scaled()
    with pytest.raises(ProofError, match="touch one element"):
        prove_races(replace(nest, body=map_blocks(nest.body, always)))


def test_the_first_digit_of_a_block_has_an_end() -> None:
    """``bx < strips * M`` and ``strip = bx / M``: the strip stays below their number, though isl knows no products."""
    shape = (sym("N"), sym("M"))
    w, x, y = Writer(), tensor("x", *shape), tensor("y", *shape)
    double = w.op("Add", x, x, shape=shape)
    scaled = w.op("Mul", double, w.op("Tanh", y, shape=shape), shape=shape)
    value = w.op("Tanh", w.op("Add", scaled, double, shape=shape), shape=shape)
    top = w.op("ReduceMax", value, shape=shape[1:], axis=(0,), keep_dims=False)
    desc = w.desc("columns", (x, y), double, top)
    assert "races" in {fact.check for fact in kernelgen.compile(desc, "gpu").proof.facts}


def strips(step: int) -> Nest:
    """``for start in 0..N step 2: for flat in tx..2 * K step 32: y[start + flat / K, flat mod K] = 1``, in one block."""
    y = Buffer("y", FLOAT32, (sym("N"), sym("K")), Space.OUTPUT)
    row = ix.add(ix.floor_divide(Var("flat"), Var("K")), Var("start"))
    store = Store(y, (Var("row"), Var("column")), Literal(1.0, FLOAT32))
    binds = (Bind("row", row), Bind("column", ix.modulo(Var("flat"), Var("K"))))
    inner = For("flat", Var("tx"), ix.multiply(Num(2), Var("K")), Block((*binds, store)), step=32)
    outer = For("start", Num(0), Var("N"), Block((inner,)), step=step)
    grid = Grid("strips", Num(1), (32, 1), Block((Bind("item", Var("bx")), outer)))
    return Nest("strips", ("K", "N"), (y,), Block((grid,)))


def test_strips_that_overlap_are_a_race_though_their_digits_are_those_of_other_numbers() -> None:
    with pytest.raises(ProofError, match="touch one element"):
        prove_races(strips(1))
