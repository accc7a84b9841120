"""Which operators a faulty generator may take for each other."""

from __future__ import annotations

from collections.abc import Mapping

_BOTH_WAYS = (
    ("Maximum", "Minimum"), ("Add", "Sub"), ("Mul", "RealDiv"), ("Mul", "Add"), ("Less", "LessEqual"),
    ("Greater", "GreaterEqual"), ("Greater", "Less"), ("GreaterEqual", "LessEqual"), ("Equal", "NotEqual"),
    ("LogicalAnd", "LogicalOr"), ("ReduceMax", "ReduceMin"), ("ReduceSum", "ReduceMax"), ("ReduceAll", "ReduceAny"),
    ("Argmax", "Argmin"), ("IsNan", "IsInf"), ("Floor", "Ceil"), ("Round", "Floor"), ("Sqrt", "Rsqrt"), ("Log", "Log1p"),
    ("Exp", "Expm1"), ("Sin", "Cos"), ("ElemAny", "ElemAll"), ("CReal", "CImag"), ("SelectGT", "SelectGE"),
    ("SelectLT", "SelectLE"), ("Mod", "FloorMod"),
)  # fmt: skip


def _table() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for left, right in _BOTH_WAYS:
        found[left] = (*found.get(left, ()), right)
        found[right] = (*found.get(right, ()), left)
    return found


SWAPS: Mapping[str, tuple[str, ...]] = _table()
"""Operator -> operators of the same operands that differ from it."""

ORDERED: Mapping[str, tuple[int, ...]] = {
    "Sub": (1, 0), "RealDiv": (1, 0), "Div": (1, 0), "Pow": (1, 0), "FloorDiv": (1, 0), "Select": (0, 2, 1), "Concat": (1, 0),
    "Complex": (1, 0), "Atan2": (1, 0),
    **dict.fromkeys(("SelectGT", "SelectLT", "SelectGE", "SelectLE"), (0, 1, 3, 2)),
}  # fmt: skip
"""Operator -> the order of operands that it is mistaken for."""
