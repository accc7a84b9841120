"""Instructions that only compute, as actions on a frame: arithmetic, comparisons, selections, conversions, moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kernelgen.simulators.ptx.instructions import integers
from kernelgen.simulators.ptx.instructions.compare import combination, comparison
from kernelgen.simulators.ptx.instructions.convert import conversion
from kernelgen.simulators.ptx.instructions.floats import NATIVE, arity, float_compute
from kernelgen.simulators.ptx.instructions.integers import Compute
from kernelgen.simulators.ptx.instructions.operands import Action, Scope
from kernelgen.simulators.ptx.language.errors import PtxError
from kernelgen.simulators.ptx.language.nodes import Address, Instruction, Operand, Pair, Symbol, Vector
from kernelgen.simulators.ptx.language.types import BITS, is_float, numpy_type, opcode_types, width_of
from kernelgen.simulators.ptx.state.frame import Frame

Build = Callable[[Instruction, Scope], Action]


def unknown(instruction: Instruction) -> PtxError:
    """The error for what the interpreter does not implement."""
    return PtxError(f"`{instruction}` is not implemented by the interpreter", instruction.place.line)


def apply(
    instruction: Instruction, scope: Scope, compute: Compute, sources: Sequence[str], result: str, skip: int = 0
) -> Action:
    """``operand 0 = compute(the others)``, read as ``sources``; the last ``skip`` operands are left out.

    Raises PtxError for another number of operands.
    """
    operands = instruction.operands[1 : len(instruction.operands) - skip]
    if len(operands) != len(sources):
        raise unknown(instruction)
    readers = [scope.reader(operand, kind, instruction) for operand, kind in zip(operands, sources, strict=True)]
    write = scope.writer(instruction.operands[0], result, instruction)
    dtype = numpy_type(result)
    if len(readers) == 1:
        (read,) = readers
        return lambda frame: write(frame, compute(read(frame)).astype(dtype, copy=False))
    if len(readers) == 2:
        first, second = readers
        return lambda frame: write(frame, compute(first(frame), second(frame)).astype(dtype, copy=False))
    return lambda frame: write(frame, compute(*(read(frame) for read in readers)).astype(dtype, copy=False))


def _calculate(instruction: Instruction, scope: Scope) -> Action:
    """add, sub, mul, fma and the like, of the type that the opcode ends in."""
    parts, kind = instruction.opcode, instruction.opcode[-1]
    if is_float(kind):
        compute = float_compute(parts, kind)
        sources, result = [kind] * arity(parts[0]), kind
    else:
        compute, sources, result = _integer(parts, kind)
    if compute is None:
        raise unknown(instruction)
    return apply(instruction, scope, compute, sources, result)


def _integer(parts: tuple[str, ...], kind: str) -> tuple[Compute | None, list[str], str]:
    base = parts[0]
    if base == "mul":
        compute, result = integers.multiply(parts, kind)
        return compute, [kind, kind], result
    if base == "mad":
        product, result = integers.multiply(parts, kind)
        return lambda a, b, c: product(a, b) + c, [kind, kind, result], result
    plain = integers.PLAIN.get(base)
    if kind in ("u16x2", "s16x2") and plain:
        return _packed(plain, kind), [kind, kind], kind
    if plain and "sat" in parts:
        plain = integers.saturating(plain, kind)
    operands = {"abs": 1, "neg": 1, "not": 1, "brev": 1, "sad": 3}.get(base, 2)
    return plain, [kind] * operands, kind


def _packed(plain: Compute, kind: str) -> Compute:
    """On both 16-bit halves of a register."""
    pairs = np.int16 if kind == "s16x2" else np.uint16

    def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        low = plain(a.astype(np.uint16).view(pairs), b.astype(np.uint16).view(pairs)).view(np.uint16)
        shift = np.uint32(16)
        high = plain((a >> shift).astype(np.uint16).view(pairs), (b >> shift).astype(np.uint16).view(pairs))
        return low.astype(np.uint32) | high.view(np.uint16).astype(np.uint32) << shift

    return compute


def _logic(instruction: Instruction, scope: Scope) -> Action:
    """and, or, xor, not: on bits, or on predicates."""
    kind = instruction.opcode[-1]
    compute = integers.PLAIN[instruction.opcode[0]]
    return apply(instruction, scope, compute, [kind] * (len(instruction.operands) - 1), kind)


def _shift(instruction: Instruction, scope: Scope) -> Action:
    kind = instruction.opcode[-1]
    compute = integers.shift_left if instruction.opcode[0] == "shl" else integers.shift_right
    return apply(instruction, scope, compute, [kind, "u32"], kind)


def _count(instruction: Instruction, scope: Scope) -> Action:
    """popc, clz, bfind: 32 bits about a number of the opcode's type."""
    table: Mapping[str, Compute] = {
        "popc": integers.population,
        "clz": integers.leading_zeros,
        "bfind": integers.highest_bit,
    }
    compute = table[instruction.opcode[0]]
    if "shiftamt" in instruction.opcode:
        return apply(instruction, scope, _left_shift_amount, [instruction.opcode[-1]], "u32")
    return apply(instruction, scope, compute, [instruction.opcode[-1]], "u32")


