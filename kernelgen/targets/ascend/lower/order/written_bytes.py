"""Which bytes an instruction writes, where several of one pipe fill one tile: fractals, rows, columns of rows.

Told apart, they need no barrier between them; all other accesses count as whole tiles or buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kernelgen.ascendc.expressions import Expression, Number
from kernelgen.ascendc.instructions import Call, Statement, Struct
from kernelgen.ascendc.types import BLOCK, FRACTAL
from kernelgen.targets.ascend.lower.program.effects import Use

Value = Callable[[Expression], int | None]
SHARES = 3
ONE_ROW = Number(1)
WINDOW = "LoadData3DParamsV2"
"""Of a load that fills a whole copy of a tile."""
COPIES = ("LoadData", "Fixpipe")
OVER_ROWS: Mapping[str, int] = MappingProxyType({"CopyRepeatParams": 2, "BinaryRepeatParams": 3})
"""Parameters of an instruction with a mask for each row -> the field with the blocks from row to row of what it writes."""


@dataclass(frozen=True)
class Reach:
    """Bytes ``low`` to ``high``; where ``step`` is not 0, of each step only the first ``length``."""

    low: int
    high: int
    step: int = 0
    length: int = 0


def reach_of(statement: Statement, use: Use, itemsize: int, number: Value) -> Reach | None:
    """The bytes that a LoadData, a Fixpipe, a Copy or an instruction of two operands over rows writes.

    None for others, and where the scalars are not known.
    """
    if not isinstance(statement, Call) or not use.write:
        return None
    params = next((a for a in statement.arguments if isinstance(a, Struct)), None)
    if params is None or params.name == WINDOW or (statement.operation not in COPIES and params.name not in OVER_ROWS):
        return None
    known = [number(value) if isinstance(value, Expression) else None for value in params.values]
    start = number(use.offset)
    if params.name in OVER_ROWS:
        scalars = [number(a) for a in statement.arguments if isinstance(a, Expression)]
        step = known[OVER_ROWS[params.name]]
        if len(scalars) != 2 or scalars[0] is None or known[0] != 1 or step is None:
            return None
        return _strips(start, scalars[1], step * BLOCK, scalars[0] * itemsize, itemsize)
    if statement.operation == "LoadData":
        return _rows(start, known[1], _plus(known[4], 1), 1, FRACTAL, itemsize)
    return _rows(start, known[1], known[3], known[0], itemsize, itemsize)


def _strips(start: int | None, rows: int | None, step: int, length: int, itemsize: int) -> Reach | None:
    """The first bytes of each row, from an element on."""
    if start is None or rows is None:
        return None
    low = start * itemsize
    return Reach(low, low + (rows - 1) * step + length, step if step > length else 0, length)


def _plus(value: int | None, more: int) -> int | None:
    return None if value is None else value + more


def _rows(
    start: int | None, rows: int | None, stride: int | None, columns: int | None, unit: int, itemsize: int
) -> Reach | None:
    """``rows`` of ``columns`` units, ``stride`` units apart, from an element on."""
    if start is None or rows is None or stride is None or columns is None:
        return None
    low, step, length = start * itemsize, stride * unit, columns * unit
    return Reach(low, low + (rows - 1) * step + length, step if step > length else 0, length)


def share_of(statement: Statement, use: Use) -> int | None:
    """Which share of a copy in L1 an instruction fills; None for others.

    Its rows, the second row of a tile that has one only, and the zeros in the rows that it lacks never meet. Each stands
    for one of ``SHARES`` bytes, so that whoever reads the copy meets them all.
    """
    if not isinstance(statement, Call) or not use.write:
        return None
    if fills_up(statement):
        return 2
    params = statement.arguments[-1]
    if isinstance(params, Struct) and params.name == "Nd2NzParams":
        return 1 if params.values[1] == ONE_ROW else 0
    return None


def fills_up(statement: Statement) -> bool:
    """Whether an instruction fills the end of a copy of a tile, behind a part that is not empty."""
    return isinstance(statement, Call) and statement.operation == "InitConstValue"
