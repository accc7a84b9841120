"""Products of bytes, four to a word: one instruction of newer processors, which others do in several; and products of halves.

``total + u0 s0 + u1 s1 + u2 s2 + u3 s3`` of words ``u`` of bytes without a sign and ``s`` of bytes with one, modulo 2^32.
Others multiply halves of words, which bytes become before where that can be (:mod:`kernelgen.transforms.cpu.byte_pairs`).
"""

from __future__ import annotations

from kernelgen.targets.cpu.text.values import Value, unify, vector_type

BYTES, BITS, HALF = 4, 8, 16
LOW_BYTES = 0x00FF00FF
"""The lower byte of each half of a word."""

PAIRS = {4: "llvm.x86.sse2.pmadd.wd", 8: "llvm.x86.avx2.pmadd.wd", 16: "llvm.x86.avx512.pmaddw.d.512"}
"""Instructions that multiply halves of words, which have signs, and add the two products of each word: they lose nothing,
unlike that for bytes, which saturates.
"""


def added(total: Value, unsigned: Value, signed: Value) -> Value:
    """``total`` and the products of the bytes of ``unsigned`` and ``signed`` words, in as many lanes as the widest of them."""
    total, unsigned, signed = unify(total, unsigned, signed)
    host = total.function.module.host
    if host.adds_byte_products(total.lanes):
        return _called(f"llvm.x86.avx512.vpdpbusd.{32 * total.lanes}", total, unsigned, signed)
    if host.adds_pairs(total.lanes):
        return total + _by_pairs(unsigned, signed)
    for place in range(BYTES):
        shift = BITS * place
        byte = (signed << (BITS * (BYTES - 1) - shift)).binary("ashr", BITS * (BYTES - 1))
        total = total + (unsigned.binary("lshr", shift) & 0xFF) * byte
    return total


def of_halves(left: Value, right: Value) -> Value:
    """The products of the halves of the words ``left`` and ``right``, which have signs, as one sum."""
    left, right = unify(left, right)
    if left.function.module.host.adds_pairs(left.lanes):
        return _pairs(left, _halves(right))
    upper = left.binary("ashr", HALF) * right.binary("ashr", HALF)
    return upper + (left << HALF).binary("ashr", HALF) * (right << HALF).binary("ashr", HALF)


def widened(pair: Value) -> Value:
    """The two bytes, with signs, of each ``pair`` of 16 bits as halves of words: one instruction, which may load them."""
    text = pair.function.assign(f"bitcast {pair.typed} to <{2 * pair.lanes} x i8>")
    halves = Value(pair.function, text, "i8", 2 * pair.lanes).convert("sext", "i16")
    text = pair.function.assign(f"bitcast {halves.typed} to {vector_type('i32', pair.lanes)}")
    return Value(pair.function, text, "i32", pair.lanes)


def _by_pairs(unsigned: Value, signed: Value) -> Value:
    """Bytes as halves of words: those at even places and those at odd ones."""
    even, odd = unsigned & LOW_BYTES, unsigned.binary("lshr", BITS) & LOW_BYTES
    halves = _halves(signed)
    low, high = (each.binary("ashr", BITS) for each in (halves << BITS, halves))
    return _pairs(even, low) + _pairs(odd, high)


def _halves(words: Value) -> Value:
    lanes = 2 * words.lanes
    text = words.function.assign(f"bitcast {words.typed} to <{lanes} x i16>")
    return Value(words.function, text, "i16", lanes)


def _pairs(words: Value, halves: Value) -> Value:
    """The sum of the two products of each word's halves."""
    first = _halves(words)
    callee = words.function.module.declare(PAIRS[words.lanes], words.type, f"{first.type}, {first.type}")
    text = words.function.assign(f"call {words.type} {callee}({first.typed}, {halves.typed})")
    return Value(words.function, text, words.kind, words.lanes)


def _called(name: str, total: Value, *words: Value) -> Value:
    signature = ", ".join(operand.type for operand in (total, *words))
    callee = total.function.module.declare(name, total.type, signature)
    operands = ", ".join(operand.typed for operand in (total, *words))
    return Value(
        total.function, total.function.assign(f"call {total.type} {callee}({operands})"), total.kind, total.lanes
    )
