"""Numbers, attribute values and names as text that reads back bit for bit."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from kernelgen.tensor.types import AttrValue, Category, DType, Sym

NAME = r"[A-Za-z_][A-Za-z0-9_.]*"
RESERVED = frozenset({"graph", "kernel", "const", "return", "inf", "nan", "True", "False", "None"})
INLINE_LIMIT = 16  # constants of at most so many elements are written out


def name_text(name: str) -> str:
    """The name, in quotes when it is not a plain one."""
    return name if re.fullmatch(NAME, name) and name not in RESERVED else quoted(name)


def quoted(text: str) -> str:
    """Any text in double quotes, in characters that can be printed."""
    return json.dumps(text).replace("\x7f", "\\u007f")


def can_spell(dtype: DType) -> bool:
    """Whether elements of this data type have a spelling; complex numbers and what no kernel holds have none."""
    return dtype.category not in (Category.COMPLEX, Category.OPAQUE)


def element_text(element: Any, dtype: DType) -> str:  # a numpy scalar or 0-d array
    """One element. NaNs other than the usual one show their bits: ``nan(0x7fc00001)``."""
    if not dtype.is_float:
        return str(bool(element)) if dtype.category is Category.BOOL else str(int(element))
    scalar = np.asarray(element, dtype.numpy)
    short = str(scalar[()])
    if short == "nan":
        return "nan" if _bits(scalar) == _bits(_from_decimal("nan", dtype)) else f"nan({_bits(scalar):#x})"
    text = short if _bits(_from_decimal(short, dtype)) == _bits(scalar) else repr(float(scalar))
    return text if re.search(r"[.enf]", text) else f"{text}.0"


def parse_element(text: str, dtype: DType) -> np.ndarray:
    """The inverse of :func:`element_text`. Raises ``ValueError`` when the text is no element of this data type."""
    if dtype.is_opaque:
        raise ValueError(f"elements of {dtype.name} cannot be written; constants of it are named by their digest")
    if dtype.category is Category.BOOL:
        if text not in ("True", "False"):
            raise ValueError(f"{text!r} is not a bool: True or False")
        return np.asarray(text == "True")
    if not dtype.is_float:
        try:
            return np.asarray(int(text), dtype.numpy)
        except (ValueError, OverflowError):
            raise ValueError(f"{text!r} is not an element of {dtype.name}") from None
    if text.startswith("nan("):
        return np.asarray(int(text[4:-1], 16), f"u{dtype.itemsize}").view(dtype.numpy)
    return _from_decimal(text, dtype)


def attribute_text(value: AttrValue) -> str:
    """An attribute value in Python's spelling; a symbolic dim is its polynomial."""
    if isinstance(value, tuple):
        return f"({', '.join(map(attribute_text, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, str):
        return quoted(value)
    return str(value) if isinstance(value, Sym) else repr(value)


def _from_decimal(text: str, dtype: DType) -> np.ndarray:
    return np.asarray(float(text)).astype(dtype.numpy)


def _bits(scalar: np.ndarray) -> int:
    return int(np.asarray(scalar).view(f"u{scalar.dtype.itemsize}")[()])
