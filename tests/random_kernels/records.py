"""Records of runs over seeds that follow each other, as the record of one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tests.random_kernels.check import Kind

SUMS = ("kernels", *(kind.value for kind in Kind), "operators", "seconds")
COUNTS = ("commits", "by_operator", "traits", "refusals")


def joined(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One record; ``commits`` says how many kernels ran on which.

    Raises ValueError for runs of different targets, and for seeds that nobody or two have checked.
    """
    ordered = sorted(records, key=lambda record: record["seed"])
    for one, other in pairwise(ordered):
        if (one["target"], one["guard"]) != (other["target"], other["guard"]):
            raise ValueError(f"a record of {one['target']} beside one of {other['target']}, or only one with guards")
        if one["seed"] + one["kernels"] != other["seed"]:
            raise ValueError(f"{one['kernels']} seeds from {one['seed']} on, and the next from {other['seed']} on")
    first_seeds: dict[str, int] = {}
    for record in reversed(ordered):
        first_seeds |= record["first_seed_refused"]
    found = {
        **ordered[0],
        **{key: sum(record[key] for record in ordered) for key in SUMS},
        **{key: dict(sum((Counter(record[key]) for record in ordered), Counter()).most_common()) for key in COUNTS},
        "first_seed_refused": first_seeds,
        "failures": [failure for record in ordered for failure in record["failures"]],
        "date": max(record["date"] for record in ordered),
    }
    return {key: found[key] for key in ordered[0]}
