"""Sums of one row times weights that are stored as bytes or as two numbers of four bits in each, found in a nest.

``held[j] += row[k] * (number(w[k, j]) - zeros[j]) * scale[j]``, as :mod:`kernelgen.poly.lower.stored_products` writes it:
the number of a byte is the byte, those of two of four bits are ``w % 16 - 8`` and ``w // 16 - 8``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernelgen.nest import index as ix
from kernelgen.nest import nodes as n
from kernelgen.nest.substitute import written_out
from kernelgen.tensor.dtypes import FLOAT32, INT8, UINT8
from kernelgen.tensor.operators.matmul import HALF_NIBBLE
from kernelgen.transforms.common.common_scales import factors_of, terms_of
from kernelgen.transforms.cpu.byte_words import cast
from kernelgen.transforms.cpu.row_digits import times

BYTE_MIDDLE = 128
STEPS = 2 * HALF_NIBBLE


@dataclass(frozen=True)
class StoredSum:
    """What a nest adds to the ``target`` for each term: the elements of ``rows``, one for each number in a byte of what is
    ``stored``, times that number less the ``zeros``, all that times the ``scales``.

    Of a byte without a sign, ``middle`` is subtracted from the number; a byte with a sign is such a one less 128.
    """

    target: n.Accumulate
    rows: tuple[n.Load, ...]
    stored: n.Load
    zeros: n.Expr | None
    scales: tuple[n.Expr, ...]

    @property
    def middle(self) -> int:
        """What numbers without a sign are less the stored ones."""
        return HALF_NIBBLE if self.are_nibbles else BYTE_MIDDLE

    @property
    def are_nibbles(self) -> bool:
        """Whether two numbers share a byte."""
        return len(self.rows) > 1


def stored_sum(terms: n.For, vector: n.For, constants: frozenset[str]) -> StoredSum | None:
    """The sum that the ``vector`` loop adds up over ``terms``; None for others, and where weights are no ``constants``."""
    *bindings, target = vector.body.statements
    lets = [part for part in bindings if isinstance(part, n.Let)]
    if not isinstance(target, n.Accumulate) or len(lets) < len(bindings) or target.function != "add":
        return None
    factors = factors_of(written_out(target.value, {part.name: part.value for part in lets}))
    scales = tuple(factor for factor in factors if terms.var not in ix.variables_in(factor))
    others = [factor for factor in factors if factor not in scales]
    found = _of_bytes(others) or _of_nibbles(others)
    if found is None or target.buffer.dtype != FLOAT32 or found[1].buffer.name not in constants:
        return None
    rows, stored, zeros = found
    read = {load.buffer.name for each in (*scales, *([zeros] if zeros else [])) for load in each.loads}
    is_fixed = zeros is None or terms.var not in ix.variables_in(zeros)
    is_row = all(vector.var not in ix.variables_in(each) and not ix.is_by_data(*each.index) for each in rows)
    is_along = stored.index[-1] == n.Var(vector.var) and not ix.is_by_data(*stored.index)
    if not is_fixed or not is_row or not is_along or not read <= constants:
        return None
    return StoredSum(target, rows, stored, zeros, scales)


Found = tuple[tuple[n.Load, ...], n.Load, n.Expr | None]


def _of_bytes(factors: Sequence[n.Expr]) -> Found | None:
    """``row * (number - zeros)``."""
    if len(factors) != 2:
        return None
    row, number = factors
    zeros: n.Expr | None = None
    if isinstance(number, n.Call) and number.function == "sub":
        number, zeros = number.args
    stored = number.args[0] if isinstance(number, n.Call) and number.function == "cast" else None
    is_row = isinstance(row, n.Load) and row.dtype == FLOAT32
    if not isinstance(stored, n.Load) or stored.dtype != INT8 or not is_row:
        return None
    assert isinstance(row, n.Load)
    return (row,), stored, zeros


def _of_nibbles(factors: Sequence[n.Expr]) -> Found | None:
    """``(low - high / 16) * (w % 16) + high / 16 * w - 8 * (low + high) - (low + high) * zeros``."""
    terms = terms_of(factors[0]) if len(factors) == 1 else []
    if len(terms) not in (3, 4):
        return None
    of_rest, of_whole, *_ = (factors_of(term) for term in terms)
    whole, first = of_whole[-1], of_rest[0]
    stored = whole.args[0] if isinstance(whole, n.Call) and whole.function == "cast" else None
    low = first.args[0] if isinstance(first, n.Call) and first.function == "sub" else None
    high, zeros = of_whole[0], None if len(terms) == 3 else factors_of(terms[-1])[-1]
    if not isinstance(low, n.Load) or not isinstance(high, n.Load) or not isinstance(stored, n.Load):
        return None
    is_it = stored.dtype == UINT8 and low.dtype == FLOAT32 and terms == _nibble_terms(low, high, stored, zeros)
    return ((low, high), stored, zeros) if is_it else None


def _nibble_terms(low: n.Load, high: n.Load, stored: n.Load, zeros: n.Expr | None) -> list[n.Expr]:
    """The terms as they are written."""
    part, both = times(high, _number(1 / STEPS)), n.Call("add", (low, high), FLOAT32)
    rest = n.Call("floor_mod", (stored, n.Literal(STEPS, UINT8)), UINT8)
    less = n.Call("sub", (low, part), FLOAT32)
    terms = [times(less, cast(rest, FLOAT32)), times(part, cast(stored, FLOAT32)), times(both, _number(-HALF_NIBBLE))]
    return terms if zeros is None else [*terms, times(times(both, _number(-1.0)), zeros)]


def _number(value: float) -> n.Expr:
    return n.Literal(float(value), FLOAT32)
