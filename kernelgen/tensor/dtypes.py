"""The data types, declared once for both packages. ``kernelgen.tensor`` re-exports them."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np

from kernelgen.system.cached_property import cached_property

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class Category(Enum):
    """What family of arithmetic a data type belongs to."""

    BOOL = "bool"
    INT = "int"
    UINT = "uint"
    FLOAT = "float"
    COMPLEX = "complex"
    OPAQUE = "opaque"
    """Nothing here computes with it: graphs hand such values from one operator of a library to the next."""


class DType:
    """A scalar data type: ``name`` as MindSpore spells it, which tells it from others, ``short`` as the text IR prints it."""

    def __init__(self, name: str, short: str, category: Category, bits: int) -> None:
        self.name: Final = name
        self.short: Final = short
        self.category: Final = category
        self.bits: Final = bits

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DType) and self.name == other.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"DType({self.name})"

    def __str__(self) -> str:
        return self.short

    @property
    def itemsize(self) -> int:
        """Bytes in memory; a bool takes one byte."""
        return max(self.bits // 8, 1)

    @cached_property
    def numpy(self) -> np.dtype:
        """The numpy data type with the same bits (bfloat16 comes from ml_dtypes)."""
        if self.name != "bfloat16":
            return np.dtype(self.name)
        import ml_dtypes  # numpy knows it by this package alone

        return np.dtype(ml_dtypes.bfloat16)

    @property
    def is_float(self) -> bool:
        """True for the real floating point types."""
        return self.category is Category.FLOAT

    @cached_property
    def is_opaque(self) -> bool:
        """True for what no kernel holds."""
        return self.category is Category.OPAQUE

    @property
    def is_integer(self) -> bool:
        """True for signed and unsigned integers, not for bool."""
        return self.category in (Category.INT, Category.UINT)


BOOL = DType("bool", "bool", Category.BOOL, 1)
INT8 = DType("int8", "i8", Category.INT, 8)
INT16 = DType("int16", "i16", Category.INT, 16)
INT32 = DType("int32", "i32", Category.INT, 32)
INT64 = DType("int64", "i64", Category.INT, 64)
UINT8 = DType("uint8", "u8", Category.UINT, 8)
UINT16 = DType("uint16", "u16", Category.UINT, 16)
UINT32 = DType("uint32", "u32", Category.UINT, 32)
UINT64 = DType("uint64", "u64", Category.UINT, 64)
FLOAT16 = DType("float16", "f16", Category.FLOAT, 16)
BFLOAT16 = DType("bfloat16", "bf16", Category.FLOAT, 16)
FLOAT32 = DType("float32", "f32", Category.FLOAT, 32)
FLOAT64 = DType("float64", "f64", Category.FLOAT, 64)
COMPLEX64 = DType("complex64", "c64", Category.COMPLEX, 64)
COMPLEX128 = DType("complex128", "c128", Category.COMPLEX, 128)

DTYPES: tuple[DType, ...] = (
    BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64,
    FLOAT16, BFLOAT16, FLOAT32, FLOAT64, COMPLEX64, COMPLEX128,
)  # fmt: skip

_BY_NAME = {spelling: d for d in DTYPES for spelling in (d.name, d.short)}


def dtype(spec: DType | str | DTypeLike) -> DType:
    """The data type named by ``"float32"``, ``"f32"``, a numpy dtype or itself.

    Raises ``ValueError`` with the known names when there is none.
    """
    if isinstance(spec, DType):
        return spec
    name = spec if isinstance(spec, str) and spec in _BY_NAME else _numpy_name(spec)
    if name not in _BY_NAME:
        raise ValueError(f"unknown data type {spec!r}; known: {', '.join(d.name for d in DTYPES)}")
    return _BY_NAME[name]


def _numpy_name(spec: DTypeLike) -> str:
    try:
        return np.dtype(spec).name
    except (TypeError, ValueError, SyntaxError):  # numpy reads texts with commas as Python
        return str(spec)
