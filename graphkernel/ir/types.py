"""The vocabulary of types. Data types, dims and attributes are declared once, in kernelgen, and re-exported here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from graphkernel.limits import LIMITS
from kernelgen.attrs import Attrs, AttrValue
from kernelgen.dims import (
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
from kernelgen.dtypes import DTYPES, Category, DType, dtype

__all__ = [
    "DTYPES", "AttrValue", "Attrs", "Category", "DType", "Dim", "Shape", "Sym", "TensorType",
    "divide_exactly", "dtype", "evaluate", "parse_dim", "parse_type", "product", "solve", "substitute", "sym", "symbols_of",
]  # fmt: skip

DEFAULT_LAYOUT = "DefaultFormat"
TYPE_PATTERN = r"[A-Za-z]\w*\[[^\]\n]*\](?:@\w+)?"


@dataclass(frozen=True)
class TensorType:
    """Shape, data type and layout of a value. Prints as ``f32[N, 4]``; a layout other than the default follows."""

    shape: Shape
    dtype: DType
    layout: str = DEFAULT_LAYOUT

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype.name, self.layout))

    def __str__(self) -> str:
        layout = "" if self.layout == DEFAULT_LAYOUT else f"@{self.layout}"
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]{layout}"

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @cached_property
    def size(self) -> Dim:
        """The number of elements."""
        return product(self.shape)

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """The names of the symbols in the shape, sorted."""
        return symbols_of(self.shape)

    @property
    def is_static(self) -> bool:
        """True when no dim is a symbol."""
        return all(isinstance(dim, int) for dim in self.shape)


def parse_type(text: str) -> TensorType:
    """Reads ``f32[N, 4]`` or ``f16[8]@NHWC``, the inverse of ``str``; ``ValueError`` says what is wrong."""
    if not re.fullmatch(TYPE_PATTERN, text):
        raise ValueError(f"{text!r} is not a tensor type such as f32[N, 4]")
    name, _, rest = text.partition("[")
    dims, _, layout = rest.partition("]")
    if dims.count(",") >= LIMITS.rank:
        raise ValueError(f"{text[:40]}... has more than {LIMITS.rank} dims")
    shape = tuple(parse_dim(dim.strip()) for dim in dims.split(",")) if dims.strip() else ()
    return TensorType(shape, dtype(name), layout[1:] or DEFAULT_LAYOUT)
