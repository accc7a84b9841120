"""The vocabulary of types. Data types, dims and attributes are declared once, in kernelgen, and re-exported here."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from kernelgen.system.cached_property import cached_property
from kernelgen.system.limits import LIMITS
from kernelgen.tensor.attrs import Attrs, AttrValue
from kernelgen.tensor.dims import (
    Dim,
    Shape,
    Sym,
    divide_exactly,
    evaluate,
    parse_dim,
    product,
    solve,
    substitute,
    sym,
    symbols_of,
)
from kernelgen.tensor.dtypes import DTYPES, Category, DType
from kernelgen.tensor.dtypes import dtype as computable

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = [
    "DTYPES", "AttrValue", "Attrs", "Category", "DType", "Dim", "OpaqueType", "Shape", "Sym", "TensorType", "divide_exactly",
    "dtype", "evaluate", "is_object", "is_whole", "parse_dim", "parse_type", "product", "solve", "substitute", "sym",
    "symbols_of",
]  # fmt: skip

DEFAULT_LAYOUT = "DefaultFormat"
WHOLE_PATTERN = r"(?:tensor|seq|map|optional|sparse_tensor)\([a-z0-9_(),]{1,200}\)"
TYPE_PATTERN = rf"(?:[A-Za-z]\w*|{WHOLE_PATTERN})\[[^\]\n]*\](?:@\w+)?"


class OpaqueType(DType):
    """A data type that only operators of a library take: of elements (``string``, ``int4``), or of whole values.

    Whole values are what has no shape that is known, each one element of a tensor without axes: ``seq(tensor(float))``,
    ``optional(tensor(int64))``, and ``tensor(float)``, whose rank nobody knows. They have ONNX's names.
    """

    @cached_property
    def numpy(self) -> np.dtype:
        """The numpy data type of arrays in memory."""
        import ml_dtypes  # most graphs have no such types

        return np.dtype(getattr(ml_dtypes, self.name, object))

    @property
    def is_whole(self) -> bool:
        """True where one element is a value with a shape of its own, or with none."""
        return "(" in self.name


_NARROW = (
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn",
    "int4", "uint4", "int2", "uint2",
)  # fmt: skip
_OPAQUE = {
    **{name: OpaqueType(name, name, Category.OPAQUE, 8) for name in _NARROW},
    **dict.fromkeys(("string", "object"), OpaqueType("string", "string", Category.OPAQUE, 64)),
}


def dtype(spec: DType | str | DTypeLike) -> DType:
    """The data type named by ``"float32"``, ``"f32"``, ``"string"``, ``"seq(tensor(float))"``, a numpy dtype or itself.

    Raises ``ValueError`` with the known names when there is none.
    """
    if isinstance(spec, DType):
        return spec
    return _of_numpy(spec) if isinstance(spec, np.dtype) else _named(spec)


@lru_cache(maxsize=1 << 8)  # numpy makes a name anew each time, and graphs have many constants
def _of_numpy(spec: np.dtype) -> DType:
    return _named(spec)


def _named(spec: str | DTypeLike) -> DType:
    name = spec if isinstance(spec, str) else getattr(spec, "name", "")
    if name in _OPAQUE:
        return _OPAQUE[name]
    if isinstance(spec, str) and re.fullmatch(WHOLE_PATTERN, spec):
        return OpaqueType(spec, spec, Category.OPAQUE, 64)
    return computable(spec)


def is_object(of: DType) -> bool:
    """Whether arrays in memory hold Python's objects: texts, and whole values."""
    return of.is_opaque and of.numpy.hasobject


def is_whole(of: DType) -> bool:
    """Whether an element is a value with a shape of its own, or with none."""
    return isinstance(of, OpaqueType) and of.is_whole


class TensorType:
    """Shape, data type and layout of a value. Prints as ``f32[N, 4]``; a layout other than the default follows."""

    def __init__(self, shape: Shape, dtype: DType, layout: str = DEFAULT_LAYOUT) -> None:
        self.shape: Final = shape
        self.dtype: Final = dtype
        self.layout: Final = layout

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, TensorType)
            and self.shape == other.shape
            and (self.dtype is other.dtype or self.dtype == other.dtype)
            and self.layout == other.layout
        )

    @cached_property
    def _hash(self) -> int:
        return hash((self.shape, self.dtype.name, self.layout))

    def __hash__(self) -> int:
        return self._hash  # types are in the keys of most tables

    def __reduce__(self) -> tuple[type[TensorType], tuple[Shape, DType, str]]:
        return TensorType, (self.shape, self.dtype, self.layout)  # hashes of texts are another process's own

    def __str__(self) -> str:
        layout = "" if self.layout == DEFAULT_LAYOUT else f"@{self.layout}"
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]{layout}"

    __repr__ = __str__

    def of_shape(self, shape: Shape) -> TensorType:
        """The same with other extents."""
        return TensorType(shape, self.dtype, self.layout)

    def of_dtype(self, dtype: DType) -> TensorType:
        """The same of another data type."""
        return TensorType(self.shape, dtype, self.layout)

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @cached_property
    def size(self) -> Dim:
        """The number of elements."""
        return product(self.shape)

    @cached_property
    def bytes(self) -> Dim:
        """The size in memory."""
        return self.size * self.dtype.itemsize

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The names of the symbols in the shape, sorted."""
        return symbols_of(self.shape)

    @cached_property
    def is_counted(self) -> bool:
        """True when every dim is a number, and none negative."""
        return all([isinstance(dim, int) and dim >= 0 for dim in self.shape])

    @property
    def is_static(self) -> bool:
        """True when no dim is a symbol."""
        return all(isinstance(dim, int) for dim in self.shape)


@lru_cache(maxsize=1 << 12)  # the texts of one graph repeat few types
def parse_type(text: str) -> TensorType:
    """Reads ``f32[N, 4]`` or ``f16[8]@NHWC``, the inverse of ``str``.

    Raises ``ValueError``, which says what is wrong.
    """
    if not re.fullmatch(TYPE_PATTERN, text):
        raise ValueError(f"{text!r} is not a tensor type such as f32[N, 4]")
    name, _, rest = text.partition("[")
    dims, _, layout = rest.partition("]")
    if dims.count(",") >= LIMITS.rank:
        raise ValueError(f"{text[:40]}... has more than {LIMITS.rank} dims")
    shape = tuple(parse_dim(dim.strip()) for dim in dims.split(",")) if dims.strip() else ()
    if shape and is_whole(dtype(name)):
        raise ValueError(f"{name} has no dims that are known: write {name}[]")
    return TensorType(shape, dtype(name), layout[1:] or DEFAULT_LAYOUT)
