"""Comparisons (``setp``, ``set``): ordered ones are false for NaN, those that end in u are true for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from kernelgen.simulators.ptx.instructions.rounding import flush, widen
from kernelgen.simulators.ptx.language.types import HALVES

Compare = Callable[[np.ndarray, np.ndarray], np.ndarray]
ORDERED: Mapping[str, Compare] = {
    "eq": np.equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
UNSIGNED_NAMES = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
COMBINE: Mapping[str, Compare] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def comparison(parts: tuple[str, ...], kind: str) -> Compare | None:
    """The comparison of an opcode on numbers of ``kind`` (bits for halves), None for an unknown one."""
    compare = _plain(parts[1], kind)
    if compare is None:
        return None
    if kind in HALVES:
        return lambda a, b: compare(widen(a, kind), widen(b, kind))
    if kind == "f32" and "ftz" in parts:
        return lambda a, b: compare(flush(a), flush(b))
    return compare


def combination(parts: tuple[str, ...]) -> Compare | None:
    """How a third operand joins the result, None where there is no third."""
    return next((COMBINE[part] for part in parts[2:] if part in COMBINE), None)


def _plain(name: str, kind: str) -> Compare | None:
    name = UNSIGNED_NAMES.get(name, name)
    if name in ORDERED:
        return ORDERED[name]
    match name:
        case "ne":
            is_integer = kind[0] in "busp" and kind != "bf16"
            return np.not_equal if is_integer else lambda a, b: (a < b) | (a > b)
        case "equ":
            return lambda a, b: ~((a < b) | (a > b))
        case "neu":
            return np.not_equal
        case "num":
            return lambda a, b: ~(np.isnan(a) | np.isnan(b))
        case "nan":
            return lambda a, b: np.isnan(a) | np.isnan(b)
        case _ if name[:-1] in OPPOSITE and name[-1] == "u":
            ordered = ORDERED[OPPOSITE[name[:-1]]]
            return lambda a, b: ~ordered(a, b)
        case _:
            return None
