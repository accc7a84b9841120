"""``python -m benchmarks.fresh CASE ours|torch``: one cold start, printed as one JSON object in milliseconds.

``import`` is loading the libraries; ``compile`` the first call, with all that leads to it, less a later call. Nothing of
what is timed may be loaded before, hence the imports inside functions.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module

LIBRARIES = {
    "ours": ("graphkernel", "graphkernel.driver", "kernelgen.driver", "kernelgen.targets.cpu"),
    "torch": ("torch",),
}
LATER_CALLS = 3


def main(case: str, contender: str) -> None:
    """Measures in this process, which must be a fresh one."""
    loading = milliseconds(lambda: [import_module(name) for name in LIBRARIES[contender]])
    print(json.dumps({"import": loading, "compile": first_call(case, contender)}))


def first_call(case: str, contender: str) -> float:
    """Milliseconds from the traced function to its first answer, less those of a later call."""
    from benchmarks.case import named
    from benchmarks.cases import CASES
    from benchmarks.contestants import OFFERS

    problem = named(CASES, [case])[0].at(tiny=False)
    assert problem.truth.size, "draws the inputs before the clock starts"
    start = time.perf_counter()
    contestant = next(OFFERS[contender](problem))
    contestant.run()
    until_first = (time.perf_counter() - start) * 1e3
    return until_first - min(milliseconds(contestant.run) for _ in range(LATER_CALLS))


def milliseconds(action: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


if __name__ == "__main__":
    main(*sys.argv[1:])
