"""Whether and how a loop marked VECTOR becomes vectors: lanes, unrolling, register accumulators."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernelgen.errors import ArgumentError
from kernelgen.nest import nodes as n
from kernelgen.nest.cost import arithmetic_cost
from kernelgen.nest.index import settle, stride, subtract, values
from kernelgen.nest.walk import accesses_of, loads_of, statements
from kernelgen.plan import VectorChoice
from kernelgen.targets.cpu.loops.planned_loops import ChosenLoop
from kernelgen.targets.cpu.loops.varying import computed_in, expressions_of
from kernelgen.targets.cpu.statements.access import flat_index
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dtypes import BOOL, DType

TOGETHER = (1, 2, 3, 4)
"""How many vectors of one loop are written out; partial results are combined in pairs."""

MOST_HELD = 8
"""The same where a local holds one number for each iteration: it stays in registers, which have no addresses to count up."""

SUM_BLOCK = 1 << 13
"""Terms that are added in one register before they join the total: long float sums keep their accuracy."""


@dataclass(frozen=True)
class VectorPlan:
    """``lanes`` iterations at once, ``unroll`` copies of that; ``reductions`` are kept in registers.

    ``sum_block``: see :class:`kernelgen.plan.VectorChoice`.
    """

    lanes: int
    unroll: int
    reductions: tuple[n.Accumulate, ...]
    scalar_tail: bool
    sum_block: int | None = None


def vector_plan(loop: n.For, host: Host) -> VectorPlan | str:
    """The plan that the loop carries or that its choice makes, or why it must run one iteration at a time."""
    if isinstance(loop, ChosenLoop):
        return loop.plan
    return planned_vectors(loop, choose_vectors(loop, host), host)


def planned_vectors(loop: n.For, choice: VectorChoice, host: Host) -> VectorPlan | str:
    """The plan of a ``choice`` for ``loop`` on the processor ``host``. Raises ArgumentError when the loop allows no
    vectors.
    """
    if choice.lanes == 1:
        return choice.why or "chosen so"
    body = tuple(statements(loop.body))
    reductions = _reductions(loop, body)
    obstacle = _obstacle(loop, body, reductions)
    if obstacle:
        raise ArgumentError(f"the loop over {loop.var} allows no vectors: {obstacle}")
    tail = _needs_scalar_tail(body, host)
    return VectorPlan(choice.lanes, choice.copies, reductions, tail, choice.sum_block)


def choose_vectors(loop: n.For, host: Host) -> VectorChoice:
    """The choice for a loop, and why."""
    body, trips = tuple(statements(loop.body)), static_trips_of(loop)
    if host.vector_bytes == 1:
        return VectorChoice(1, why="no vectors of this processor are known")
    reductions = _reductions(loop, body)
    obstacle = _obstacle(loop, body, reductions)
    if obstacle:
        return VectorChoice(1, why=obstacle)
    widest = widest_bytes(loop)
    lanes = host.vector_bytes // widest
    if trips is not None:
        lanes = min(lanes, 1 << (trips - 1).bit_length())
    why = f"{widest} bytes of {host.vector_bytes}, {trips or 'unknown'} iterations, {body_cost(body):.1f} ns each"
    count, rest = divmod(trips or 0, lanes)
    if not rest and (count in TOGETHER or (count <= MOST_HELD and _holds(body, trips))):
        return VectorChoice(lanes, count, why=why)
    return VectorChoice(lanes, _unroll(body, lanes, trips), _sum_block(reductions, trips), why)


def edge_of(loop: n.For, lower: n.Index) -> n.For:
    """What is left of a loop from ``lower`` on: copies that only the whole loop was worth are dropped."""
    if not isinstance(loop, ChosenLoop) or not isinstance(plan := loop.plan, VectorPlan):
        return replace(loop, lower=lower)
    worth = min(plan.unroll, copies(tuple(statements(loop.body))))
    return replace(loop, lower=lower, plan=replace(plan, unroll=worth))


def static_trips_of(loop: n.For) -> int | None:
    """How often the loop runs, when the distance of its bounds is a constant."""
    extent = subtract(loop.upper, loop.lower)
    return max(0, -(-extent.value // loop.step)) if isinstance(extent, n.Num) else None


def _obstacle(loop: n.For, body: tuple[n.Statement, ...], reductions: tuple[n.Accumulate, ...]) -> str:
    trips = static_trips_of(loop)
    if loop.step != 1:
        return "the step is not 1"
    if trips is not None and trips < 2:
        return "fewer than two iterations"
    private = {s.buffer.name for s in body if isinstance(s, n.Alloc)}
    loaded = {load.buffer.name for s in body for load in loads_of(s)}
    stored = {s.buffer.name for s in body if isinstance(s, n.Store)}
    targets = {(r.buffer.name, r.index): r.function for r in reductions}
    for statement in body:
        match statement:
            case n.For():
                return "it has a loop inside"
            case n.Alloc(buffer) if buffer.shape:
                return "it makes an array in every iteration"
            case n.Store(buffer, index) if buffer.name not in private and _step(loop, statement) == 0:
                return "all iterations store to one element"
            case n.Accumulate(buffer, index, function) if buffer.name not in private:
                if _step(loop, statement) is None:
                    return "iterations may accumulate into one element"
                if targets.get((buffer.name, index), function) != function:
                    return "two functions accumulate into one element"
            case _:
                pass
    if any(r.buffer.name in loaded | stored for r in reductions):
        return "a reduced element is read in the loop"
    return ""


def _reductions(loop: n.For, body: tuple[n.Statement, ...]) -> tuple[n.Accumulate, ...]:
    """The accumulations whose target stays the same along the loop, one for each target."""
    private = {s.buffer.name for s in body if isinstance(s, n.Alloc)}
    by_target = {
        (s.buffer.name, s.index): s
        for s in body
        if isinstance(s, n.Accumulate) and s.buffer.name not in private and _step(loop, s) == 0
    }
    return tuple(by_target.values())


def _step(loop: n.For, statement: n.Store | n.Accumulate) -> int | None:
    """By how many elements the target moves from iteration to iteration; what is bound before the loop is constant."""
    flat = flat_index(statement.buffer, statement.index)
    bound = [value for value in values(flat) if isinstance(value, n.Ref)]
    inside = {s.name for s in statements(loop.body) if isinstance(s, n.Let)} if bound else set[str]()
    fixed: dict[n.Expr, n.Index] = {value: n.Num(0) for value in bound if value.name not in inside}
    return stride(settle(flat, fixed), loop.var)


def _holds(body: tuple[n.Statement, ...], trips: int | None) -> bool:
    """Whether the body touches a local with one element for each iteration."""
    touched = (buffer for s in body for buffer, _ in accesses_of(s))
    return any(buffer.space is n.Space.LOCAL and buffer.shape == (trips,) for buffer in touched)


def _dtypes(loop: n.For) -> frozenset[DType]:
    """Those of values that each iteration computes for itself; a place that is only compared takes no lanes of 64 bits, see
    :mod:`borders`."""
    parts = computed_in(loop)
    compared = {
        a
        for e in parts
        if isinstance(e, n.Call) and e.dtype == BOOL
        for a in e.args
        if isinstance(a, n.IndexValue | n.Literal)
    }
    computed = {e.dtype for e in parts if not isinstance(e, n.IndexValue | n.Literal) or e not in compared}
    stored = {s.buffer.dtype for s in statements(loop.body) if isinstance(s, n.Store | n.Accumulate)}
    return frozenset(computed | stored)


def widest_bytes(loop: n.For) -> int:
    """The widest data type fills a register; narrow ones are computed as four bytes or fill half of one."""
    return max((4, *(dtype.itemsize for dtype in _dtypes(loop))))


def _sum_block(reductions: tuple[n.Accumulate, ...], trips: int | None) -> int | None:
    is_long = trips is None or trips > 2 * SUM_BLOCK
    sums = any(r.function == "add" and r.buffer.dtype.is_float for r in reductions)
    return SUM_BLOCK if is_long and sums else None


def _unroll(body: tuple[n.Statement, ...], lanes: int, trips: int | None) -> int:
    """The copies that a body is worth, never more than the loop has iterations for."""
    count = copies(body)
    while trips is not None and count > 1 and trips < count * lanes:
        count //= 2
    return count


def copies(body: tuple[n.Statement, ...]) -> int:
    """Four copies of cheap bodies, two of middling ones, one of others.

    A long body keeps the processor busy by itself, and copies of it only cost compile time.
    """
    cost, roots = body_cost(body), sum(len(expressions_of(s)) for s in body)
    return 4 if cost < 0.5 and roots <= 12 else 2 if cost < 4 and roots <= 24 else 1


def body_cost(body: tuple[n.Statement, ...]) -> float:
    """The nanoseconds of one iteration's arithmetic on one lane, roughly."""
    return sum(arithmetic_cost(root) for s in body for root in expressions_of(s))


def _needs_scalar_tail(body: tuple[n.Statement, ...], host: Host) -> bool:
    """True when some access has no masked instruction; LLVM would print a branch for every lane."""
    if not host.has_masks:
        return True
    accessed = {load.buffer.dtype for s in body for load in loads_of(s)}
    accessed |= {s.buffer.dtype for s in body if isinstance(s, n.Store | n.Accumulate)}
    return not host.has_narrow_masks and any(dtype.itemsize < 4 for dtype in accessed)
