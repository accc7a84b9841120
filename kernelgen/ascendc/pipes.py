"""Which pipe executes a call: most follow from the operation, a copy's from the memories it goes between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.instructions import Call, TensorRef
from kernelgen.ascendc.intrinsics import VECTOR_GROUPS, form_of
from kernelgen.ascendc.types import FIX, GM, L0A, L0B, L1, MTE1, MTE2, MTE3, PIPES, UB, M, S, V

ROUTES: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        (GM, UB): MTE2,
        (GM, L1): MTE2,
        (UB, GM): MTE3,
        (UB, L1): MTE3,
        (UB, UB): V,
        (L1, L0A): MTE1,
        (L1, L0B): MTE1,
        (L1, UB): MTE1,
    }
)
"""(from, to) -> the pipe that copies."""


def pipe_of(call: Call, memory_of: Callable[[str], str]) -> str:
    """The pipe that executes a call; ``memory_of`` gives a tensor's memory. Raises AscendError where no pipe copies so.

    A SetFlag belongs to the source of its pair, a WaitFlag to its target, a barrier to the pipe that it names.
    """
    form = form_of(call)
    match form.group:
        case group if group in VECTOR_GROUPS:
            return V
        case "mmad":
            return M
        case "fixpipe":
            return FIX
        case "set_flag" | "wait_flag":
            return event_of(call)[form.group == "wait_flag"]
        case "barrier" | "cross_set":
            return named_pipe(call)
        case "cross_wait" | "init":
            return S
        case "init_const":
            return _filling_pipe(call, memory_of)
        case _:
            dst, src = (memory_of(ref.tensor) for ref in call.arguments[:2] if isinstance(ref, TensorRef))
            if (src, dst) not in ROUTES:
                raise AscendError(f"{call.operation}: no pipe copies from {src} to {dst}", call.line)
            return ROUTES[src, dst]


def _filling_pipe(call: Call, memory_of: Callable[[str], str]) -> str:
    """The pipe that copies to a memory fills it, too."""
    target = call.arguments[0]
    memory = memory_of(target.tensor) if isinstance(target, TensorRef) else ""
    if memory not in (L1, L0A, L0B):
        raise AscendError(f"{call.operation}: no pipe fills {memory}", call.line)
    return MTE2 if memory == L1 else MTE1


def event_of(call: Call) -> tuple[str, str]:
    """(source, target) of a SetFlag or WaitFlag. Raises AscendError for an unknown event."""
    event = call.template[0].removeprefix("HardEvent::")
    source, _, target = event.partition("_")
    if source not in PIPES or target not in PIPES:
        raise AscendError(f"{call.operation}: unknown event {event!r}", call.line)
    return source, target


def named_pipe(call: Call) -> str:
    """The pipe of a PipeBarrier or CrossCoreSetFlag; ``ALL`` for all of them. Raises AscendError for an unknown one."""
    pipe = call.template[-1].removeprefix("PIPE_")
    if pipe not in (*PIPES, "ALL"):
        raise AscendError(f"{call.operation}: unknown pipe {call.template[-1]!r}", call.line)
    return pipe
