"""Scalar functions of whole numbers that the machine has no instruction for, by :mod:`wholes`; and casts from and to them.

int8, uint8, int16, uint16    as int32, the result brought back into their range
uint32                        as words without a sign
int64, uint64                 as two words, picked from memory and put back by Gather
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kernelgen.targets.ascend.lower.functions.reals import Real, lanes_of, number_of, real_of
from kernelgen.targets.ascend.lower.functions.wholes import Whole, truncated
from kernelgen.targets.ascend.lower.functions.words import Word
from kernelgen.targets.ascend.lower.lanes.lanes import Lanes
from kernelgen.targets.ascend.lower.lanes.written_numbers import words_of
from kernelgen.targets.ascend.lower.program.names import Constant, Held, Value
from kernelgen.tensor.dtypes import BOOL, FLOAT32, INT32, INT64, UINT16, UINT32, UINT64, Category, DType

WORD = 32
WIDE = (INT64, UINT64)
EXACT = frozenset({(INT32, INT64), (INT64, FLOAT32), (FLOAT32, INT64)})
"""Casts that the machine has, and that are right for every number."""


def call(lanes: Lanes, function: str, args: Sequence[Value], dtype: DType) -> Held:
    """The value of ``function``, one of :data:`FUNCTIONS`, of ``args`` in the ``lanes`` of a turn; ``dtype`` is that
    of the operands.
    """
    if function == "select":
        return _select(lanes, args, dtype)
    known = _by_power_of_two(lanes, function, args, dtype)
    if known is not None:
        return held(lanes, known, dtype)
    operands = [whole(lanes, arg, dtype) for arg in args]
    if function in COMPARISONS:
        mask, positive = COMPARISONS[function](*operands)
        return lanes_of(mask if positive else ~mask)
    return held(lanes, ARITHMETIC[function](*operands), dtype)


# ---------------------------------------------------------------- tiles and words


def is_signed(dtype: DType) -> bool:
    """Whether the highest bit of a word is a sign: words hold shorter numbers with theirs."""
    return dtype.category is not Category.UINT or dtype.bits < WORD


def whole(lanes: Lanes, value: Value, dtype: DType) -> Whole:
    """A ``value`` as words of what an operation on ``dtype`` computes with, in the ``lanes`` of a turn."""
    signed, wide = is_signed(dtype), dtype.bits > WORD
    if isinstance(value, Constant):
        words = [Word.of(lanes, part) for part in words_of(replace(value, dtype=dtype))]
        return Whole(tuple(words[: 2 if wide else 1]), signed, dtype.bits <= 16)
    if value.narrow is not None:
        value = value.narrow
    if value.dtype.bits == 64:
        low, high = lanes.parted(lanes.held(value))
        return Whole((Word(lanes, low), Word(lanes, high))[: 2 if wide else 1], signed)
    word = _word(lanes, value)
    if wide:
        return Whole((Whole((word,), is_signed(value.dtype)).widened()).words, signed)
    return Whole((word,), signed, dtype.bits <= 16)


def _word(lanes: Lanes, value: Held) -> Word:
    if value.dtype == UINT32:
        return Word(lanes, lanes.seen_as(lanes.held(value), INT32))
    return Word(lanes, lanes.cast(value, INT32))


def held(lanes: Lanes, value: Whole, dtype: DType) -> Held:
    """Words (``value``) as elements of a tile of ``dtype``, modulo the width, in the ``lanes`` of a turn."""
    if dtype.bits > WORD:
        both = value.widened()
        return lanes.joined(both.low.value, both.high.value, dtype)
    if dtype.bits == WORD:
        return lanes.seen_as(value.low.held, dtype)
    return lanes.cast(value.low.held, dtype)


# ---------------------------------------------------------------- functions


def _minimum(a: Whole, b: Whole) -> Whole:
    return a.where(a.less(b), b)


def _maximum(a: Whole, b: Whole) -> Whole:
    return b.where(a.less(b), a)


def _sign(a: Whole) -> Whole:
    """0 - 1 or 0 - 0, and where that is not negative 1."""
    ones = Whole(tuple(a.is_some for _ in a.words), a.signed)
    return ones.where(a.is_negative, -ones)


ARITHMETIC: Mapping[str, Callable[..., Whole]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "neg": lambda a: -a,
    "abs": Whole.__abs__, "sign": _sign, "maximum": _maximum, "minimum": _minimum, "bitwise_xor": Whole.xor,
    "mod": lambda a, b: a.divided(b)[1], "floor_div": lambda a, b: a.floor_divided(b)[0],
    "floor_mod": lambda a, b: a.floor_divided(b)[1],
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), lambda a: a),
}  # fmt: skip
COMPARISONS: Mapping[str, Callable[[Whole, Whole], tuple[Word, bool]]] = {
    "less": lambda a, b: (a.less(b), True), "greater_equal": lambda a, b: (a.less(b), False),
    "greater": lambda a, b: (b.less(a), True), "less_equal": lambda a, b: (b.less(a), False),
    "not_equal": lambda a, b: (a.differs(b), True), "equal": lambda a, b: (a.differs(b), False),
}  # fmt: skip
"""Comparison -> a mask, and whether that or its complement is meant."""
DIVISIONS = frozenset({"mod", "floor_div", "floor_mod"})
FUNCTIONS = frozenset({*ARITHMETIC, *COMPARISONS, "select"})


def _by_power_of_two(lanes: Lanes, function: str, args: Sequence[Value], dtype: DType) -> Whole | None:
    """Division by a known power of two: a shift, or the last bits."""
    if function not in DIVISIONS or not isinstance(args[1], Constant) or isinstance(args[0], Constant):
        return None
    divisor = int(args[1].value)
    if divisor <= 0 or divisor & (divisor - 1) or (function == "mod" and dtype.category is not Category.UINT):
        return None
    number, bits = whole(lanes, args[0], dtype), divisor.bit_length() - 1
    return number.shifted(bits) if function == "floor_div" else number.last(bits)


def _select(lanes: Lanes, args: Sequence[Value], dtype: DType) -> Held:
    chosen = lanes.held(args[0])
    first, second = (whole(lanes, arg, dtype) for arg in args[1:])
    words = [
        Word(lanes, lanes.select(chosen, a.held, b.held, INT32)) for a, b in zip(first.words, second.words, strict=True)
    ]
    return held(lanes, Whole(tuple(words), first.signed), dtype)


# ---------------------------------------------------------------- casts


def cast(lanes: Lanes, value: Held, to: DType) -> Held:
    """The ``value`` as one of the data type ``to``, in the ``lanes`` of a turn: integers wrap around, floats lose
    their fraction.
    """
    source = value.dtype
    if source == to or not (_is_foreign(source) or _is_foreign(to)) or (source, to) in EXACT:
        return lanes.cast(value, to)
    if value.bits:
        return cast(lanes, lanes.cast(value, INT32), to)
    if source.is_float:
        return _from_real(lanes, Real(lanes, lanes.cast(value, FLOAT32)), to)
    if to.is_float:
        return lanes.cast(_real(lanes, value).held, to)
    if to == BOOL:
        return lanes_of(whole(lanes, value, source).is_some)
    return held(lanes, whole(lanes, value, to), to)


def _is_foreign(dtype: DType) -> bool:
    return dtype in (*WIDE, UINT32, UINT16)


def _from_real(lanes: Lanes, x: Real, to: DType) -> Held:
    if to == INT64:
        return lanes.cast(x.held, to)
    if to == UINT64:
        size = Whole(tuple(truncated(abs(x), 2)), signed=False)
        return held(lanes, (-size).where(x.bits.sign, size), to)
    if to == UINT32:
        return held(lanes, whole(lanes, lanes.cast(x.held, INT64), to), to)
    return lanes.cast(lanes.cast(x.held, INT32), to)


def _real(lanes: Lanes, value: Held) -> Real:
    """As float32, rounded once: numbers that fill 64 bits as half of them, of which no digit is lost that decides."""
    if value.dtype not in WIDE:
        number = whole(lanes, value, value.dtype)
        return number_of(number.low) if number.signed else number.real
    if value.dtype == INT64:
        return Real(lanes, lanes.cast(value, FLOAT32))
    number = whole(lanes, value, UINT64)
    half = Whole(tuple(a | b for a, b in zip(number.shifted(1).words, number.last(1).words, strict=True)), signed=False)
    chosen = half.where(number.high.sign, number)
    found = Real(lanes, lanes.cast(held(lanes, chosen, INT64), FLOAT32))
    return real_of((found * 2.0).bits.where(number.high.sign, found.bits))
