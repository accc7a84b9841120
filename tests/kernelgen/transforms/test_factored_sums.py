"""Sums of terms with a common scale: what each turn computes, what is added up alone, and what stays as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hosts import HOSTS, needs_avx2, run_on
from nests import J, block, buffer, call, local, loop, output

from kernelgen.nest.nodes import Accumulate, Alloc, Call, Expr, For, Literal, Load, LoopKind, Nest, Ref, Store, Var
from kernelgen.nest.verify import verify
from kernelgen.nest.walk import calls_of, statements
from kernelgen.targets import python
from kernelgen.targets.cpu.emit import emit_for
from kernelgen.targets.cpu.math.register_tables import LOOK_UP
from kernelgen.targets.cpu.runtime.llvm import detect_host
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dtypes import FLOAT32, INT8, UINT8, DType
from kernelgen.transforms.cpu.factored_sums import factor_sums

K = Var("k")
TERMS, COLUMNS = 12, 40
HERE = detect_host()
LACKING = Host(HERE.cpu, HERE.features - {"avx512f"})
PROCESSORS = {**HOSTS, "this processor": HERE, "this one without the table": LACKING}
X, Q, S, Z = buffer("x", TERMS), buffer("q", TERMS, COLUMNS, dtype=UINT8), buffer("s", COLUMNS), buffer("z", COLUMNS)
HELD, Y = local("held", COLUMNS), output("y", COLUMNS)
ROW, WHOLE, SCALE = Load(X, (K,)), Load(Q, (K, J)), Load(S, (J,))


def number(value: Expr) -> Expr:
    return Call("cast", (value,), FLOAT32)


LOW = number(Call("floor_mod", (WHOLE, Literal(16, UINT8)), UINT8))
LESS_EIGHT = call("mul", ROW, Literal(-8.0, FLOAT32))
LESS_ZERO = call("mul", call("mul", ROW, Literal(-1.0, FLOAT32)), Load(Z, (J,)))
BYTES = call("mul", ROW, call("mul", number(WHOLE), SCALE))
NIBBLES = call("mul", call("add", call("add", call("mul", ROW, LOW), LESS_EIGHT), LESS_ZERO), SCALE)


def summed(value: Expr, function: str = "add") -> Nest:
    """``held[j] += value`` for each term and column, in a local that is an output at the end."""
    place = (J,)
    return Nest(
        "summed",
        (),
        (X, Q, S, Z, Y),
        block(
            Alloc(HELD),
            loop(J, COLUMNS, Store(HELD, place, Literal(0.0, FLOAT32))),
            loop(K, TERMS, loop(J, COLUMNS, Accumulate(HELD, place, function, value)), kind=LoopKind.SERIAL),
            loop(J, COLUMNS, Store(Y, place, Load(HELD, place))),
        ),
    )


def arrays() -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(0)
    x, s, z = (random.standard_normal(n).astype(np.float32) for n in (TERMS, COLUMNS, COLUMNS))
    return x, random.integers(0, 256, (TERMS, COLUMNS)).astype(np.uint8), s, z


def expected(value: Expr) -> np.ndarray:
    x, q, s, z = (each.astype(np.float64) for each in arrays())
    return x @ q * s if value == BYTES else x @ (q % 16 - 8 - z) * s


@pytest.mark.parametrize("value", [BYTES, NIBBLES], ids=["bytes", "nibbles"])
def test_scales_and_what_columns_share_leave_the_loop(value: Expr) -> None:
    made = factor_sums(summed(value))
    verify(made)
    (terms,) = [part for part in made.body.statements if isinstance(part, For) and part.var == K.name]
    inside = [each for part in statements(terms) for each in calls_of(part)]
    assert SCALE not in [arg for each in inside for arg in each.args]
    (last,) = [part for part in statements(terms) if isinstance(part, Accumulate) and part.index]
    assert isinstance(last.value, Call)
    assert last.value.args[0] == Ref("factor0_0", FLOAT32)
    y = np.zeros(COLUMNS, np.float32)
    python.load(python.emit(made), made)((*arrays(), y), ())
    np.testing.assert_allclose(y, expected(value), rtol=0, atol=1e-6 * abs(expected(value)).max())


@needs_avx2
@pytest.mark.parametrize("value", [BYTES, NIBBLES], ids=["bytes", "nibbles"])
@pytest.mark.parametrize("host", PROCESSORS.values(), ids=PROCESSORS)
def test_all_processors_sum_the_same(host: Host, value: Expr) -> None:
    y = np.zeros(COLUMNS, np.float32)
    run_on(host, factor_sums(summed(value)), *arrays(), y)
    np.testing.assert_allclose(y, expected(value), rtol=0, atol=1e-6 * abs(expected(value)).max())


@pytest.mark.parametrize(
    "kept",
    [
        summed(call("mul", ROW, number(WHOLE))),
        summed(call("mul", call("mul", ROW, number(WHOLE)), Load(X, (K,)))),
        summed(call("mul", ROW, SCALE)),
        summed(call("mul", call("mul", ROW, Load(buffer("f", TERMS, COLUMNS), (K, J))), SCALE)),
        summed(BYTES, "maximum"),
        summed(call("mul", BYTES, Load(HELD, (J,)))),
    ],
    ids=["no scale", "a scale of each term", "a vector", "no integers", "no sum", "it reads its results"],
)
def test_other_sums_stay_as_they_are(kept: Nest) -> None:
    assert factor_sums(kept).body == kept.body


def nibbles(kind: DType) -> Nest:
    """``y[j] = f32(q[j] % 16)`` of all bytes."""
    q, y = buffer("q", 256, dtype=kind), output("y", 256)
    rest = Call("floor_mod", (Load(q, (J,)), Literal(16, kind)), kind)
    return Nest("nibbles", (), (q, y), block(loop(J, 256, Store(y, (J,), number(rest)))))


@needs_avx2
@pytest.mark.parametrize("kind", [UINT8, INT8], ids=str)
@pytest.mark.parametrize("host", PROCESSORS.values(), ids=PROCESSORS)
def test_the_low_bits_of_every_byte_are_the_float(host: Host, kind: DType) -> None:
    q, y = np.arange(256).astype(np.uint8).view(kind.numpy), np.zeros(256, np.float32)
    run_on(host, nibbles(kind), q, y)
    np.testing.assert_array_equal(y, np.arange(256) % 16)


def test_a_table_is_used_where_vectors_hold_all_of_it() -> None:
    wide = replace(HERE, features=HERE.features | {"avx512f", "avx512bw", "avx512vl", "avx512vbmi2", "avx2"})
    assert wide.vector_floats == 16
    assert LOOK_UP[16] in emit_for(nibbles(UINT8), wide)
    assert LOOK_UP[16] not in emit_for(nibbles(INT8), wide)
    assert LOOK_UP[16] not in emit_for(nibbles(UINT8), HOSTS["avx2"])
