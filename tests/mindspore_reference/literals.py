"""How a record writes what is not a node: ``I64(-1)``, ``(I64(1), I64(0))``, ``Bool(1)``, ``Tensor(shape=[2], ...)``."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernelgen.tensor.types import dtype

_SCALAR = re.compile(r"(?:[IFU]\d+|BF16)\((.+)\)")
_TENSOR = re.compile(r"Tensor\(shape=\[(.*?)\], dtype=(\w+), value=(.*)\)", re.DOTALL)
_TUPLE_TYPE = re.compile(r"Tuple\[(.*)\], TupleShape\((.*)\)")
BOOLS = {"true": 1.0, "false": 0.0}
Literal = bool | int | float | str | tuple["Literal", ...] | None


def literal(text: str) -> Literal:
    """A scalar, a text in quotes or a tuple of them; ``ValueError`` for anything else."""
    text = text.strip()
    if text[:1] in ("(", "["):
        return tuple(literal(part) for part in parts(text[1:-1]))
    if text in ("None", "NoneObj"):
        return None
    if match := re.fullmatch(r"Bool\((\d)\)", text):
        return match[1] == "1"
    if match := _SCALAR.fullmatch(text):
        return float(match[1]) if text[0] in "FB" else int(match[1])
    if text[:1] == '"':
        return text.strip('"')
    raise ValueError(f"{text} is no literal")


def is_literal(text: str) -> bool:
    """True for what :func:`literal` reads."""
    try:
        literal(text)
    except ValueError:
        return False
    return True


def parts(text: str) -> Sequence[str]:
    """The pieces between the commas that stand outside all brackets."""
    pieces, depth = [""], 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += sign
    return [piece.strip() for piece in pieces if piece.strip()]


def tensor(text: str, seed: int) -> np.ndarray[Any, np.dtype[Any]] | None:
    """A constant tensor; numbers that the record leaves out (``value=[...]``) are drawn. None for other texts."""
    match = _TENSOR.fullmatch(text)
    if match is None:
        return None
    shape = tuple(int(extent) for extent in parts(match[1]))
    to = dtype(match[2].lower()).numpy
    words = re.findall(r"-?(?:inf|nan|\d[\d.]*(?:[eE][-+]?\d+)?)|[Tt]rue|[Ff]alse", match[3].replace("...", ""))
    numbers = [BOOLS[word.lower()] if word.lower() in BOOLS else float(word) for word in words]
    if len(numbers) == math.prod(shape):
        return np.array(numbers).reshape(shape).astype(to)
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape).astype(to)


def types(output: dict[str, Any]) -> list[tuple[str, tuple[int, ...]]]:
    """Data type and shape of each result of a node; none for what is no tensor."""
    if "dtype" in output:
        return [(output["dtype"].lower(), tuple(output["shape"]))]
    match = _TUPLE_TYPE.fullmatch(output.get("type", ""))
    if match is None:
        return []
    names: list[str] = []
    for part in parts(match[1]):
        name, _, count = part.partition("*")
        names += [name.removeprefix("Tensor[").rstrip("]").lower()] * int(count or 1)
    shapes = [tuple(int(extent) for extent in parts(part.strip("()"))) for part in parts(match[2])]
    return list(zip(names, shapes, strict=True))
