"""The checker on hand-written nests: what each check finds, what a sample shows, and that sizes are tried."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kernel_examples import Writer, tensor

from kernelgen.checker import CHECKS, Fault, check
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Compare,
    Expr,
    If,
    Index,
    IndexValue,
    Let,
    Literal,
    Load,
    LoopKind,
    Nest,
    Num,
    Ref,
    Statement,
    Store,
    ValueIndex,
)
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import FLOAT32, INT32
from tests.support.nests import I, J, block, buffer, call, local, loop, output, reduce_nest, softmax_nest

X, Y, T = buffer("x", 6), output("y", 6), local("t")
ONE = Literal(1.0, FLOAT32)
AT = (I,)


def nest(*body: Statement, kind: LoopKind = LoopKind.SERIAL) -> Nest:
    return Nest("planted", (), (X, Y), block(loop(I, 6, *body, kind=kind)))


def fault_of(planted: Nest) -> Fault:
    found = check(planted).fault
    assert found is not None
    return found


COPY = Store(Y, AT, Load(X, AT))
FIRST = Store(Y, (Num(0),), ONE)
CASES = {
    "form": nest(Store(Y, (J,), ONE)),
    "bounds": nest(Store(Y, AT, Load(X, (ix.add(I, Num(1)),)))),
    "initialised": nest(Alloc(T), Store(Y, AT, Load(T, ()))),
    "kept": nest(COPY, COPY),
    "parallel": nest(Store(Y, AT, ONE), Accumulate(Y, (Num(0),), "add", ONE), kind=LoopKind.PARALLEL),
    "vector": nest(Store(Y, AT, ONE), If((Compare("<", Num(0), I),), block(Let("v", Load(Y, (ix.subtract(I, Num(1)),))),
                   Store(Y, AT, Ref("v", FLOAT32)))), kind=LoopKind.VECTOR),
    "outputs": nest(If((Compare("<", I, Num(5)),), block(COPY))),
}  # fmt: skip


@pytest.mark.parametrize("check_name", CASES)
def test_each_check_finds_its_fault(check_name: str) -> None:
    fault = fault_of(CASES[check_name])
    assert fault.check == check_name
    assert str(fault).startswith(f"{check_name}: ")


def test_interleaved_loops_promise_what_parallel_ones_do() -> None:
    y = output("y", 6, 6)
    rows = loop(I, 6, loop(J, 6, Store(y, (Num(0), J), ONE)), kind=LoopKind.INTERLEAVE)
    assert fault_of(Nest("planted", (), (y,), block(rows))).check == "interleave"


def test_an_input_is_written() -> None:
    assert fault_of(nest(COPY, Store(X, AT, ONE))).check == "inputs"


def test_the_fault_says_where_and_in_which_statement() -> None:
    assert str(fault_of(CASES["bounds"])) == "bounds: x[6] is outside of [6] in `y[i] = x[i + 1]`"


def test_good_nests_pass_at_every_size() -> None:
    found = check(softmax_nest(sym("M"), sym("N"), ("M", "N")))
    assert [dict(run.sizes) for run in found.runs] == [{"M": 1, "N": 1}, {"M": 5, "N": 7}, {"M": 17, "N": 19}]
    assert set(found.shown) == set(CHECKS) - {"terms"}


def test_a_fault_that_only_some_sizes_show_is_found() -> None:
    good = reduce_nest("add", sym("M"), 4, symbols=("M",))
    (row,) = good.body.statements
    assert check(replace(good, body=block(replace(row, upper=Num(3))))).fault is not None


def test_a_sample_claims_less() -> None:
    large = softmax_nest(3000, 3000)
    found = check(large)
    assert not found.is_whole
    assert set(found.shown) == {"form", "bounds", "inputs", "parallel", "interleave", "vector"}


def test_a_sample_still_finds_what_is_out_of_bounds() -> None:
    x, y = buffer("x", 3000, 3000), output("y", 3000, 3000)
    body = loop(I, 3000, loop(J, 3000, Store(y, (I, J), Load(x, (I, ix.add(J, Num(1)))))), kind=LoopKind.PARALLEL)
    assert fault_of(Nest("large", (), (x, y), block(body))).check == "bounds"


def test_locals_of_a_parallel_iteration_are_its_own() -> None:
    assert (
        check(nest(Alloc(T), Store(T, (), Load(X, AT)), Store(Y, AT, Load(T, ())), kind=LoopKind.PARALLEL)).fault
        is None
    )


def test_conditions_on_indices_are_known() -> None:
    """A padded copy: y = 0, x[0], ..., x[3], 0."""
    w, x = Writer(), tensor("x", 4)
    desc = w.desc("padded", (x,), w.op("PadAkg", x, shape=(6,), head=(1,), tail=(1,), pad_val=0.0))
    source, target = buffer("x", 4), output("t0", 6)
    inside = call("logical_and", less(Num(0), I), less(I, Num(5)))
    element = Load(source, (ix.clamp(ix.subtract(I, Num(1)), 4),))

    def padded(condition: Expr) -> Nest:
        value = call("select", condition, element, Literal(0.0, FLOAT32))
        return Nest("padded", (), (source, target), block(loop(I, 6, Store(target, AT, value))))

    assert "terms" in check(padded(inside), desc).shown
    assert check(padded(less(I, Num(5))), desc).fault is not None


def less(left: Index, right: Index) -> Expr:
    return call("less", IndexValue(left, INT32), IndexValue(right, INT32))


def test_places_that_data_decides_must_be_clamped() -> None:
    ids = buffer("ids", 6, dtype=INT32)
    place = ValueIndex(Ref("k", INT32))

    def gather(index: ix.Index) -> Nest:
        body = loop(I, 6, Let("k", Load(ids, AT)), Store(Y, AT, Load(X, (index,))), kind=LoopKind.PARALLEL)
        return Nest("gather", (), (X, ids, Y), block(body))

    assert fault_of(gather(place)).check == "bounds"
    assert check(gather(ix.clamp(place, 6))).fault is None


def test_places_that_data_decides_may_meet() -> None:
    ids = buffer("ids", 6, dtype=INT32)
    place = ix.clamp(ValueIndex(Ref("k", INT32)), 6)
    start = loop(I, 6, Store(Y, AT, ONE))
    scatter = loop(I, 6, Let("k", Load(ids, AT)), Accumulate(Y, (place,), "add", ONE), kind=LoopKind.PARALLEL)
    assert fault_of(Nest("scatter", (), (ids, Y), block(start, scatter))).check == "parallel"


def test_checks_are_a_closed_list() -> None:
    with pytest.raises(ValueError, match="not declared"):
        Fault("luck", "x", "is bad")
