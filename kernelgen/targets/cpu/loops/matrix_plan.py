"""Whether the registers of matrices take sums inside a loop marked ROWS, and which: those of products of bytes, four to a word.

    rows for i in ..: for w in ..: vector for j in ..: s[i, j] += byte_dot(word(a[i, 4 w] ..), b[w, j])

A register holds 16 rows of 64 bytes: 16 x 16 sums, 16 rows of 16 words of ``a``, or 16 words of 16 columns of ``b``. One
instruction adds the products of two of them to the third, modulo 2^32, as VNNI's does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernelgen.errors import ArgumentError
from kernelgen.nest.index import add, is_by_data, stride, substitute, subtract, variables
from kernelgen.nest.nodes import (
    Accumulate,
    Call,
    Expr,
    For,
    Literal,
    Load,
    LoopKind,
    Num,
    Prefetch,
    Statement,
    Store,
    Var,
)
from kernelgen.plan import MatrixChoice
from kernelgen.targets.cpu.loops.planned_loops import ChosenLoop
from kernelgen.targets.cpu.statements.access import flat_index
from kernelgen.targets.cpu.text.host import Host
from kernelgen.tensor.dtypes import INT32, UINT8

SIDE = 16
"""Rows of a register; elements of four bytes of each."""

BYTES = 4
"""Of a word."""

MOST_SIDES = 2
"""Registers of rows and of columns of a block: four hold its sums, two each the operands of eight in all."""

LEAST_WORDS = 4
"""Of a row, below which setting the registers up takes longer than the sums."""


@dataclass(frozen=True)
class MatrixSum:
    """The loop ``terms`` over words of ``a``'s rows and ``b``'s columns: ``words`` at a time, ``count`` times; what is left of
    them stays with the rows. ``first`` is the first byte of a word of ``a``, ``word`` one of ``b``.

    ``around`` are loops over further terms, ``steps`` bytes from row to row of ``a``, of words of ``b``, and of the sums.
    ``begins`` says that the sums are zero before.
    """

    around: tuple[For, ...]
    terms: For
    vector: For
    total: Accumulate
    first: Load
    word: Load
    hints: tuple[Prefetch, ...]
    words: int
    count: int
    steps: tuple[int, int, int]
    begins: bool = False


@dataclass(frozen=True)
class MatrixPlan:
    """The parts of the body of a loop over ``height`` rows: such sums, and statements that every row runs for itself."""

    height: int
    parts: tuple[Statement | MatrixSum, ...]


def matrix_plan(loop: For, host: Host) -> MatrixPlan | str:
    """The plan that the loop carries or that its choice makes, or why its rows run one after the other."""
    if isinstance(loop, ChosenLoop):
        return loop.plan
    return planned_matrices(loop, choose_matrices(loop, host), host)


def planned_matrices(loop: For, choice: MatrixChoice, host: Host) -> MatrixPlan | str:
    """The plan of a ``choice`` for a ``loop`` marked ROWS on the processor ``host``. Raises ArgumentError when registers of
    matrices cannot take its sums.
    """
    if not choice.registers:
        return choice.why or "chosen so"
    plan = _in_registers(loop, host)
    if isinstance(plan, str):
        raise ArgumentError(f"the loop over {loop.var} allows no registers of matrices: {plan}")
    return plan


def choose_matrices(loop: For, host: Host) -> MatrixChoice:
    """The choice for a loop, and why."""
    plan = _in_registers(loop, host)
    if isinstance(plan, str):
        return MatrixChoice(False, plan)
    sums = [f"{part.words * part.count} words" for part in plan.parts if isinstance(part, MatrixSum)]
    return MatrixChoice(True, f"{plan.height} rows at once, sums of {', '.join(sums)}")


def _in_registers(loop: For, host: Host) -> MatrixPlan | str:
    """The plan with all sums in registers that they can take, or why there are none."""
    if not host.has_matrices:
        return "the processor has none"
    length = subtract(loop.upper, loop.lower)
    if loop.step != 1 or not isinstance(length, Num) or not 1 < length.value <= MOST_SIDES * SIDE:
        return f"it is not over 2 to {MOST_SIDES * SIDE} rows"
    if not all(isinstance(part, For) for part in loop.body.statements):
        return "it holds more than loops"
    parts = tuple(_parts(loop))
    has_sums = any(isinstance(part, MatrixSum) for part in parts)
    return MatrixPlan(length.value, parts) if has_sums else "it holds no sum of products of bytes that they take"


def _parts(loop: For) -> Iterator[Statement | MatrixSum]:
    """The parts in order; a loop that sets sums to zero just before they begin is part of them."""
    before: Statement | None = None
    for part in loop.body.statements:
        found = _sum(loop, part)
        if found is not None and before is not None and _is_start(before, found):
            found, before = replace(found, begins=True), None
        if before is not None:
            yield before
        before = part if found is None else None
        if found is not None:
            yield found
    if before is not None:
        yield before


def _sum(rows: For, part: Statement) -> MatrixSum | None:
    """The sum that a part of the body of ``rows`` is; None for others."""
    around = list[For]()
    while isinstance(part, For) and part.kind is LoopKind.SERIAL and part.step == 1:
        around.append(part)
        *hints, part = part.body.statements
        if isinstance(part, For) and part.kind is LoopKind.VECTOR:
            return _of_words(rows, tuple(around), hints, part)
        if hints:
            return None
    return None


def _of_words(rows: For, around: tuple[For, ...], before: list[Statement], vector: For) -> MatrixSum | None:
    """The sum of a ``vector`` loop behind what stands ``before`` it in the innermost of the loops ``around``."""
    total = vector.body.statements[0] if len(vector.body.statements) == 1 else None
    hints = tuple(hint for hint in before if isinstance(hint, Prefetch))
    if not isinstance(total, Accumulate) or len(hints) < len(before) or not _are_rectangular(rows, around):
        return None
    factors = _factors(total)
    trips, width = (subtract(loop.upper, loop.lower) for loop in (around[-1], vector))
    if factors is None or not isinstance(trips, Num) or not isinstance(width, Num):
        return None
    steps = _steps(rows, around, vector, (*factors, total))
    if steps is None or width.value > MOST_SIDES * SIDE or trips.value < LEAST_WORDS:
        return None
    count = -(-trips.value // SIDE)
    return MatrixSum(around[:-1], around[-1], vector, total, *factors, hints, trips.value // count, count, steps)


def _are_rectangular(rows: For, around: tuple[For, ...]) -> bool:
    return not any(rows.var in variables(bound) for loop in around for bound in (loop.lower, loop.upper))


def _factors(total: Accumulate) -> tuple[Load, Load] | None:
    """The first byte of words of rows, and the words of columns; None for other sums."""
    value = total.value
    if total.function != "add" or not isinstance(value, Call) or value.function != "byte_dot":
        return None
    first, word = first_byte(value.args[0]), value.args[1]
    return None if first is None or not isinstance(word, Load) or word.buffer.dtype != INT32 else (first, word)


def _steps(
    rows: For, around: tuple[For, ...], vector: For, accesses: tuple[Load, Load, Accumulate]
) -> tuple[int, int, int] | None:
    """Bytes between rows of bytes, of words, and of sums; None where registers cannot be filled like that."""
    places = [flat_index(each.buffer, each.index) for each in accesses]
    if is_by_data(*places) or variables(places[2]) & {loop.var for loop in around}:
        return None
    along = [tuple(stride(place, loop.var) for loop in (rows, around[-1], vector)) for place in places]
    (row, four, none), (fixed, words, one), (down, still, beside) = along
    if (four, none, fixed, one, still, beside) != (BYTES, 0, 0, 1, 0, 1) or not row or not words or not down:
        return None
    return row, BYTES * words, BYTES * down


def first_byte(word: Expr) -> Load | None:
    """The first of four bytes without a sign, side by side in memory, that a word is made of by Horner's rule."""
    found, rest = list[Load](), _argument(word, "cast")
    while rest is not None:
        high, low = (None, rest)
        if isinstance(rest, Call) and rest.function == "add":
            scaled, low = rest.args
            if not isinstance(scaled, Call) or scaled.function != "mul" or not _is_256(scaled.args[1]):
                return None
            high = scaled.args[0]
        byte = _argument(low, "cast")
        if not isinstance(byte, Load) or byte.buffer.dtype != UINT8:
            return None
        found.append(byte)
        rest = high
    if len(found) != BYTES or len({byte.buffer for byte in found}) > 1:
        return None
    *outer, last = found[0].index
    beside = [(*outer, add(last, Num(place))) for place in range(BYTES)]
    return found[0] if [byte.index for byte in found] == beside else None


def _argument(value: Expr, function: str) -> Expr | None:
    return value.args[0] if isinstance(value, Call) and value.function == function else None


def _is_256(value: Expr) -> bool:
    return isinstance(value, Literal) and value.value == 1 << 8


def _is_start(part: Statement, found: MatrixSum) -> bool:
    """Whether a loop sets just the sums to zero."""
    vector = found.vector
    if not isinstance(part, For) or (part.lower, part.upper) != (vector.lower, vector.upper):
        return False
    store, *more = part.body.statements
    if more or not isinstance(store, Store) or store.buffer != found.total.buffer:
        return False
    place = tuple(substitute(each, {part.var: Var(vector.var)}) for each in store.index)
    return isinstance(store.value, Literal) and store.value.value == 0 and place == found.total.index
