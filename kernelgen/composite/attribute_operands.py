"""Constant operands that are attributes in disguise: from version 1 on, AKG's writers no longer turn them around.

A reader that knows this table reads all three versions alike (AKG: ``input_to_attr``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kernelgen.composite.json_cursor import Cursor
from kernelgen.composite.vocabulary import facts, operator_named
from kernelgen.tensor.operators.indexing import ONE_HOT

ATTRIBUTE_OPERANDS = facts(lambda word: word.traits.attribute_operands)
"""Operator -> position of a constant operand -> the attribute that it stands for."""

MINIMUM_OPERANDS = {ONE_HOT: 4}
"""OneHot(ids, on, off) has a data operand where a later version has the depth: only the long form is turned around."""

TYPE_IDS: Mapping[int, str] = {
    30: "bool", 32: "int8", 33: "int16", 34: "int32", 35: "int64", 37: "uint8", 38: "uint16", 39: "uint32", 40: "uint64",
    42: "float16", 43: "float32", 44: "float64", 45: "bfloat16", 48: "complex64", 49: "complex128",
}  # fmt: skip
"""MindSpore's numbers of the data types."""

SINGLE_VALUES = frozenset({"depth", "num_segments", "dst_type"})


def attribute_operands(op: str, operands: Sequence[Cursor]) -> dict[int, tuple[str, Any]]:
    """Position -> (attribute, value) for the operands of a JSON operator that are attributes.

    Only constants count. A constant of shape ``[0]`` that carries a number comes from an uninitialised pointer: it is
    dropped without a value (the shape of the result says what it would have said).
    """
    word = operator_named(op)
    if len(operands) < MINIMUM_OPERANDS.get(word, 0):
        return {}
    found: dict[int, tuple[str, Any]] = {}
    for position, name in ATTRIBUTE_OPERANDS.get(word, {}).items():
        if position >= len(operands) or operands[position].key("value").missing:
            continue
        found[position] = (name, _value(name, operands[position]))
    return found


def _value(name: str, operand: Cursor) -> Any:  # whatever JSON holds
    value = operand.key("value")
    if operand.key("shape").value == [0]:
        return [] if isinstance(value.value, list) else None
    if name == "dst_type" and isinstance(value.value, int):
        if value.value not in TYPE_IDS:
            value.fail(f"a MindSpore type id ({', '.join(f'{k} {v}' for k, v in TYPE_IDS.items())})")
        return TYPE_IDS[value.value]
    if name in SINGLE_VALUES and isinstance(value.value, list) and len(value.value) == 1:
        return value.value[0]
    return value.value
