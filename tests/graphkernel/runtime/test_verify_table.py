"""Tables of real frames hold the invariants; a table with a fault planted in it does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from graphkernel.errors import VerifyError
from graphkernel.runtime.invocation import Frame, make_frame
from graphkernel.runtime.steps.program import Program
from graphkernel.runtime.tables.native_run import NativeRun, WholeRun
from graphkernel.runtime.verify_table import INVARIANTS, broken, verify_frame
from kernelgen.native.table import Given, Table, TableStep
from tests.graphkernel.runtime.test_tables import GRAPHS, MIXED, compiled

ALL = {**GRAPHS, **MIXED}


def bound(name: str) -> tuple[Program, Frame]:
    program = compiled(ALL[name]).program
    return program, make_frame(program, {})


def with_steps(table: Table, steps: list[TableStep]) -> Table:
    return Table(table.given, tuple(steps), table.caller, table.releases_lock, table.keeps)


def steps_moved(table: Table) -> Iterator[Table]:
    """Neighbours that change places, where the second reads or writes what the first writes, which stands last."""
    for number, (one, two) in enumerate(zip(table.steps, table.steps[1:], strict=False)):
        if one.arguments[-1] in two.arguments:
            yield with_steps(table, [*table.steps[:number], two, one, *table.steps[number + 2 :]])


def steps_left_out(table: Table) -> Iterator[Table]:
    for number in range(len(table.steps)):
        yield with_steps(table, [*table.steps[:number], *table.steps[number + 1 :]])


def other_places(table: Table) -> Iterator[Table]:
    """One argument of one step lies where something else does."""
    places = {place for step in table.steps for place in step.arguments}
    for number, step in enumerate(table.steps):
        for position, place in enumerate(step.arguments):
            for other in places - {place}:
                arguments = (*step.arguments[:position], other, *step.arguments[position + 1 :])
                changed = step._replace(arguments=arguments)
                yield with_steps(table, [*table.steps[:number], changed, *table.steps[number + 1 :]])


def memory_shared(table: Table) -> Iterator[Table]:
    """A buffer of intermediates lies in the memory of another that a step in between uses."""
    fixed = {place for step in table.steps for place in step.arguments if not isinstance(place, Given)}
    for one in fixed:
        for other in fixed - {one}:
            merged = [s._replace(arguments=tuple(other if p == one else p for p in s.arguments)) for s in table.steps]
            if any({one, other} <= set(step.arguments) for step in table.steps):
                yield with_steps(table, merged)


def not_checked(table: Table) -> Iterator[Table]:
    for number, argument in enumerate(table.given):
        if argument.is_written:
            changed = argument._replace(is_written=False)
            given = (*table.given[:number], changed, *table.given[number + 1 :])
            yield Table(given, table.steps, table.caller, table.releases_lock, table.keeps)


FAULTS = {
    "a step moved": (steps_moved, {"T1", "T2", "T5"}),
    "a step left out": (steps_left_out, {"T1", "T2", "T5"}),
    "another place": (other_places, {"T2", "T3", "T4", "T5", "T6"}),
    "memory shared": (memory_shared, {"T2", "T3", "T5"}),
    "written unchecked": (not_checked, {"T6"}),
}


def mutants(frame: Frame, fault: str) -> Iterator[Frame]:
    if frame.whole is not None:
        for table in FAULTS[fault][0](frame.whole.table):
            yield frame._replace(
                whole=WholeRun(
                    table,
                    frame.whole.makers,
                    frame.whole.watch,
                    frame.whole.sources,
                    frame.whole.is_parallel,
                    frame.whole.allocated,
                )
            )
    for number, action in enumerate(frame.actions):
        if isinstance(action, NativeRun):
            for table in FAULTS[fault][0](action.table):
                changed = NativeRun(table, action.given, action.left, action.watch)
                yield frame._replace(actions=(*frame.actions[:number], changed, *frame.actions[number + 1 :]))


@pytest.mark.parametrize("name", ALL)
def test_real_tables_hold(name: str) -> None:
    verify_frame(*bound(name))


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str) -> None:
    found = set[str]()
    count = 0
    for name in ALL:
        program, frame = bound(name)
        for mutant in mutants(frame, fault):
            numbers = {number for number, _ in broken(program, mutant)}
            assert numbers, name
            with pytest.raises(VerifyError):
                verify_frame(program, mutant)
            found |= numbers
            count += 1
    assert count > 1
    assert found <= FAULTS[fault][1] | {"T2"}


def test_every_invariant_has_a_fault() -> None:
    assert set().union(*(numbers for _, numbers in FAULTS.values())) == set(INVARIANTS)
