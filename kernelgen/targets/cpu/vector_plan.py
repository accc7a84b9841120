"""Whether and how a loop marked VECTOR becomes vectors: lanes, unrolling, register accumulators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernelgen.dtypes import DType
from kernelgen.nest.index import settle, stride, subtract, values
from kernelgen.nest.nodes import Accumulate, Alloc, Call, Expr, For, Index, Let, Num, Ref, Statement, Store
from kernelgen.nest.scalars import SCALARS
from kernelgen.nest.walk import loads_of, statements
from kernelgen.targets.cpu.access import flat_index
from kernelgen.targets.cpu.host import Host


@dataclass(frozen=True)
class VectorPlan:
    """``lanes`` iterations at once, ``unroll`` copies of that; ``reductions`` are kept in registers."""

    lanes: int
    unroll: int
    reductions: tuple[Accumulate, ...]
    scalar_tail: bool


def vector_plan(loop: For, host: Host) -> VectorPlan | str:
    """The plan, or why the loop must run one iteration at a time."""
    trips = static_trips_of(loop)
    if host.vector_bytes == 1:
        return "the processor has no vectors that are known here"
    if loop.step != 1:
        return "the step is not 1"
    if trips is not None and trips < 2:
        return "fewer than two iterations"
    body = tuple(statements(loop.body))
    obstacle = _obstacle(loop, body)
    if obstacle:
        return obstacle
    lanes = _lanes(body, host)
    if trips is not None:
        lanes = min(lanes, 1 << (trips - 1).bit_length())
    return VectorPlan(
        lanes=lanes,
        unroll=_unroll(body, lanes, trips),
        reductions=_reductions(loop, body),
        scalar_tail=_needs_scalar_tail(body, host),
    )


def static_trips_of(loop: For) -> int | None:
    """How often the loop runs, when the distance of its bounds is a constant."""
    extent = subtract(loop.upper, loop.lower)
    return max(0, -(-extent.value // loop.step)) if isinstance(extent, Num) else None


def expressions_of(statement: Statement) -> tuple[Expr, ...]:
    """The expressions that a statement evaluates itself."""
    return (statement.value,) if isinstance(statement, Let | Store | Accumulate) else ()


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """The expression and all in it."""
    waiting = [expr]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, Call):
            waiting.extend(reversed(each.args))


def _obstacle(loop: For, body: tuple[Statement, ...]) -> str:
    private = {s.buffer.name for s in body if isinstance(s, Alloc)}
    reductions = _reductions(loop, body)
    loaded = {load.buffer.name for s in body for load in loads_of(s)}
    stored = {s.buffer.name for s in body if isinstance(s, Store)}
    targets = {(r.buffer.name, r.index): r.function for r in reductions}
    for statement in body:
        match statement:
            case For():
                return "it has a loop inside"
            case Alloc(buffer) if buffer.shape:
                return "it makes an array in every iteration"
            case Store(buffer, index) if buffer.name not in private and _step(loop, statement) == 0:
                return "all iterations store to one element"
            case Accumulate(buffer, index, function) if buffer.name not in private:
                if _step(loop, statement) is None:
                    return "iterations may accumulate into one element"
                if targets.get((buffer.name, index), function) != function:
                    return "two functions accumulate into one element"
            case _:
                pass
    if any(r.buffer.name in loaded | stored for r in reductions):
        return "a reduced element is read in the loop"
    return ""


def _reductions(loop: For, body: tuple[Statement, ...]) -> tuple[Accumulate, ...]:
    """The accumulations whose target stays the same along the loop, one for each target."""
    private = {s.buffer.name for s in body if isinstance(s, Alloc)}
    by_target = {
        (s.buffer.name, s.index): s
        for s in body
        if isinstance(s, Accumulate) and s.buffer.name not in private and _step(loop, s) == 0
    }
    return tuple(by_target.values())


def _step(loop: For, statement: Store | Accumulate) -> int | None:
    """By how many elements the target moves from iteration to iteration; what is bound before the loop is constant."""
    inside = {s.name for s in statements(loop.body) if isinstance(s, Let)}
    flat = flat_index(statement.buffer, statement.index)
    fixed: dict[Expr, Index] = {v: Num(0) for v in values(flat) if isinstance(v, Ref) and v.name not in inside}
    return stride(settle(flat, fixed), loop.var)


def _dtypes(body: tuple[Statement, ...]) -> frozenset[DType]:
    computed = {e.dtype for s in body for root in expressions_of(s) for e in subexpressions(root)}
    return frozenset(computed | {s.buffer.dtype for s in body if isinstance(s, Store | Accumulate)})


def _lanes(body: tuple[Statement, ...], host: Host) -> int:
    """The widest data type fills a register; narrow ones are computed as four bytes or fill half of one."""
    widest = max((dtype.itemsize for dtype in _dtypes(body)), default=4)
    return host.vector_bytes // max(widest, 4)


def _unroll(body: tuple[Statement, ...], lanes: int, trips: int | None) -> int:
    """The copies that a body is worth, never more than the loop has iterations for."""
    count = copies(body)
    while trips is not None and count > 1 and trips < count * lanes:
        count //= 2
    return count


def copies(body: tuple[Statement, ...]) -> int:
    """Four copies of cheap bodies, two of middling ones, one of others.

    A long body keeps the processor busy by itself, and copies of it only cost compile time.
    """
    roots = [root for s in body for root in expressions_of(s)]
    cost = sum(_cost(root) for root in roots)
    return 4 if cost < 0.5 and len(roots) <= 12 else 2 if cost < 4 and len(roots) <= 24 else 1


def _cost(expr: Expr) -> float:
    return sum(SCALARS[e.function].cost for e in subexpressions(expr) if isinstance(e, Call))


def _needs_scalar_tail(body: tuple[Statement, ...], host: Host) -> bool:
    """True when some access has no masked instruction; LLVM would print a branch for every lane."""
    if not host.has_masks:
        return True
    accessed = {load.buffer.dtype for s in body for load in loads_of(s)}
    accessed |= {s.buffer.dtype for s in body if isinstance(s, Store | Accumulate)}
    return not host.has_narrow_masks and any(dtype.itemsize < 4 for dtype in accessed)
