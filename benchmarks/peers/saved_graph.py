"""Reads the text that MindSpore saves of a graph (``save_graphs=2``): its launches, and the bytes of their operands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

NO_LAUNCH = frozenset(
    {"Depend", "ExpandDims", "Flatten", "FlattenGrad", "Load", "MakeTuple", "Reshape", "Return", "Squeeze"}
    | {"TupleGetItem", "UpdateState"}
)
ITEMSIZES = {"Bool": 1, "Float16": 2, "Int8": 1, "Int16": 2, "Int32": 4, "Int64": 8, "Float32": 4, "Float64": 8}


def launches(text: str) -> dict[str, Any]:
    """Kernels, operators outside of kernels, and the bytes of operands and results of both."""
    entry = re.search(r"IR entry: @(\S+)", text)
    assert entry is not None, "no graph"
    body = text.split(f"subgraph @{entry[1]}(", 1)[1].split("\n}", 1)[0]
    found = list(_calls(body))
    outside = [name for name, _ in found if not name.startswith("@")]
    return {
        "kernels": len(found) - len(outside),
        "outside": len(outside),
        "bytes": sum(size for _, size in found),
        "outside_names": {name: outside.count(name) for name in sorted(set(outside))},
    }


def _calls(body: str) -> Iterator[tuple[str, int]]:
    """(operator or @kernel, bytes) of every launch of a graph."""
    pattern = re.compile(
        r"^  %\w+\(.*?\) = (?:PrimFunc_)?(call @)?([\w.:-]+)\((.*)\n +: \((.*)\) -> \((.*)\)$", re.MULTILINE
    )
    for kernel, name, rest, operands, results in pattern.findall(body):
        if kernel or name not in NO_LAUNCH:
            given = _split(rest)
            types = dict(zip(given, _split(operands + ")"), strict=False))
            moved = sum(_bytes(type_) for value, type_ in types.items() if value.startswith("%"))
            yield ("@" if kernel else "") + name, moved + _bytes(results)


def _split(text: str) -> list[str]:
    """The items of an argument list, up to its closing bracket."""
    items, depth, item = [], 0, ""
    for sign in text:
        depth += (sign in "([{<") - (sign in ")]}>" and not item.endswith("-"))
        if depth < 0:
            break
        if sign == "," and depth == 0:
            items.append(item.strip())
            item = ""
        else:
            item += sign
    return [*items, item.strip()]


def _bytes(type_: str) -> int:
    """The bytes of a tensor type, or of all tensors of a tuple type."""
    total = 0
    pattern = (
        r"Tensor\[(\w+)\](?:\*\d+)?\]*, (?:ref_key=[^,]+, )?(?:TupleShape\(((?:\([\d, ]*\)(?:, )?)+)\)|\(([\d, ]*)\))"
    )
    for dtype, shapes, shape in re.findall(pattern, type_):
        for extents in re.findall(r"\(([\d, ]*)\)", shapes) if shapes else [shape]:
            count = ITEMSIZES[dtype]
            for extent in re.findall(r"\d+", extents):
                count *= int(extent)
            total += count
    return total
