"""Integer arithmetic of PTX on numpy arrays: everything wraps, shifts clamp, nothing raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.simulators.ptx.language.types import BITS, SIGNED, numpy_type, width_of

Compute = Callable[..., np.ndarray]


def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Truncated quotient; PTX leaves division by zero open, here all bits are one."""
    if a.dtype.kind == "u":
        return np.where(b == 0, ~a.dtype.type(0), a // np.where(b == 0, b.dtype.type(1), b))
    unsigned = BITS[a.dtype.itemsize * 8]
    divisor = np.where(b == 0, b.dtype.type(1), b)
    size = np.abs(a).view(unsigned) // np.abs(divisor).view(unsigned)
    quotient = np.where((a < 0) != (b < 0), -size.view(a.dtype), size.view(a.dtype))
    return np.where(b == 0, a.dtype.type(-1), quotient)


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What truncated division leaves; its sign is that of ``a``."""
    return a - divide(a, b) * b


def multiply_high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper half of the product of full width."""
    width = a.dtype.itemsize * 8
    if width < 64:
        wide = SIGNED[64] if a.dtype.kind == "i" else BITS[64]
        return (a.astype(wide) * b.astype(wide) >> wide.type(width)).astype(a.dtype)
    high = _unsigned_high(a.view(np.uint64), b.view(np.uint64))
    if a.dtype.kind == "i":
        high = high - np.where(a < 0, b, 0).astype(np.uint64) - np.where(b < 0, a, 0).astype(np.uint64)
    return high.view(a.dtype)


def _unsigned_high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The upper 64 bits of a product of 64-bit numbers, from four products of halves."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    middle = a_high * b_low + (a_low * b_low >> half)
    other = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> half) + (other >> half)


def multiply_wide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product in twice the width."""
    width = 2 * a.dtype.itemsize * 8
    wide = SIGNED[width] if a.dtype.kind == "i" else BITS[width]
    return a.astype(wide) * b.astype(wide)


def shift_left(a: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """Amounts of the width and above give zero."""
    width = a.dtype.itemsize * 8
    inside = np.minimum(amount, np.uint32(width - 1)).astype(a.dtype)
    return np.where(amount >= width, a.dtype.type(0), a << inside)


def shift_right(a: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """Amounts of the width and above give zero, or the sign for signed types."""
    width = a.dtype.itemsize * 8
    inside = np.minimum(amount, np.uint32(width - 1)).astype(a.dtype)
    if a.dtype.kind == "i":
        return a >> inside
    return np.where(amount >= width, a.dtype.type(0), a >> inside)


def population(a: np.ndarray) -> np.ndarray:
    """How many bits are one."""
    return np.bitwise_count(a).astype(np.uint32)


def reverse_bits(a: np.ndarray) -> np.ndarray:
    """Bit i goes to bit width - 1 - i: swaps of halves, quarters and so on."""
    width = a.dtype.itemsize * 8
    result, size = a, width // 2
    while size:
        mask = a.dtype.type(sum(((1 << size) - 1) << start for start in range(0, width, 2 * size)))
        step = a.dtype.type(size)
        result = ((result & mask) << step) | ((result >> step) & mask)
        size //= 2
    return result


def leading_zeros(a: np.ndarray) -> np.ndarray:
    """How many zeros stand before the highest one."""
    width = a.dtype.itemsize * 8
    filled = a
    for step in (1, 2, 4, 8, 16, 32):
        if step < width:
            filled = filled | (filled >> a.dtype.type(step))
    return (width - np.bitwise_count(filled).astype(np.int64)).astype(np.uint32)


def highest_bit(a: np.ndarray) -> np.ndarray:
    """The position of the highest bit that differs from the sign, all ones where there is none (``bfind``)."""
    unsigned = BITS[a.dtype.itemsize * 8]
    bits = np.where(a < 0, ~a, a).view(unsigned) if a.dtype.kind == "i" else a
    width = a.dtype.itemsize * 8
    return np.where(bits == 0, np.uint32(0xFFFFFFFF), np.uint32(width - 1) - leading_zeros(bits))


def extract_bits(a: np.ndarray, position: np.ndarray, length: np.ndarray) -> np.ndarray:
    """``length`` bits from ``position``, extended by their sign for signed types."""
    width = a.dtype.itemsize * 8
    start, count = position & np.uint32(0xFF), length & np.uint32(0xFF)
    shifted = shift_right(a.view(BITS[width]), start)
    field = shifted & _mask(count, width)
    if a.dtype.kind != "i":
        return field
    last = np.minimum(start.astype(np.int64) + count - 1, width - 1).clip(0).astype(np.uint32)
    negative = (shift_right(a.view(BITS[width]), last) & BITS[width].type(1) == 1) & (count != 0)
    return np.where(negative, field | ~_mask(count, width), field).view(a.dtype)


def insert_bits(field: np.ndarray, into: np.ndarray, position: np.ndarray, length: np.ndarray) -> np.ndarray:
    """``into`` with ``length`` bits from ``position`` replaced by those of ``field``."""
    width = into.dtype.itemsize * 8
    start, count = position & np.uint32(0xFF), length & np.uint32(0xFF)
    mask = shift_left(_mask(count, width), start)
    return (into & ~mask) | (shift_left(field, start) & mask)


def _mask(count: np.ndarray, width: int) -> np.ndarray:
    """``count`` low bits."""
    one = BITS[width].type(1)
    return np.where(
        count >= width, ~BITS[width].type(0), shift_left(np.full_like(count, 1, dtype=BITS[width]), count) - one
    )


def permute_bytes(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """Each byte picked out of the eight of a and b, or its sign spread over the byte (``prmt``)."""
    pool = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    result = np.zeros(np.broadcast_shapes(pool.shape, selector.shape), dtype=np.uint32)
    for number in range(4):
        choice = (selector >> np.uint32(4 * number)) & np.uint32(0xF)
        byte = (pool >> ((choice & np.uint32(7)) * np.uint32(8)).astype(np.uint64) & np.uint64(0xFF)).astype(np.uint32)
        spread = np.where(byte & np.uint32(0x80), np.uint32(0xFF), np.uint32(0))
        result = result | np.where(choice & np.uint32(8), spread, byte) << np.uint32(8 * number)
    return result


def logic3(a: np.ndarray, b: np.ndarray, c: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Any function of three bits, given by its 8 results (``lop3``)."""
    wanted = int(np.ravel(table)[0])
    result = a & np.uint32(0)
    for number in range(8):
        if wanted >> number & 1:
            result = result | (a if number & 4 else ~a) & (b if number & 2 else ~b) & (c if number & 1 else ~c)
    return result


