"""What must hold when a graph is compiled in debug mode and called, again and again, with different arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import graphkernel as gk
import kernelgen
from kernelgen.tensor.graph import Graph

Array = np.ndarray[Any, Any]
Inputs = Sequence[Array]
TOLERANCE = {"float32": 2e-4, "float64": 1e-5, "float16": 0.06, "bfloat16": 0.3}
KINDS_OF_NUMBERS = "iub"


def by_meaning(desc: Any, target: str) -> Any:
    """A compiler for plans alone: kernels by the numpy meaning of their description."""
    return kernelgen.reference(desc)


def fault(graph: Graph, calls: Sequence[Inputs], flags: dict[str, object], **options: Any) -> str | None:
    """What does not hold for a graph in a verified plan and poisoned memory, or None.

    Every call gives the graph's meaning, whatever the calls before and beside it were; inputs stay as they are unless the
    graph assigns to them; arrays of ``out=`` take the results. The plain memory of a release keeps the same.
    """
    executable = gk.compile(graph, flags={**flags, "enable_debug_mode": True}, **options)
    unlike = {id(arrays): arrays for arrays in calls}
    meanings = {which: gk.evaluate(graph, arrays) for which, arrays in unlike.items()}
    wanted = [meanings[id(arrays)] for arrays in calls]
    for number, (arrays, expected) in enumerate(zip(calls, wanted, strict=True)):
        why = called(executable, arrays, expected)
        if why is not None:
            return f"call {number}: {why}"
    released = gk.Executable(executable.plan, executable.report)  # where kernels make arrays themselves
    for one in (executable, released):
        why = into_given(one, calls[0], wanted[0]) or called(one, calls[-1], wanted[-1])
        if why is not None:
            return f"out=: {why}"
    return None if graph.aliases else beside_others(executable, calls, wanted)


def called(executable: gk.Executable, arrays: Inputs, expected: Sequence[Array]) -> str | None:
    """What one call does not keep."""
    given = [array.copy() for array in arrays]
    why = different(executable(*given), expected)
    written = {alias.input: alias.output for alias in executable.graph.aliases}
    for position, (array, before) in enumerate(zip(given, arrays, strict=True)):
        changed = different([array], [expected[written[position]] if position in written else before])
        if changed is not None:
            return f"input {position}: {changed}"
    return why


def into_given(executable: gk.Executable, arrays: Inputs, expected: Sequence[Array]) -> str | None:
    """The results in arrays of the caller."""
    out = tuple(np.full_like(array, 1) for array in expected)
    results = executable(*[array.copy() for array in arrays], out=out)
    if any(result is not place for result, place in zip(results, out, strict=True)):
        return "the results are other arrays"
    return different(out, expected)


def beside_others(executable: gk.Executable, calls: Sequence[Inputs], wanted: Sequence[Sequence[Array]]) -> str | None:
    """Calls of several threads at once."""

    def turns(start: int) -> str | None:
        for turn in range(4):
            number = (start + turn) % len(calls)
            why = different(executable(*[array.copy() for array in calls[number]]), wanted[number])
            if why is not None:
                return f"beside others: {why}"
        return None

    with ThreadPoolExecutor(3) as pool:
        return next(filter(None, pool.map(turns, range(3))), None)


def different(
    got: Sequence[Array], want: Sequence[Array], apart: Callable[[Array, Array], float] | None = None
) -> str | None:
    """Where results differ by more than rounding."""
    for index, (a, b) in enumerate(zip(got, want, strict=True)):
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"result {index} is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
        distance = (apart or _apart)(a, b)
        if not distance <= (0 if a.dtype.kind in KINDS_OF_NUMBERS else TOLERANCE[a.dtype.name]):
            return f"result {index} differs by {distance:.2g}"
    return None


def _apart(got: Array, want: Array) -> float:
    """The largest difference relative to the largest magnitude, which counts as 1 at least; of whole numbers any."""
    if got.dtype.kind in KINDS_OF_NUMBERS:
        return 0.0 if np.array_equal(got, want) else float("inf")
    a, b = got.astype(np.float64), want.astype(np.float64)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return float("inf")
    finite = np.isfinite(b)
    return float((np.abs(a[finite] - b[finite]) / max(1.0, np.abs(b[finite]).max(initial=0.0))).max(initial=0.0))
