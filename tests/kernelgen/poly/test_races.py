"""The race proof accepts what the GPU's passes make, and rejects each kind of planted fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from kernelgen.errors import ProofError
from kernelgen.nest import index as ix
from kernelgen.nest.nodes import (
    Accumulate,
    Alloc,
    Bind,
    Block,
    Buffer,
    Combine,
    Compare,
    Copy,
    For,
    Grid,
    If,
    Literal,
    Load,
    Nest,
    Num,
    Space,
    Statement,
    Store,
    Sync,
    Var,
)
from kernelgen.plan import Plan
from kernelgen.poly.proof.grid_accesses import sites
from kernelgen.poly.proof.linearise_accesses import by_wholes
from kernelgen.poly.proof.races import prove_races
from kernelgen.stages import lower
from kernelgen.tensor.dims import Dim, sym
from kernelgen.tensor.dtypes import FLOAT32
from tests.support import kernel_examples as examples

Edit = Callable[[Statement], Statement | None]


@cache
def softmax(rows: Dim = 96, columns: Dim = 1501) -> Nest:
    """Rows that several warps share; their length leaves no place for wide copies."""
    return lower(examples.softmax(rows, columns), Plan(), "gpu").nest


@cache
def scaled(rows: Dim = 70, columns: Dim = 50) -> Nest:
    """One thread for an element."""
    writer, x = examples.Writer(), examples.tensor("x", rows, columns)
    return lower(
        writer.desc("scaled", (x,), writer.op("Transpose", x, shape=(columns, rows), perm=(1, 0))), Plan(), "gpu"
    ).nest


N, M = sym("N"), sym("M")


def edited(nest: Nest, edit: Edit) -> Nest:
    """The nest with each statement replaced; None drops it."""
    return replace(nest, body=_edited(nest.body, edit))


def _edited(block: Block, edit: Edit) -> Block:
    """Inner statements first, so that what an edit puts in is not edited again."""
    parts: list[Statement] = []
    for part in block.statements:
        inner = replace(part, body=_edited(part.body, edit)) if isinstance(part, For | If | Grid) else part
        found = edit(_edited(part, edit) if isinstance(part, Block) else inner)
        parts += [found] if found is not None else []
    return Block(tuple(parts))


@pytest.mark.parametrize("nest", [softmax(), softmax(N), scaled(), scaled(N, M), scaled(N, 48)])
def test_the_passes_make_no_races(nest: Nest) -> None:
    checks = {fact.check for fact in prove_races(nest)}
    assert "races" in checks


def test_the_facts_say_what_was_looked_at() -> None:
    facts = [str(fact) for fact in prove_races(softmax())]
    assert any("softmax_0" in fact and "accesses of t4" in fact for fact in facts)
    assert any(fact.startswith("meeting") for fact in facts)


# ---------------------------------------------------------------- planted faults


def _without_barriers(part: Statement) -> Statement | None:
    return None if isinstance(part, Sync) else part


def _all_store(part: Statement) -> Statement | None:
    """The first lane's stores are everybody's."""
    if isinstance(part, If) and len(part.conditions) == 1 and part.conditions[0].op == "==":
        return Block(part.body.statements)
    return part


def _shifted(part: Statement) -> Statement | None:
    """Each thread also writes what belongs to its neighbour."""
    if isinstance(part, Store) and part.buffer.space is Space.OUTPUT:
        *rest, last = part.index
        return Block((part, replace(part, index=(*rest, ix.add(last, Num(1))))))
    return part


def _one_element(part: Statement) -> Statement | None:
    if isinstance(part, Store) and part.buffer.space is Space.OUTPUT:
        return replace(part, index=tuple(Num(0) for _ in part.index))
    return part


def _halved(part: Statement) -> Statement | None:
    """Two neighbours write one element."""
    if isinstance(part, Store) and part.buffer.space is Space.OUTPUT:
        *rest, last = part.index
        return replace(part, index=(*rest, ix.floor_divide(last, Num(2))))
    return part


def _other_rows(part: Statement) -> Statement | None:
    """Two blocks write one row."""
    if isinstance(part, Store) and part.buffer.space is Space.OUTPUT:
        return replace(part, index=(ix.floor_divide(part.index[0], Num(2)), *part.index[1:]))
    return part


def _unguarded_barriers(part: Statement) -> Statement | None:
    """A barrier that the first threads alone come to."""
    return If((Compare("<", Var("tx"), Num(7)),), Block((part,))) if isinstance(part, Sync) else part


def _combined_by_some(part: Statement) -> Statement | None:
    return If((Compare("<", Var("tx"), Num(7)),), Block((part,))) if isinstance(part, Combine) else part


def _combined_over_more(part: Statement) -> Statement | None:
    return replace(part, width=4096) if isinstance(part, Combine) else part


def _updated_by_all(part: Statement) -> Statement | None:
    """All threads accumulate into one element of memory."""
    if isinstance(part, Store) and part.buffer.space is Space.OUTPUT:
        return Accumulate(part.buffer, tuple(Num(0) for _ in part.index), "add", part.value)
    return part


def _barriers_of_own_loops(part: Statement) -> Statement | None:
    """A loop around a barrier turns as often as the thread's number says."""
    return For("own", Num(0), Var("tx"), Block((part,))) if isinstance(part, Sync) else part


