"""Index expressions as 64-bit integers, one per lane where they depend on the vector variable."""

from __future__ import annotations

from kernelgen.nest.nodes import Compare, Index, IndexBinary, IndexOp, Num, Ref, ValueIndex, Var
from kernelgen.targets.cpu.text.integers import is_signed
from kernelgen.targets.cpu.text.scope import Frame
from kernelgen.targets.cpu.text.values import Value, constant, iota

_PREDICATES = {"<": "slt", "<=": "sle", "==": "eq"}


def index_value(frame: Frame, index: Index) -> Value:
    """The value of an index: a scalar, or a vector when it varies along the lanes.

    Raises AssertionError for a place that data decides and nobody bound.
    """
    match index:
        case Num(value):
            return constant(frame.function, value, "i64")
        case Var(name):
            return _variable(frame, name)
        case ValueIndex(Ref(name, dtype)):
            return frame.bindings[name].convert("sext" if is_signed(dtype) else "zext", "i64")
        case ValueIndex():
            raise AssertionError("a place that data decides is a bound integer")
        case IndexBinary(op, left, right):
            return _binary(frame, op, left, right)


def condition_value(frame: Frame, conditions: tuple[Compare, ...]) -> Value:
    """The mask in which all conditions hold."""
    masks = [
        index_value(frame, c.left).compare(_PREDICATES[c.op], index_value(frame, c.right)) for c in conditions
    ]  # fmt: skip
    total = masks[0]
    for mask in masks[1:]:
        total = total & mask
    return total


def is_nonnegative(frame: Frame, index: Index) -> bool:
    """True when the index is certainly >= 0, which makes division one instruction."""
    match index:
        case Num(value):
            return value >= 0
        case Var(name):
            return name in frame.nonnegative
        case IndexBinary(IndexOp.SUB):
            return False
        case IndexBinary(IndexOp.MOD):
            return True
        case IndexBinary(IndexOp.MAX, left, right):
            return is_nonnegative(frame, left) or is_nonnegative(frame, right)
        case ValueIndex():
            return False
        case IndexBinary(_, left, right):
            return is_nonnegative(frame, left) and is_nonnegative(frame, right)


def _variable(frame: Frame, name: str) -> Value:
    lanes = frame.lanes
    if lanes is None or name != lanes.variable:
        return frame.variables[name]
    return lanes.start + iota(frame.function, "i64", lanes.count)


def _binary(frame: Frame, op: IndexOp, left: Index, right: Index) -> Value:
    a, b = index_value(frame, left), index_value(frame, right)
    match op:
        case IndexOp.ADD:
            return a + b
        case IndexOp.SUB:
            return a - b
        case IndexOp.MUL:
            return a * b
        case IndexOp.MIN:
            return a.intrinsic("smin", b)
        case IndexOp.MAX:
            return a.intrinsic("smax", b)
        case IndexOp.DIV:
            return a.binary("udiv", b) if is_nonnegative(frame, left) else _floor_quotient(a, b)
        case IndexOp.MOD:
            return a.binary("urem", b) if is_nonnegative(frame, left) else a - _floor_quotient(a, b) * b


def _floor_quotient(a: Value, b: Value) -> Value:
    """C's quotient, one less where the remainder is negative; ``b`` is positive."""
    return a.binary("sdiv", b) + a.binary("srem", b).compare("slt", 0).convert("sext", "i64")
