"""The rules by which the order of pipes is proved, one by one: what is over, and what must not be taken to be over."""

from __future__ import annotations

from kernelgen.ascendc.clocks import NOTHING, SCALAR, Clocks, CoreClock, FlagTable
from kernelgen.ascendc.types import PIPES

VECTOR, LOAD, STORE = (PIPES.index(name) for name in ("V", "MTE2", "MTE3"))


def pipes() -> Clocks[CoreClock]:
    return Clocks(NOTHING)


def handed_over(clocks: Clocks[CoreClock], source: int, target: int) -> None:
    """A set and its wait."""
    handed = clocks.released(source)
    clocks.step(source)
    clocks.join(target, handed)


def test_issue_order_is_not_completion() -> None:
    clocks = pipes()
    number = clocks.step(VECTOR)
    assert clocks.issue(VECTOR)[VECTOR] <= number


def test_a_set_hands_over_what_its_source_did_before_and_no_more() -> None:
    clocks = pipes()
    before = clocks.step(LOAD)
    handed = clocks.released(LOAD)
    after = clocks.step(LOAD)
    clocks.join(VECTOR, handed)
    assert before < clocks.of(VECTOR)[LOAD] <= after
    assert clocks.of(STORE)[LOAD] == 0, "who did not wait knows nothing"


def test_knowledge_passes_on_through_a_second_flag() -> None:
    clocks = pipes()
    number = clocks.step(LOAD)
    handed_over(clocks, LOAD, VECTOR)
    handed_over(clocks, VECTOR, STORE)
    assert clocks.of(STORE)[LOAD] > number


def test_a_barrier_closes_its_own_pipe_alone() -> None:
    clocks = pipes()
    numbers = {pipe: clocks.step(pipe) for pipe in (LOAD, VECTOR)}
    clocks.close(VECTOR)
    assert clocks.of(VECTOR)[VECTOR] > numbers[VECTOR]
    assert clocks.of(VECTOR)[LOAD] <= numbers[LOAD]
    clocks.close_all()
    assert all(clocks.of(pipe)[LOAD] > numbers[LOAD] for pipe in range(len(PIPES)))


def test_what_the_scalar_unit_knows_holds_for_what_it_issues_later() -> None:
    clocks = pipes()
    number = clocks.step(LOAD)
    known = clocks.issue(STORE)
    handed_over(clocks, LOAD, SCALAR)
    assert known[LOAD] <= number < clocks.issue(STORE)[LOAD]


def test_writes_of_the_scalar_unit_are_known_by_a_flag_only() -> None:
    clocks = pipes()
    number = clocks.step(SCALAR)
    assert clocks.issue(VECTOR)[SCALAR] <= number
    handed_over(clocks, SCALAR, VECTOR)
    assert clocks.of(VECTOR)[SCALAR] > number


def test_a_flag_is_free_when_its_setter_knows_that_its_last_wait_is_over() -> None:
    clocks, flags = pipes(), FlagTable[str, CoreClock]()
    assert flags.set("x", clocks.released(LOAD))
    assert not flags.set("x", clocks.released(LOAD)), "it is set already"
    assert flags.take("x") is not None
    assert flags.take("x") is None
    flags.waited("x", clocks.step(VECTOR))
    assert not flags.is_free("x", VECTOR, clocks.released(LOAD))
    assert flags.is_free("x", SCALAR, clocks.released(LOAD)), "the scalar unit issues nothing before its wait is over"
    handed_over(clocks, VECTOR, LOAD)
    assert flags.is_free("x", VECTOR, clocks.released(LOAD))
