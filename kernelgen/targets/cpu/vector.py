"""Vector loops: invariants before the loop, an unrolled main loop, a masked remainder, reductions after it."""

from __future__ import annotations

from dataclasses import replace

from kernelgen.nest.index import stride, variables
from kernelgen.nest.nodes import (
    Accumulate, Alloc, Block, Call, Expr, For, If, IndexValue, Let, Literal, Load, Ref, Statement, Store,
)  # fmt: skip
from kernelgen.targets.cpu import access
from kernelgen.targets.cpu.counting import conditional, counted_loop, integer, static_trips
from kernelgen.targets.cpu.expressions import expression
from kernelgen.targets.cpu.frame import Frame, Known, Lanes
from kernelgen.targets.cpu.indices import index_value, is_nonnegative
from kernelgen.targets.cpu.statements import finish_accumulator, run_block, start_accumulator
from kernelgen.targets.cpu.values import Value, iota
from kernelgen.targets.cpu.vector_plan import (
    VectorPlan, expressions_of, loads_of, subexpressions, walk, written_buffers,
)  # fmt: skip


def vector_loop(frame: Frame, loop: For, plan: VectorPlan) -> None:
    """Prints a loop by its plan. When the bounds are unknown, nothing is evaluated unless it runs at least once."""
    lower, upper = index_value(frame, loop.lower), index_value(frame, loop.upper)
    if static_trips(lower, upper, 1) is None:
        conditional(frame.function, lower.compare("slt", upper), lambda: _entered(frame, loop, plan, lower, upper))
    else:
        _entered(frame, loop, plan, lower, upper)


def _entered(frame: Frame, loop: For, plan: VectorPlan, lower: Value, upper: Value) -> None:
    function = frame.function
    inner = replace(frame, known=_known(frame, loop, plan.lanes))
    slots = {
        (r.buffer.name, r.index): [start_accumulator(frame, r, plan.lanes) for _ in range(plan.unroll)]
        for r in plan.reductions
    }

    def copies(start: Value, count: int, limit: Value | None) -> None:
        run_block(tuple(_copy(inner, loop, plan, slots, start, number, limit) for number in range(count)), loop.body)

    middle = _rounded_down(lower, upper, plan.lanes * plan.unroll)
    counted_loop(function, lower, middle, plan.lanes * plan.unroll, lambda j: copies(j, plan.unroll, None), "vector")
    if not plan.scalar_tail:
        rest = static_trips(middle, upper, 1)
        limit = None if rest is not None and rest % plan.lanes == 0 else upper
        counted_loop(function, middle, upper, plan.lanes, lambda j: copies(j, 1, limit), "rest")
    for reduction in plan.reductions:
        finish_accumulator(frame, reduction, slots[reduction.buffer.name, reduction.index], plan.lanes)
    if plan.scalar_tail:
        counted_loop(function, middle, upper, 1, lambda j: _scalar(frame, loop, j), "tail")


def _copy(
    frame: Frame, loop: For, plan: VectorPlan, slots: dict, start: Value, number: int, limit: Value | None
) -> Frame:
    """The frame of one of the unrolled copies; ``limit`` masks the lanes at or beyond it."""
    if number:
        start = start + number * plan.lanes
    lanes = Lanes(loop.var, start, plan.lanes)
    mask = None if limit is None else _mask(limit - start, plan.lanes)
    inner = frame.with_variable(loop.var, start, is_nonnegative(frame, loop.lower))
    return replace(inner, lanes=lanes, mask=mask, accumulators={key: slot[number] for key, slot in slots.items()})


def _mask(remaining: Value, lanes: int) -> Value:
    """The first ``remaining`` lanes."""
    return iota(remaining.function, "i32", lanes).compare("slt", remaining.intrinsic("smin", lanes).convert("trunc", "i32"))


def _scalar(frame: Frame, loop: For, counter: Value) -> None:
    run_block((frame.with_variable(loop.var, counter, is_nonnegative(frame, loop.lower)),), loop.body)


def _rounded_down(lower: Value, upper: Value, step: int) -> Value:
    trips = static_trips(lower, upper, 1)
    if trips is not None:
        return integer(lower.function, int(lower.text) + trips // step * step)
    return lower + ((upper - lower) & -step)


def _known(frame: Frame, loop: For, lanes: int) -> Known:
    """Invariant expressions as splatted values, and the invariant parts of addresses."""
    statements = tuple(walk(loop.body))
    unconditional = tuple(_unconditional(loop.body))
    variant = frozenset(s.name for s in statements if isinstance(s, Let))
    written = written_buffers(statements)
    values: dict[Expr, Value] = {}
    for statement in unconditional:
        for root in expressions_of(statement):
            for expr in _invariants(root, loop.var, variant, written):
                if expr not in values:
                    values[expr] = expression(frame, expr).splat(lanes)
    return Known(values, _row_pointers(frame, loop, statements, written))


def _row_pointers(frame: Frame, loop: For, statements: tuple[Statement, ...], written: frozenset[str]) -> dict:
    private = {s.buffer.name for s in statements if isinstance(s, Alloc)}
    accesses = [*loads_of(statements), *(s for s in statements if isinstance(s, Store | Accumulate))]
    pointers = {}
    for each in accesses:
        flat = access.flat_index(each.buffer, each.index)
        if each.buffer.name in private or stride(flat, loop.var) in (None, 0):
            continue
        key = access.row_key(each.buffer, flat, loop.var)
        if key not in pointers:
            pointers[key] = access.row_pointer(frame, frame.memory[each.buffer.name], key[1])
    return pointers


def _unconditional(statement: Statement):
    if isinstance(statement, Block):
        for inner in statement.statements:
            yield from _unconditional(inner)
    elif not isinstance(statement, If):
        yield statement


def _invariants(expr: Expr, variable: str, variant: frozenset[str], written: frozenset[str]):
    """The largest sub-expressions worth computing before the loop."""
    if isinstance(expr, Literal | Ref):
        return
    if _is_invariant(expr, variable, variant, written):
        yield expr
    elif isinstance(expr, Call):
        for argument in expr.args:
            yield from _invariants(argument, variable, variant, written)


def _is_invariant(expr: Expr, variable: str, variant: frozenset[str], written: frozenset[str]) -> bool:
    for each in subexpressions(expr):
        match each:
            case Ref(name) if name in variant:
                return False
            case Load(buffer, index):
                if buffer.name in written or any(variable in variables(i) for i in index):
                    return False
            case IndexValue(index) if variable in variables(index):
                return False
            case _:
                pass
    return True
