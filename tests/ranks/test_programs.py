"""Programs of several ranks compute what one process computes, and every rank does the same in the same order."""

import numpy as np
import pytest

from graphkernel.communication.in_memory import run_ranks
from graphkernel.errors import RuntimeFailure
from tests.ranks.checks import check, near
from tests.ranks.logged import Logged
from tests.ranks.processes import run_job
from tests.ranks.programs import PROGRAMS, alone, on_rank


@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_as_ranks(name, ranks, level):
    def program(communicator):
        logged = Logged(communicator)
        return on_rank(name, level, logged), logged.log

    found = run_ranks(ranks, program)
    for results, log in found:
        assert log == found[0][1]
        for array, wanted in zip(results, alone(name), strict=True):
            near(array, wanted)


def test_two_processes(tmp_path):
    check(run_job("mpi", 2, tmp_path))


def test_a_rank_that_does_something_else_is_named():
    def program(communicator):
        x = np.ones(4, np.float32)
        (communicator.all_reduce if communicator.rank else communicator.all_gather)(
            x, *((x.copy(), "sum") if communicator.rank else (np.ones(8, np.float32),))
        ).wait()

    with pytest.raises(
        RuntimeFailure, match=r"turn 0: rank 1 does all_reduce\(sum\) of float32\[4\], rank 0 all_gather"
    ):
        run_ranks(2, program)


def test_a_rank_that_does_not_come_is_named():
    def program(communicator):
        if communicator.rank == 0:
            communicator.all_reduce(np.ones(4), np.ones(4), "sum").wait()

    with pytest.raises(RuntimeFailure, match="rank 1 did not come"):
        run_ranks(2, program, seconds=0.05)
