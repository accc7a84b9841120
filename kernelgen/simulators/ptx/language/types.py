"""PTX types: widths, and the numpy types that hold them. Registers hold bits; an instruction's type says how to read them."""

from __future__ import annotations

import numpy as np

WIDTHS = {"pred": 1, "tf32": 32, "f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32, "bf16": 16}
BITS: dict[int, np.dtype] = {
    1: np.dtype(np.bool_),
    8: np.dtype(np.uint8),
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
}
SIGNED: dict[int, np.dtype] = {
    8: np.dtype(np.int8),
    16: np.dtype(np.int16),
    32: np.dtype(np.int32),
    64: np.dtype(np.int64),
}
FLOATS: dict[str, np.dtype] = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
HALVES = ("f16", "bf16")
PACKED = {"f16x2": "f16", "bf16x2": "bf16", "u16x2": "u16", "s16x2": "s16"}


def is_type(part: str) -> bool:
    """Whether a part of an opcode names a type."""
    return part in WIDTHS or (part[:1] in "usbf" and part[1:] in ("8", "16", "32", "64", "128"))


def width_of(kind: str) -> int:
    """Bits of a type: 32 for ``s32``, 1 for ``pred``."""
    return WIDTHS[kind] if kind in WIDTHS else int(kind[1:])


def numpy_type(kind: str) -> np.dtype:
    """The numpy type of a register read as ``kind``; halves and packed pairs stay bits."""
    if kind in FLOATS:
        return FLOATS[kind]
    width = width_of(kind)
    return SIGNED[width] if kind[0] == "s" and kind not in PACKED else BITS[width]


def is_float(kind: str) -> bool:
    """Whether values of the type are floating point, packed pairs included."""
    return kind.startswith(("f", "bf", "tf"))


def opcode_types(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The types in an opcode: (``s64``, ``s32``) for ``cvt.s64.s32``."""
    return tuple(part for part in parts[1:] if is_type(part))
