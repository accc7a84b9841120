"""What all turns of a serial loop read of a product's columns is laid out once, before the first turn."""

from __future__ import annotations

import pytest

from kernelgen.nest import nodes as n
from kernelgen.nest.walk import loads_of, nested, statements, stored_buffers
from kernelgen.tensor.dtypes import FLOAT32
from kernelgen.transforms.cpu.share_panels import share_panels

BLOCKS, ROWS, COLUMNS, TERMS = 3, 16, 20, 24
LANES = 16


def buffer(name: str, *shape: int, space: n.Space = n.Space.INPUT) -> n.Buffer:
    return n.Buffer(name, FLOAT32, shape, space)


A, X = buffer("a", BLOCKS * ROWS, TERMS), buffer("x", COLUMNS, TERMS)
Y = buffer("y", BLOCKS * ROWS, COLUMNS, space=n.Space.OUTPUT)


def loop(name: str, upper: int, kind: n.LoopKind = n.LoopKind.SERIAL) -> n.For:
    return n.For(name, n.Num(0), n.Num(upper), n.Block(), kind)


def product(*loops: n.For, read: n.Buffer = X) -> n.Nest:
    """Loops around ``y[b ROWS + i, j] += a[b ROWS + i, k] * x[j, k]``."""
    row = n.IndexBinary(n.IndexOp.ADD, n.IndexBinary(n.IndexOp.MUL, n.Var("b"), n.Num(ROWS)), n.Var("i"))
    column = n.Load(read, (n.Var("j"), n.Var("k")))
    term = n.Call("mul", (n.Load(A, (row, n.Var("k"))), column), FLOAT32)
    body = n.Block((n.Accumulate(Y, (row, n.Var("j")), "add", term),))
    return n.Nest("product", (), (A, X, Y), nested(loops, body))


BLOCK, ROW, TERM, COLUMN = loop("b", BLOCKS), loop("i", ROWS), loop("k", TERMS), loop("j", COLUMNS, n.LoopKind.VECTOR)


def panels(nest: n.Nest) -> list[n.Buffer]:
    return [part.buffer for part in nest.body.statements if isinstance(part, n.Alloc)]


def test_panels_are_made_before_the_loop_over_blocks() -> None:
    nest = share_panels(product(BLOCK, ROW, TERM, COLUMN), LANES)
    (panel,) = panels(nest)
    assert panel.name in nest.panels
    assert panel.shape == (TERMS, 32), "columns in whole vectors"
    blocks = nest.body.statements[-1]
    assert panel.name not in stored_buffers(blocks)
    assert {load.buffer.name for part in statements(blocks) for load in loads_of(part)} == {"a", panel.name}


@pytest.mark.parametrize(
    "nest",
    [
        product(ROW, TERM, COLUMN),
        product(BLOCK, TERM, COLUMN),
        product(loop("b", BLOCKS, n.LoopKind.PARALLEL), ROW, TERM, COLUMN),
        product(BLOCK, ROW, TERM, COLUMN, read=Y),
    ],
    ids=["rows alone", "no rows in a block", "parallel blocks", "written in the loop"],
)
def test_other_loops_stay(nest: n.Nest) -> None:
    assert share_panels(nest, LANES) == nest