def _left_shift_amount(value: np.ndarray) -> np.ndarray:
    """How far the highest bit is from the top, all ones for none."""
    found = integers.highest_bit(value)
    return np.where(found == np.uint32(0xFFFFFFFF), found, np.uint32(value.dtype.itemsize * 8 - 1) - found)


def _bits(instruction: Instruction, scope: Scope) -> Action:
    """bfe, bfi, prmt, lop3, shf, dp4a, dp2a."""
    parts, kind = instruction.opcode, instruction.opcode[-1]
    match parts[0]:
        case "bfe":
            return apply(instruction, scope, integers.extract_bits, [kind, "u32", "u32"], kind)
        case "bfi":
            return apply(instruction, scope, integers.insert_bits, [kind, kind, "u32", "u32"], kind)
        case "prmt" if len(parts) == 2:
            return apply(instruction, scope, integers.permute_bytes, ["b32"] * 3, "b32")
        case "lop3" if len(parts) == 2:
            return apply(instruction, scope, integers.logic3, ["b32"] * 4, "b32")
        case "shf":
            compute = integers.funnel("l" in parts, "clamp" in parts)
            return apply(instruction, scope, compute, ["b32"] * 3, "b32")
        case "dp4a":
            first, second = opcode_types(parts)
            result = "s32" if "s32" in (first, second) else "u32"
            return apply(instruction, scope, integers.dot_bytes(first, second), [first, second, result], result)
        case "dp2a":
            first, second = opcode_types(parts)
            result = "s32" if "s32" in (first, second) else "u32"
            compute = integers.dot_halves(first, second, upper="hi" in parts)
            return apply(instruction, scope, compute, [first, second, result], result)
        case _:
            raise unknown(instruction)


def _set_predicate(instruction: Instruction, scope: Scope) -> Action:
    """``setp.lt.and.s32 p|q, a, b, c``: p is the comparison joined with c, q its opposite joined with c."""
    parts, kind = instruction.opcode, instruction.opcode[-1]
    target, *sources = instruction.operands
    compare, combine = comparison(parts, kind), combination(parts)
    if compare is None or len(sources) != (2 if combine is None else 3):
        raise unknown(instruction)
    first, second = (scope.reader(operand, kind, instruction) for operand in sources[:2])
    third = scope.reader(sources[2], "pred", instruction) if combine else None
    targets = (target.first, target.second) if isinstance(target, Pair) else (target,)
    writers = [scope.writer(register, "pred", instruction) for register in targets]

    def act(frame: Frame) -> None:
        result = compare(first(frame), second(frame))
        results = (result, ~result)
        extra = third(frame) if third else None
        for write, value in zip(writers, results, strict=False):
            write(frame, value if combine is None or extra is None else combine(value, extra))

    return act


def _set_number(instruction: Instruction, scope: Scope) -> Action:
    """``set.lt.u32.f32``: all ones (or 1.0) where the comparison holds."""
    target, source = opcode_types(instruction.opcode)
    compare = comparison(instruction.opcode, source)
    if compare is None or combination(instruction.opcode):
        raise unknown(instruction)
    yes = np.array(1, np.float32) if target == "f32" else np.array(-1, np.int64).astype(numpy_type(target))
    return apply(
        instruction, scope, lambda a, b: np.where(compare(a, b), yes, yes.dtype.type(0)), [source, source], target
    )


