"""Ways from one data type to another by the casts that a machine has.

int8 -> float32     int8 -> float16 (exact) -> float32 (exact)
float32 -> int8     float32 -> int32 (towards zero) -> int16 -> float16 -> int8
"""

from __future__ import annotations

from collections import deque

from kernelgen.errors import UnsupportedError
from kernelgen.machines.ascend.description import Machine
from kernelgen.tensor.dtypes import FLOAT16, FLOAT32, INT16, INT32, DType

Step = tuple[DType, str]


def cast_path(machine: Machine, source: DType, target: DType) -> tuple[Step, ...]:
    """The casts that lead there, each with its rounding mode. Raises UnsupportedError where none do."""
    if source == target:
        return ()
    if (source, target) in machine.casts:
        return ((target, _mode(machine, source, target)),)
    if source.is_float and target.is_integer and source != FLOAT16 and target.bits == 8:
        return tuple(
            step
            for a, b in ((source, INT32), (INT32, INT16), (INT16, FLOAT16), (FLOAT16, target))
            for step in cast_path(machine, a, b)
        )
    found = _search(machine, source, target)
    if found is None:
        raise UnsupportedError(
            "unsupported-dtype", f"no casts lead from {source.name} to {target.name} on {machine.name}"
        )
    return found


def _search(machine: Machine, source: DType, target: DType) -> tuple[Step, ...] | None:
    """The shortest way, over float32 before others of its length."""
    queue: deque[tuple[DType, tuple[Step, ...]]] = deque([(source, ())])
    seen = {source}
    while queue:
        here, path = queue.popleft()
        if here == target:
            return path
        pairs = sorted((pair for pair in machine.casts if pair[0] == here), key=lambda p: (p[1] != FLOAT32, p[1].name))
        for _, there in pairs:
            if there not in seen:
                seen.add(there)
                queue.append((there, (*path, (there, _mode(machine, here, there)))))
    return None


def _mode(machine: Machine, source: DType, target: DType) -> str:
    """Towards zero to integers, to nearest even to floats, exact where the table says so."""
    modes = machine.casts[source, target]
    if source.is_float and target.is_integer:
        return "CAST_TRUNC"
    return "CAST_RINT" if "CAST_RINT" in modes else "CAST_NONE"