SOFTMAX_FAULTS = [
    _without_barriers, _all_store, _shifted, _one_element, _halved, _other_rows, _unguarded_barriers, _combined_by_some,
    _combined_over_more, _updated_by_all, _barriers_of_own_loops,
]  # fmt: skip


@pytest.mark.parametrize("fault", SOFTMAX_FAULTS)
@pytest.mark.parametrize("rows", [96, N])
def test_faults_of_rows_are_found(fault: Edit, rows: Dim) -> None:
    with pytest.raises(ProofError):
        prove_races(edited(softmax(rows), fault))


def _copied_beside(part: Statement) -> Statement | None:
    """A wide copy that starts one element late."""
    if isinstance(part, Copy) and part.target.space is Space.OUTPUT:
        *rest, last = part.to
        return Block((part, replace(part, to=(*rest, ix.add(last, Num(1))))))
    return part


def test_faults_of_wide_copies_are_found() -> None:
    whole = softmax(96, 2048)
    assert "races" in {fact.check for fact in prove_races(whole)}
    assert edited(whole, _copied_beside) != whole
    with pytest.raises(ProofError):
        prove_races(edited(whole, _copied_beside))


@pytest.mark.parametrize("fault", [_shifted, _one_element, _halved, _other_rows, _updated_by_all])
@pytest.mark.parametrize("sizes", [(70, 50), (N, M), (N, 48)])
def test_faults_of_elements_are_found(fault: Edit, sizes: tuple[Dim, Dim]) -> None:
    with pytest.raises(ProofError) as error:
        prove_races(edited(scaled(*sizes), fault))
    assert error.value.witness


@pytest.mark.parametrize(("width", "holds"), [(2, True), (4, True), (8, False)])
def test_groups_that_come_together_are_as_wide_as_what_decides_it(width: int, holds: bool) -> None:
    """``bind item = bx * 8 + tx / 4; if item < 5: combine over width``."""
    own, result = Buffer("own", FLOAT32, (), Space.PRIVATE), Buffer("result", FLOAT32, (5,), Space.OUTPUT)
    x = Var("tx")
    item = Bind("item", ix.add(ix.multiply(Var("bx"), Num(8)), ix.floor_divide(x, Num(4))))
    store = If((Compare("==", ix.modulo(x, Num(4)), Num(0)),), Block((Store(result, (Var("item"),), Load(own, ())),)))
    guarded = If((Compare("<", Var("item"), Num(5)),), Block((Combine(own, (), "add", width), store)))
    grid = Grid("grid", Num(1), (32, 1), Block((Alloc(own), item, guarded)))
    nest = Nest("groups", (), (result,), Block((grid,)))
    if holds:
        assert prove_races(nest)
    else:
        with pytest.raises(ProofError, match="meeting"):
            prove_races(nest)


