"""Every hostile input ends in an error of its class or in the right result, within 2 GB and 10 s of computing."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import pytest

from tests.fuzz.outcome import PASSED, Outcome
from tests.fuzz.pool import Job, Task, run
from tests.hostile.table import CASES

WALL_SECONDS = 120.0
"""After which a case hangs: far more than it may compute, because other programs run too."""


@pytest.fixture(scope="module")
def tried() -> Iterator[Callable[[int], Outcome]]:
    """Tries one case in a process that all cases share, and that is replaced when it dies or hangs."""
    waiting: deque[Task] = deque()
    results = run(iter(waiting.popleft, None), Job("tests.hostile.trial", seconds=WALL_SECONDS), 1)

    def one(place: int) -> Outcome:
        waiting.append(Task(place))
        return next(results).outcome

    yield one
    results.close()  # pyright: ignore[reportAttributeAccessIssue]  # a generator


@pytest.mark.parametrize("place", range(len(CASES)), ids=[case.key for case in CASES])
def test_a_hostile_input_is_refused_or_right(place: int, tried: Callable[[int], Outcome]) -> None:
    assert tried(place) == PASSED


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({case.key for case in CASES}) == len(CASES) >= 200