def funnel(left: bool, clamp: bool) -> Compute:
    """A shift of the 64 bits ``high:low`` by at most 32, of which 32 are kept (``shf``)."""

    def shift(low: np.ndarray, high: np.ndarray, amount: np.ndarray) -> np.ndarray:
        by = np.minimum(amount, np.uint32(32)) if clamp else amount & np.uint32(31)
        pair = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)
        moved = (pair << by.astype(np.uint64)) >> np.uint64(32) if left else pair >> by.astype(np.uint64)
        return moved.astype(np.uint32)

    return shift


def absolute_difference(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """``|a - b| + c``."""
    return np.where(a > b, a - b, b - a) + c


def dot_bytes(first: str, second: str) -> Compute:
    """The sum of four products of bytes, plus c (``dp4a``)."""
    kinds = (numpy_type(first[0] + "8"), numpy_type(second[0] + "8"))

    def dot(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        total = c.astype(np.int64)
        for number in range(4):
            left, right = ((value.view(np.uint32) >> np.uint32(8 * number)).astype(np.uint8) for value in (a, b))
            total = total + left.view(kinds[0]).astype(np.int64) * right.view(kinds[1]).astype(np.int64)
        return total.astype(c.dtype)

    return dot


def dot_halves(first: str, second: str, upper: bool) -> Compute:
    """The sum of two products, halves of a with the lower (or upper) bytes of b, plus c (``dp2a``)."""
    wide, narrow = numpy_type(first[0] + "16"), numpy_type(second[0] + "8")

    def dot(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        total = c.astype(np.int64)
        for number in range(2):
            left = (a.view(np.uint32) >> np.uint32(16 * number)).astype(np.uint16).view(wide)
            right = (b.view(np.uint32) >> np.uint32(8 * (number + 2 * upper))).astype(np.uint8).view(narrow)
            total = total + left.astype(np.int64) * right.astype(np.int64)
        return total.astype(c.dtype)

    return dot


def saturating(compute: Compute, kind: str) -> Compute:
    """``add.sat.s32`` and ``sub.sat.s32``: clamped in place of wrapped."""
    limits = np.iinfo(numpy_type(kind))

    def clamped(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.clip(compute(a.astype(np.int64), b.astype(np.int64)), limits.min, limits.max).astype(a.dtype)

    return clamped


PLAIN: Mapping[str, Compute] = {
    "add": np.add,
    "sub": np.subtract,
    "div": divide,
    "rem": remainder,
    "abs": np.abs,
    "neg": np.negative,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "brev": reverse_bits,
    "sad": absolute_difference,
}


def multiply(parts: tuple[str, ...], kind: str) -> tuple[Compute, str]:
    """The product that ``mul`` and ``mad`` want and its type: ``.lo``, ``.hi`` or ``.wide``."""
    if "wide" in parts:
        return multiply_wide, f"{kind[0]}{2 * width_of(kind)}"
    return (multiply_high if "hi" in parts else np.multiply), kind
