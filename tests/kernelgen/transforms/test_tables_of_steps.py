"""Functions of few steps from tables: the same bits on every processor, for NaN and infinities too; others stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hosts import HOSTS, needs_avx2, run_on
from nests import I, J, block, buffer, call, loop, output

from kernelgen.nest.nodes import Alloc, Call, Expr, Let, Literal, Load, LoopKind, Nest, Ref, Statement, Store
from kernelgen.nest.verify import verify
from kernelgen.targets import python
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dtypes import FLOAT32, INT8, INT64, UINT8, DType
from kernelgen.transforms.cpu.tables_of_steps import tables_of_steps

PROCESSORS = {**HOSTS, "this processor": detect_host()}
ROWS, COLUMNS = 40, 37
STEPS = (-123.0, 132.0)
SCALED, ROUNDED, BOUNDED, STEP, ENDED = (
    Ref(name, FLOAT32) for name in ("scaled", "rounded", "bounded", "step", "ended")
)


def number(value: float) -> Literal:
    return Literal(value, FLOAT32)


def activated(x: Expr) -> Expr:
    """Of a step, to steps again."""
    erf = call("erf", call("div", call("mul", x, number(0.0214)), number(1.4142)))
    return call("round", call("div", call("mul", x, call("add", erf, number(1.0))), number(0.017)))


def rounding(bounds: tuple[float, float] = STEPS, function: str = "round") -> list[Statement]:
    """What binds ``step``."""
    low, high = map(number, bounds)
    return [
        Let("scaled", call("mul", Load(X, (I, J)), number(8.0))),
        Let("rounded", call(function, SCALED)),
        Let("bounded", call("maximum", ROUNDED, low)),
        Let("step", call("minimum", BOUNDED, high)),
    ]


X = buffer("x", ROWS, COLUMNS)


def nest(before: list[Statement], value: Expr, kind: DType = FLOAT32, rows: int = ROWS) -> Nest:
    y = output("y", ROWS, COLUMNS, dtype=kind)
    stored = Ref("ended", FLOAT32) if kind == FLOAT32 else Call("cast", (ENDED,), kind)
    last = [Let("ended", value), *([] if kind == FLOAT32 else [Let("narrow", stored)])]
    stored = ENDED if kind == FLOAT32 else Ref("narrow", kind)
    inner = loop(J, COLUMNS, *before, *last, Store(y, (I, J), stored))
    return Nest("steps", (), (X, y), block(loop(I, rows, inner, kind=LoopKind.SERIAL)))


def numbers() -> np.ndarray:
    found = np.random.default_rng(0).normal(0, 9, (ROWS, COLUMNS)).astype(np.float32)
    found[0, :6] = np.nan, np.inf, -np.inf, -0.0, 0.0625, 16.5
    return found


def tables(found: Nest) -> list[Alloc]:
    return [part for part in found.body.statements if isinstance(part, Alloc)]


@needs_avx2
@pytest.mark.parametrize("kind", [FLOAT32, INT8, UINT8], ids=str)
@pytest.mark.parametrize("host", PROCESSORS.values(), ids=PROCESSORS)
def test_a_table_holds_what_is_computed_otherwise(host: Host, kind: DType) -> None:
    given = nest(rounding(), activated(STEP), kind)
    made = tables_of_steps(given)
    verify(made)
    assert len(tables(made)) == 1
    expected, found = (np.zeros((ROWS, COLUMNS), kind.numpy) for _ in range(2))
    run_on(host, given, numbers(), expected)
    run_on(host, made, numbers(), found)
    assert np.array_equal(expected, found, equal_nan=kind is FLOAT32)
    assert len(np.unique(found)) > 50


def test_the_reference_reads_the_same() -> None:
    given = nest(rounding(), activated(STEP))
    x = np.nan_to_num(numbers(), posinf=99, neginf=-99)
    found = [np.zeros((ROWS, COLUMNS), np.float32) for _ in range(2)]
    for made, y in zip((given, tables_of_steps(given)), found, strict=True):
        python.load(python.emit(made), made)((x, y), ())
    plain, by_table = found
    assert np.array_equal(plain, by_table)


def test_equal_functions_share_a_table() -> None:
    given = nest(rounding(), activated(STEP))
    twice = replace(given, body=block(*given.body.statements, *given.body.statements))
    assert len(tables(tables_of_steps(twice))) == 1


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(nest(rounding(), call("mul", STEP, number(0.5))), id="cheap"),
        pytest.param(nest(rounding(), call("mul", activated(STEP), Load(X, (I, J)))), id="of other data too"),
        pytest.param(nest(rounding((-123.0, 133.0)), activated(STEP)), id="too many steps"),
        pytest.param(nest(rounding((-0.5, 0.5)), activated(STEP)), id="no integers"),
        pytest.param(nest(rounding(function="neg"), activated(STEP)), id="not rounded"),
        pytest.param(nest(rounding(), activated(STEP), rows=20), id="few elements"),
        pytest.param(nest(rounding(), activated(STEP), INT64), id="wide integers"),
    ],
)
def test_others_stay(given: Nest) -> None:
    assert tables_of_steps(given) == given
