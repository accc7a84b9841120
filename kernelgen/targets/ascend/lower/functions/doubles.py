"""float64 by its bits, as two words: what needs no sum and no product of such numbers.

The machine has no unit for float64. Its numbers are moved, chosen, compared, stripped of their sign and converted here, all
exactly; arithmetic on them is refused.

    compare     the size as a whole number of 63 bits, negative where the sign says so: -0 is 0
    from whole  shifted so that the first bit stands at 63, then rounded to 53 bits
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kernelgen.targets.ascend.lower.functions.integers import cast as cast_whole
from kernelgen.targets.ascend.lower.functions.integers import held, whole
from kernelgen.targets.ascend.lower.functions.reals import Real, lanes_of, number_of, real_of
from kernelgen.targets.ascend.lower.functions.wholes import Whole
from kernelgen.targets.ascend.lower.functions.words import Word
from kernelgen.targets.ascend.lower.lanes.lanes import Lanes
from kernelgen.targets.ascend.lower.program.names import Held, Value
from kernelgen.tensor.dtypes import BOOL, FLOAT32, FLOAT64, INT32, INT64, UINT64, DType

ENDLESS = 0x7FF00000
"""The high word of infinity."""
ONE = 0x3FF00000
BIAS = 1023
POWERS = tuple((1 << k) - (1 << 32) * (k == 31) for k in range(32))
"""2^k as an int32."""


def call(lanes: Lanes, function: str, args: Sequence[Value]) -> Held:
    """The value of ``function``, one of :data:`FUNCTIONS`, of the float64 ``args`` in the ``lanes`` of a turn."""
    operands = [words_of(lanes, arg) for arg in args]
    if function in MASKS:
        return lanes_of(MASKS[function](*operands))
    return held(lanes, RULES[function](*operands), FLOAT64)


def words_of(lanes: Lanes, value: Value) -> Whole:
    """The bits of a number."""
    return whole(lanes, value, FLOAT64)


# ---------------------------------------------------------------- comparisons


def _size(x: Whole) -> Whole:
    return x.like(x.low, x.high.low(31))


def _key(x: Whole) -> Whole:
    """A whole number in the order of the floats."""
    size = _size(x)
    return (-size).where(x.high.sign, size)


def _endless(x: Whole) -> Whole:
    return x.like(Word.of(x.low.lanes, 0), Word.of(x.low.lanes, ENDLESS))


def _is_nan(x: Whole) -> Word:
    return _endless(x).less(_size(x))


def _is_infinite(x: Whole) -> Word:
    return ~_size(x).differs(_endless(x))


def _less(a: Whole, b: Whole) -> Word:
    return _key(a).less(_key(b)) & ~(_is_nan(a) | _is_nan(b))


def _equal(a: Whole, b: Whole) -> Word:
    return ~(_key(a).differs(_key(b)) | _is_nan(a))


MASKS: Mapping[str, Callable[..., Word]] = {
    "less": _less, "greater": lambda a, b: _less(b, a), "equal": _equal, "not_equal": lambda a, b: ~_equal(a, b),
    "less_equal": lambda a, b: _less(a, b) | _equal(a, b), "greater_equal": lambda a, b: _less(b, a) | _equal(a, b),
    "is_nan": _is_nan, "is_inf": _is_infinite, "is_finite": lambda x: _size(x).less(_endless(x)),
}  # fmt: skip

# ---------------------------------------------------------------- choices


def _maximum(a: Whole, b: Whole) -> Whole:
    return a.where(_is_nan(a) | _less(b, a), b)


def _minimum(a: Whole, b: Whole) -> Whole:
    return a.where(_is_nan(a) | _less(a, b), b)


def _sign(x: Whole) -> Whole:
    """1 with the sign of x; 0 and NaN stay."""
    one = x.like(Word.of(x.low.lanes, 0), (x.high >> 31 << 31) + ONE)
    return one.where(_size(x).is_some & ~_is_nan(x), x)


RULES: Mapping[str, Callable[..., Whole]] = {
    "maximum": _maximum, "minimum": _minimum, "abs": _size, "sign": _sign,
    "neg": lambda x: x.like(x.low, x.high + (1 << 31)),
}  # fmt: skip
FUNCTIONS = frozenset({*MASKS, *RULES})

# ---------------------------------------------------------------- casts


def cast(lanes: Lanes, value: Held, to: DType) -> Held:
    """The ``value`` as one of the data type ``to``, in the ``lanes`` of a turn: to or from float64, or another cast of
    numbers.
    """
    if FLOAT64 not in (value.dtype, to) or value.dtype == to:
        return cast_whole(lanes, value, to)
    if to == FLOAT64:
        return held(lanes, _made(lanes, value), FLOAT64)
    number = words_of(lanes, value)
    if to == BOOL:
        return lanes_of(_size(number).is_some)
    if to.is_float:
        return lanes.cast(_narrowed(number, 26 if to == FLOAT32 else 24).held, to)
    return cast_whole(lanes, held(lanes, _truncated(number), INT64 if to != UINT64 else UINT64), to)


def _made(lanes: Lanes, value: Held) -> Whole:
    if value.bits:
        ones = whole(lanes, value, INT32).low
        return Whole((Word.of(lanes, 0), ones * ONE), signed=True)
    if value.dtype.is_float:
        return _widened(Real(lanes, lanes.cast(value, FLOAT32)))
    number = whole(lanes, value, UINT64 if value.dtype == UINT64 else INT64)
    return _of_whole(number)


def _widened(x: Real) -> Whole:
    """Of a float32: another bias of the exponent; numbers without one have one after a product."""
    plain, raised = x.bits.low(31), (x * 2.0**64).bits.low(31)
    subnormal = (plain - (1 << 23)).sign
    size = raised.where(subnormal, plain)
    none, endless = ~_some(plain), ~(plain - (255 << 23)).sign
    bias = Word.of(x.lanes, (BIAS - 127 - 64) << 20).where(subnormal, Word.of(x.lanes, (BIAS - 127) << 20))
    bias = Word.of(x.lanes, (2047 - 255) << 20).where(endless, bias)
    high = ((size >> 3) + bias) & ~none
    return Whole((size << 29, high | (x.bits >> 31 << 31)), signed=True)


def _some(word: Word) -> Word:
    return (word | -word).sign


def _of_whole(number: Whole) -> Whole:
    """The nearest float64, ties to even."""
    lanes, size = number.low.lanes, abs(number)
    place = _first_bit(size)
    full = Whole((size * _power(63 - place)).words, signed=False)
    rest, kept = full.last(11), full.shifted(11)
    half = Whole((Word.of(lanes, 1 << 10), Word.of(lanes, 0)), signed=False)
    up = half.less(rest) | (~rest.differs(half) & (kept.low << 31).sign)
    exponent = (place + (BIAS - 1)) << 20
    found = kept.like(kept.low, kept.high + exponent) - kept.like(up, up)
    found = found.where(size.is_some, found.zero)
    return Whole((found.low, found.high | (number.is_negative << 31)), signed=True)


def _first_bit(size: Whole) -> Word:
    """The place of the first bit of a number that is not 0."""
    upper = _some(size.high)
    return _exponent(size.high.where(upper, size.low)) + (upper & Word.of(size.low.lanes, 32))


def _exponent(word: Word) -> Word:
    """The same of one word: float32 holds 24 bits, so that of the first of them it does not round."""
    long = _some(word >> 24)
    shown = number_of((word >> 8).where(long, word))
    return (shown.bits >> 23) - 127 + (long & Word.of(word.lanes, 8))


def _power(exponent: Word) -> Whole:
    """2 to that, which is from 0 to 63."""
    bit = exponent.low(5).look_up(POWERS, 0)
    upper = (exponent - 32).sign
    return Whole((bit & upper, bit & ~upper), signed=False)


def _truncated(number: Whole) -> Whole:
    """Towards zero, as a number of 64 bits."""
    exponent = (number.high >> 20).low(11) - BIAS
    size = Whole((number.low, number.high.low(20) + (1 << 20)), signed=False)
    left = Whole((size.low << 11, (size.high << 11) | (size.low >> 21)), signed=False)
    back = 63 - exponent
    for bit in range(6):
        chosen = (back << 31 - bit).sign
        left = left.shifted(1 << bit).where(chosen, left)
    small = exponent.sign
    left = left.like(*(word & ~small for word in left.words))
    found = (-left).where(number.high.sign, left)
    return Whole(found.words, signed=True)


def _narrowed(number: Whole, digits: int) -> Real:
    """The float32 of the first digits, the last of them set where others follow: what rounds it, rounds it once."""
    lanes, high = number.low.lanes, number.high.low(31)
    extra = digits - 21
    shown = (high.low(20) + (1 << 20) << extra) | (number.low >> 32 - extra)
    shown = shown | (_some(number.low << extra) >> 31)
    exponent = _bounded((high >> 20) - BIAS) - (digits - 1)
    half = exponent.over(1)
    size = number_of(shown) * real_of(half + 127 << 23) * real_of(exponent - half + 127 << 23)
    endless = ~(high - ENDLESS).sign
    quiet = (_is_nan(number) & Word.of(lanes, 1 << 22)) + (255 << 23)
    bits = quiet.where(endless, size.bits)
    return real_of(bits | (number.high >> 31 << 31))


def _bounded(exponent: Word) -> Word:
    """Where float32 is infinite or 0 anyway it may be any."""
    return exponent.at_least(-180).at_most(128)