def _select(instruction: Instruction, scope: Scope) -> Action:
    """selp chooses by a predicate, slct by the sign of its last operand."""
    kinds = opcode_types(instruction.opcode)
    if instruction.opcode[0] == "selp":
        return apply(instruction, scope, lambda a, b, c: np.where(c, a, b), [kinds[0], kinds[0], "pred"], kinds[0])
    return apply(instruction, scope, lambda a, b, c: np.where(c >= 0, a, b), [kinds[0], kinds[0], kinds[1]], kinds[0])


def _convert(instruction: Instruction, scope: Scope) -> Action:
    target, source = opcode_types(instruction.opcode)
    compute = conversion(instruction.opcode, target, source)
    if compute is None:
        raise unknown(instruction)
    return apply(instruction, scope, compute, [source] * (len(instruction.operands) - 1), target)


def _move(instruction: Instruction, scope: Scope) -> Action:
    """A copy, an address, or the parts of a register taken apart or put together."""
    target, source = instruction.operands
    kind = instruction.opcode[-1]
    if isinstance(target, Vector):
        return _unpack(instruction, scope, target.parts, source, kind)
    if isinstance(source, Vector):
        return _pack(instruction, scope, target, source.parts, kind)
    read, write = scope.reader(source, kind, instruction), scope.writer(target, kind, instruction)
    return lambda frame: write(frame, read(frame))


def _unpack(instruction: Instruction, scope: Scope, parts: tuple[Operand, ...], source: Operand, kind: str) -> Action:
    width = width_of(kind) // len(parts)
    read = scope.reader(source, f"b{width_of(kind)}", instruction)
    writers = [scope.writer(part, f"b{width}", instruction) for part in parts]
    wide = BITS[width_of(kind)].type

    def act(frame: Frame) -> None:
        bits = read(frame)
        for number, write in enumerate(writers):
            write(frame, (bits >> wide(number * width)).astype(BITS[width]))

    return act


def _pack(instruction: Instruction, scope: Scope, target: Operand, parts: tuple[Operand, ...], kind: str) -> Action:
    width = width_of(kind) // len(parts)
    readers = [scope.reader(part, f"b{width}", instruction) for part in parts]
    write = scope.writer(target, f"b{width_of(kind)}", instruction)
    wide = BITS[width_of(kind)]

    def act(frame: Frame) -> None:
        bits = readers[0](frame).astype(wide)
        for number, read in enumerate(readers[1:], 1):
            bits = bits | read(frame).astype(wide) << wide.type(number * width)
        write(frame, bits)

    return act


def _convert_address(instruction: Instruction, scope: Scope) -> Action:
    """cvta: generic addresses are the spaces' own here, each space has its own range."""
    kind = instruction.opcode[-1]
    target, source = instruction.operands
    if isinstance(source, Address):
        source = Symbol(source.base.name, source.offset) if isinstance(source.base, Symbol) else source.base
    read, write = scope.reader(source, kind, instruction), scope.writer(target, kind, instruction)
    return lambda frame: write(frame, read(frame))


def _test_number(instruction: Instruction, scope: Scope) -> Action:
    """testp: finite, infinite, number, notanumber, normal, subnormal."""
    kind = instruction.opcode[-1]
    smallest = np.finfo(numpy_type(kind)).tiny
    tests: Mapping[str, Compute] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda value: ~np.isnan(value),
        "notanumber": np.isnan,
        "normal": lambda value: np.isfinite(value) & (np.abs(value) >= smallest),
        "subnormal": lambda value: (value != 0) & (np.abs(value) < smallest),
    }
    return apply(instruction, scope, tests[instruction.opcode[1]], [kind], "pred")


BUILDERS: Mapping[str, Build] = {
    **dict.fromkeys(
        ("add", "sub", "div", "rem", "abs", "neg", "min", "max", "brev", "sad", "fma", "mad", "mul"), _calculate
    ),
    **dict.fromkeys((*(set(NATIVE) - {"add", "sub", "mul", "div"}), "copysign"), _calculate),
    **dict.fromkeys(("and", "or", "xor", "not"), _logic),
    **dict.fromkeys(("shl", "shr"), _shift),
    **dict.fromkeys(("popc", "clz", "bfind"), _count),
    **dict.fromkeys(("bfe", "bfi", "prmt", "lop3", "shf", "dp4a", "dp2a"), _bits),
    **dict.fromkeys(("selp", "slct"), _select),
    "setp": _set_predicate,
    "set": _set_number,
    "cvt": _convert,
    "mov": _move,
    "cvta": _convert_address,
    "testp": _test_number,
}
