"""What follows a block of results, computed while they are in registers: where, where not, and what is computed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernel_examples import Writer
from nests import I, J, block, buffer, call, loop, output
from product_kernels import Shape

from kernelgen import compile
from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Buffer,
    Expr,
    For,
    Let,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Ref,
    Space,
    Statement,
    Store,
    Var,
)
from kernelgen.nest.text import show_statement
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import accesses
from kernelgen.semantics import reference
from kernelgen.tensor.dtypes import FLOAT32
from kernelgen.transforms.cpu.fuse_epilogue import MANY_REGISTERS, fuse_epilogues

ROWS, COLUMNS = 6, 8
X, W, B, Y = buffer("x", ROWS, 5), buffer("w", 5, COLUMNS), buffer("b", COLUMNS), output("y", ROWS, COLUMNS)
T = Buffer("t", FLOAT32, (ROWS, COLUMNS), Space.WORKSPACE)
HELD = Buffer("held", FLOAT32, (COLUMNS,), Space.LOCAL)
K, R, C = Var("k"), Var("r"), Var("c")
ZERO = Literal(0.0, FLOAT32)


def serial(var: Var, extent: int, *body: Statement, lower: int = 0) -> For:
    return replace(loop(var, extent, *body, kind=LoopKind.SERIAL), lower=Num(lower))


def sums(*more: Statement, stored: Buffer = T, column: ix.Index = J, rows: int = ROWS) -> For:
    """Each row of products, held while it is summed up, and stored."""
    term = call("mul", Load(X, (I, K)), Load(W, (K, J)))
    return serial(
        I,
        rows,
        Alloc(HELD),
        loop(J, COLUMNS, Store(HELD, (J,), ZERO)),
        serial(K, 5, loop(J, COLUMNS, Accumulate(HELD, (J,), "add", term))),
        loop(J, COLUMNS, Store(stored, (I, column), Load(HELD, (J,)))),
        *more,
    )


def epilogue(value: Expr | None = None, rows: int = ROWS, place: tuple[ix.Index, ...] = (R, C), to: Buffer = Y) -> For:
    """``y = maximum(t + b, 0)``, or with another value that the temporary is bound to ``v`` for."""
    found = value or call("maximum", call("add", Ref("v", FLOAT32), Load(B, (C,))), ZERO)
    return serial(R, rows, loop(C, COLUMNS, Let("v", Load(T, place)), Store(to, (R, C), found)))


def nest(*parts: Statement, **of: Space) -> Nest:
    made = Nest("case", (), (X, W, B, Y, replace(T, space=of.get("t", Space.WORKSPACE))), block(*parts))
    verify(made)
    return made


def fused(before: Nest, registers: int = MANY_REGISTERS) -> Nest:
    return fuse_epilogues(before, registers)


def test_the_epilogue_stands_where_the_results_were_stored_and_the_temporary_is_gone() -> None:
    joined = fused(nest(sums(), epilogue()))
    verify(joined)
    (row,) = joined.body.statements
    assert [b.name for b in joined.buffers] == ["x", "w", "b", "y"]
    assert show_statement(row).endswith(
        """\
  vector for j in 0..8 {
    let v_at0: f32 = held[j]
    y[i, j] = maximum(v_at0 + b[j], 0.0)
  }
}"""
    )


def chain(value: Expr, length: int) -> Expr:
    """So many sums, each of the one before."""
    for _ in range(length):
        value = call("add", value, Load(B, (C,)))
    return value


def quantized(value: Expr) -> Expr:
    """What a quantizer computes before it makes a byte."""
    whole = call("add", call("round", call("div", value, Literal(0.02, FLOAT32))), Literal(128.0, FLOAT32))
    return call("minimum", call("maximum", whole, ZERO), Literal(255.0, FLOAT32))


def test_a_residual_between_two_quantizers_stands_where_results_are_in_registers() -> None:
    """Other than functions that need registers for polynomials, however many operations it takes."""
    value = quantized(call("add", quantized(Ref("v", FLOAT32)), Load(X, (R, Num(0)))))
    before = nest(sums(), epilogue(value))
    assert [b.name for b in fused(before).buffers] == ["x", "w", "b", "y"]
    assert fused(before, MANY_REGISTERS // 2) is before


def test_what_an_iteration_keeps_in_a_local_of_one_element_is_a_value() -> None:
    alone = Buffer("alone", FLOAT32, (), Space.LOCAL)
    stored = (Let("v", Load(T, (R, C))), Alloc(alone), Store(alone, (), call("add", Ref("v", FLOAT32), Load(B, (C,)))))
    rows = serial(R, ROWS, loop(C, COLUMNS, *stored, Store(Y, (R, C), call("maximum", Load(alone, ()), ZERO))))
    joined = fused(nest(sums(), rows))
    verify(joined)
    (row,) = joined.body.statements
    assert show_statement(row).endswith(
        """\
    let alone_value_at0: f32 = v_at0 + b[j]
    y[i, j] = maximum(alone_value_at0, 0.0)
  }
}"""
    )


LONG = chain(Ref("v", FLOAT32), 41)
TANH = call("tanh", Ref("v", FLOAT32))
SELF = call("add", Ref("v", FLOAT32), Load(Y, (R, C)))


@pytest.mark.parametrize(
    "parts",
    [
        (sums(), epilogue(TANH)),
        (sums(), epilogue(LONG)),
        (sums(), epilogue(), serial(R, ROWS, loop(C, COLUMNS, Store(Y, (R, C), Load(T, (R, C)))))),
        (sums(), epilogue(place=(ix.subtract(Num(ROWS - 1), R), C))),
        (sums(), epilogue(place=(R, Num(0)))),
        (sums(), epilogue(rows=ROWS - 1)),
        (sums(loop(J, COLUMNS, Store(T, (I, J), call("add", Load(T, (I, J)), ZERO)))), epilogue()),
        (sums(loop(J, COLUMNS, Accumulate(T, (I, J), "add", Load(HELD, (J,))))), epilogue()),
        (sums(loop(J, COLUMNS, Store(Y, (I, J), ZERO))), epilogue()),
        (sums(), epilogue(SELF)),
        (serial(Var("again"), 2, sums()), epilogue()),
        (sums(), Store(T, (Num(0), Num(0)), ZERO), epilogue()),
    ],
    ids=[
        "a function of many steps",
        "too many steps",
        "another reader",
        "rows turned round",
        "one element of a row",
        "not all rows",
        "a result that is read before it is final",
        "a result that is added to",
        "what it writes is written before",
        "what it writes is read in it",
        "a result that is stored again",
        "an element that is stored outside of loops",
    ],
)
def test_loops_stay_apart_where_an_iteration_may_not_or_should_not_run_earlier(parts: tuple[Statement, ...]) -> None:
    before = nest(*parts)
    assert fused(before) is before


def test_what_the_epilogue_reads_may_not_change_in_between() -> None:
    inout = replace(B, space=Space.INOUT)
    value = call("add", Ref("v", FLOAT32), Load(inout, (C,)))
    parts = (sums(loop(J, COLUMNS, Store(inout, (J,), ZERO))), epilogue(value))
    before = Nest("case", (), (X, W, inout, Y, T), block(*parts))
    assert fused(before) is before


def test_a_result_that_leaves_the_kernel_is_stored() -> None:
    out = replace(T, space=Space.OUTPUT)
    before = Nest("case", (), (X, W, B, Y, out), block(sums(stored=out), epilogue()))
    assert fused(before) is before


def biased(shape: Shape) -> KernelDesc:
    """``abs(a b + bias) + residual``."""
    left, right = shape.operands(FLOAT32)
    bias, residual = Tensor("bias", (shape.columns,), FLOAT32), Tensor("r", shape.result, FLOAT32)
    writer = Writer()
    summed = writer.op("Add", shape.multiply(writer, left, right), bias, shape=shape.result)
    active = writer.op("Abs", summed, shape=shape.result)
    total = writer.op("Add", active, residual, shape=shape.result)
    return writer.desc("biased", (left, right, bias, residual), total)


@pytest.mark.parametrize("rows", [1, 8, 13, 64])
@pytest.mark.parametrize("columns", [16, 24, 200])
def test_a_layer_of_a_network_stores_no_temporary_and_has_numpys_numbers(rows: int, columns: int) -> None:
    desc = biased(Shape(rows, columns, 32))
    kernel = compile(desc, "cpu", constants=(1,))
    temporaries = {each.name for each in kernel.nest.buffers if each.space is Space.WORKSPACE}
    assert not temporaries or columns % 16  # what no whole vectors cover has loops of its own
    random = np.random.default_rng(rows + columns)
    inputs = [
        random.normal(size=[extent for extent in tensor.shape if isinstance(extent, int)]).astype(np.float32)
        for tensor in desc.inputs
    ]
    (found,), (wanted,) = kernel(*kernel.call_inputs(inputs)), reference(desc)(*inputs)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_every_element_is_computed_once() -> None:
    joined = fused(nest(sums(), epilogue()))
    assert len([each for each, _ in accesses(joined.body, "y")]) == 1
