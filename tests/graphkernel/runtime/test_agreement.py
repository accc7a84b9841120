"""Ranks that would do different things are told so, all of them, before anything is added up."""

from typing import Any

import numpy as np
import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.communication.agreement import agree
from graphkernel.communication.in_memory import run_ranks
from graphkernel.errors import RuntimeFailure
from tests.ranks.logged import Logged

X = np.ones((4, 6), np.float32)
TWO: dict[str, Any] = {"rank_size": 2}


def by_rank(*functions, level=2, arrays=(X, X)):
    """What each rank says or gives that runs the function of its number."""

    def program(communicator):
        x = arrays[communicator.rank]
        graph = gk.trace(functions[communicator.rank], gk.spec(x.shape, str(x.dtype)))
        try:
            return gk.compile(graph, level, communicator=communicator)(x)
        except RuntimeFailure as failure:
            return str(failure)

    return run_ranks(2, program, seconds=5)


def summed(x):
    return ops.all_reduce(x, **TWO)


@pytest.mark.parametrize(
    ("one", "other", "told"),
    [
        (summed, lambda x: ops.all_reduce(x, op="max", **TWO), "AllReduce sum .* AllReduce max"),
        (summed, lambda x: ops.all_reduce(x[:3], **TWO), r"f32\[4, 6\] on rank 0, .*f32\[3, 6\]"),
        (summed, lambda x: ops.all_gather(x[:2], **TWO), "AllReduce .* AllGather"),
        (summed, lambda x: ops.all_reduce(ops.cast(x, "float16"), **TWO), "f32.* f16"),
        (lambda x: ops.broadcast(x, 0, **TWO), lambda x: ops.broadcast(x, 1, **TWO), "rank 0 of .* rank 1 of"),
        (summed, lambda x: summed(summed(x)), "number 2 is nothing more on rank 0, AllReduce"),
    ],
)
def test_ranks_with_different_graphs_are_told_what_differs(one, other, told):
    first, second = by_rank(one, other)
    assert first == second
    with pytest.raises(AssertionError, match=told):
        raise AssertionError(first)


def test_messages_are_no_business_of_the_others():
    def first(x):
        ops.send(x, 1, **TWO)
        return summed(x)

    def second(x):
        return summed(ops.receive(x, 0, **TWO))

    for (found,) in by_rank(first, second):
        np.testing.assert_array_equal(found, 2 * X)


def test_they_agree_once_for_all_calls_and_again_for_other_extents():
    graph = gk.trace(summed, gk.spec(("n", 6)))

    def program(communicator):
        logged = Logged(communicator)
        run = gk.compile(graph, communicator=logged)
        for rows in (4, 4, 2, 4, 2):
            run(X[:rows])
        return [line.split()[0] for line in logged.log]

    for log in run_ranks(2, program):
        asked = ["all_gather"] * 2
        assert log == [*asked, "all_reduce", "all_reduce", *asked, "all_reduce", "all_reduce", "all_reduce"]


def test_what_all_told_is_cut_as_often_as_any_wants_at_least():
    def program(communicator):
        return agree(communicator, ("a", "b", "c"), (3, 1 + communicator.rank, 4 - communicator.rank), X)

    assert run_ranks(3, program) == [(3, 1, 2)] * 3


def test_ranks_may_be_optimized_to_different_levels():
    w = np.ones((6, 4096), np.float32)

    def program(communicator):
        graph = gk.trace(lambda x, w: ops.all_reduce(x @ w, **TWO), gk.spec((600, 6)), gk.spec(w.shape))
        return gk.compile(graph, 2 * communicator.rank, communicator=communicator)(np.ones((600, 6), np.float32), w)[0]

    for found in run_ranks(2, program, seconds=5):
        assert (found == 12).all()