def test_each_barrier_is_needed() -> None:
    """Leaving out any single barrier of softmax makes the proof fail: none is there for nothing."""
    nest = softmax()
    count = _barriers_of(nest)
    assert count
    for chosen in range(count):
        seen = iter(range(count))
        thinner = edited(nest, lambda part, s=seen, k=chosen: None if isinstance(part, Sync) and next(s) == k else part)
        assert _barriers_of(thinner) == count - 1
        with pytest.raises(ProofError):
            prove_races(thinner)


def test_reads_alone_never_race() -> None:
    """What nobody writes needs no proof: only written buffers have facts."""
    assert not [fact for fact in prove_races(scaled()) if fact.subject.endswith(" x")]


def _barriers_of(nest: Nest) -> int:
    found: list[Statement] = []
    edited(nest, lambda part: found.append(part) or part)
    return sum(isinstance(part, Sync) for part in found)


def test_a_buffer_of_the_thread_is_left_alone() -> None:
    private = Buffer("own", scaled().buffers[0].dtype, (), Space.PRIVATE)
    nest = edited(scaled(), lambda part: replace(part, buffer=private, index=()) if isinstance(part, Store) else part)
    assert not [fact for fact in prove_races(nest) if fact.check == "races"]


def _under(condition: Compare) -> Edit:
    return lambda part: If((condition,), Block((part,))) if isinstance(part, Sync) else part


def test_a_barrier_counts_only_where_it_is_sure_to_be() -> None:
    """Isl knows no products, so that a barrier under such a condition may be missing."""
    square = Compare("<", ix.multiply(Var("bx"), Var("bx")), Var("N"))
    with pytest.raises(ProofError):
        prove_races(edited(softmax(N), _under(square)))


def test_a_condition_around_accesses_and_barriers_makes_sure_of_both() -> None:
    square = Compare("<", ix.multiply(Var("bx"), Var("bx")), Var("N"))
    whole = edited(
        softmax(N),
        lambda part: replace(part, body=Block((If((square,), part.body),))) if isinstance(part, Grid) else part,
    )
    assert prove_races(whole)


def test_the_turns_of_a_loop_of_unknown_length_are_sure_up_to_the_last() -> None:
    """``for k in 0..bx * N: sync; shared[tx] = ...; sync; ... = shared[T - 1 - tx]``, and the same without a barrier."""
    for count, holds in ((2, True), (1, False), (0, False)):
        nest = _exchange(count)
        if holds:
            assert prove_races(nest)
        else:
            with pytest.raises(ProofError):
                prove_races(nest)


def _exchange(barriers: int) -> Nest:
    place = Buffer("place", FLOAT32, (64,), Space.SHARED)
    result = Buffer("result", FLOAT32, (sym("N"), 64), Space.OUTPUT)
    x, mirrored = Var("tx"), ix.subtract(Num(63), Var("tx"))
    put = Store(place, (x,), Literal(1.0, FLOAT32))
    get = Store(result, (Var("bx"), x), Load(place, (mirrored,)))
    turn = Block((*[Sync()] * (barriers > 1), put, *[Sync()] * (barriers > 0), get))
    loop = For("k", Num(0), ix.multiply(Var("bx"), Var("N")), turn)
    grid = Grid("exchange", Var("N"), (64, 1), Block((Alloc(place), loop)))
    return Nest("exchange", ("N",), (result,), Block((grid,)))


# ---------------------------------------------------------------- elements by digits


def test_quotient_and_rest_are_one_number() -> None:
    """``x[n / 16, n mod 16]`` is ``x[n]``; with a rest of another divisor it is not."""
    for radix, holds in ((16, True), (8, False)):
        result = Buffer("result", FLOAT32, (64, 16), Space.OUTPUT)
        n = ix.add(ix.multiply(Var("bx"), Num(64)), Var("tx"))
        store = Store(result, (ix.floor_divide(n, Num(16)), ix.modulo(n, Num(radix))), Literal(1.0, FLOAT32))
        grid = Grid("digits", Num(16), (64, 1), Block((store,)))
        nest = Nest("digits", (), (result,), Block((grid,)))
        (site,) = by_wholes(list(sites(grid, {})))
        assert (site.element == (n, Num(0))) is holds
        if holds:
            assert prove_races(nest)
        else:
            with pytest.raises(ProofError):
                prove_races(nest)
