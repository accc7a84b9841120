"""Kernels as Python functions that cost a tenth of a microsecond to call: the tables that ``wrapper_ir`` reads."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from kernelgen.dims import Dim, Shape, Sym
from kernelgen.dtypes import DType
from kernelgen.errors import ArgumentError
from kernelgen.nest.nodes import Nest, Space
from kernelgen.targets.cpu import wrapper_ir
from kernelgen.targets.cpu.module import Library, detect_host
from kernelgen.targets.cpu.objects import cached_library

METH_FASTCALL = 0x80
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, wrapper_ir.WRITEABLE
OVERLAP = "an array that is written overlaps another one"
PYTHON_FUNCTIONS = ("Py_IncRef", "PyErr_Format", "PyEval_SaveThread", "PyEval_RestoreThread")


@dataclass(frozen=True)
class Argument:
    """What a kernel expects of one array."""

    name: str
    dtype: DType
    shape: Shape
    is_written: bool

    def __str__(self) -> str:
        access, shape = "a writeable" if self.is_written else "a", ", ".join(map(str, self.shape))
        return f"{self.name}: expected {access} C-contiguous {self.dtype.name} array of shape [{shape}]"


def arguments(nest: Nest) -> tuple[Argument, ...]:
    """The arrays of a nest in calling order, with the shapes that callers see; workspaces may have none of those."""
    own = tuple(buffer.shape for buffer in nest.buffers)
    shapes = (*nest.argument_shapes, *own[len(nest.argument_shapes) :])
    return tuple(
        Argument(buffer.name, buffer.dtype, shape, buffer.space is not Space.INPUT)
        for buffer, shape in zip(nest.buffers, shapes, strict=True)
    )


def fast_function(nest: Nest, library: Library, entry: str, releases_lock: bool) -> Callable[..., None] | None:
    """``function(*arrays)``, or None when numpy's layout is not the known one or an extent is no ``a * symbol + b``.

    It raises ArgumentError with the array's name when one does not fit, and keeps the library loaded.
    """
    expected = arguments(nest)
    dims = [_dim_record(dim, nest.symbols) for argument in expected for dim in argument.shape]
    if not layout_is_known() or None in dims or not _all_bound(dims, len(nest.symbols)):
        return None
    kernel = library.addresses[entry]
    header = (kernel, len(expected), len(nest.symbols), int(releases_lock), id(np.ndarray), id(None), id(ArgumentError))
    return _python_function(_table(header, expected, [record for record in dims if record is not None]), library)


@cache
def layout_is_known() -> bool:
    """Tests the offsets of numpy's array struct on arrays whose fields are known."""
    return all(
        _has_known_layout(array) for array in (np.zeros((2, 3), np.float32), np.zeros((4, 1, 2), np.int64)[:, 0])
    )


def _has_known_layout(array: np.ndarray) -> bool:
    def field(offset: int, kind: Any) -> int:  # a ctypes integer type
        return kind.from_address(id(array) + offset).value

    extents = field(wrapper_ir.DIMS, ctypes.c_int64)
    flags = CONTIGUOUS * array.flags.c_contiguous | ALIGNED * array.flags.aligned | WRITEABLE * array.flags.writeable
    return (
        field(wrapper_ir.DATA, ctypes.c_int64) == array.ctypes.data
        and field(wrapper_ir.RANK, ctypes.c_int32) == array.ndim
        and tuple((ctypes.c_int64 * array.ndim).from_address(extents)) == array.shape
        and field(wrapper_ir.DTYPE, ctypes.c_int64) == id(array.dtype)
        and field(wrapper_ir.FLAGS, ctypes.c_int32) & (CONTIGUOUS | ALIGNED | WRITEABLE) == flags
    )


def _dim_record(dim: Dim, symbols: tuple[str, ...]) -> tuple[int, int, int] | None:
    """Symbol number, factor, constant; None when the dim is not linear in one symbol."""
    if not isinstance(dim, Sym):
        return -1, 1, dim
    terms = dict(dim.terms)
    constant = terms.pop((), 0)
    if len(terms) != 1 or len(next(iter(terms))) != 1:
        return None
    (((symbol,), factor),) = terms.items()
    return symbols.index(symbol), factor, constant


def _all_bound(dims: list[tuple[int, int, int] | None], count: int) -> bool:
    return {record[0] for record in dims if record is not None} >= set(range(count))


def _table(header: tuple[int, ...], expected: tuple[Argument, ...], dims: list[tuple[int, int, int]]) -> bytes:
    """The fields, then the messages as C strings."""
    fields = wrapper_ir.HEADER_FIELDS + wrapper_ir.ARRAY_FIELDS * len(expected) + wrapper_ir.DIM_FIELDS * len(dims)
    texts = [f"expected {len(expected)} arrays: {', '.join(a.name for a in expected)}", OVERLAP, *map(str, expected)]
    messages = [text.replace("%", "%%").encode() + b"\0" for text in texts]
    offsets = [8 * fields + sum(map(len, messages[:number])) for number in range(len(messages))]
    numbers = [*header, *offsets[:2]]
    first = 0
    for argument, offset in zip(expected, offsets[2:], strict=True):
        flags = CONTIGUOUS | ALIGNED | (WRITEABLE if argument.is_written else 0)
        numbers += [id(argument.dtype.numpy), flags, len(argument.shape), first, offset, argument.dtype.itemsize]
        first += len(argument.shape)
    numbers += [number for record in dims for number in record]
    return struct.pack(f"<{fields}q", *numbers) + b"".join(messages)


class _MethodDefinition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _python_function(table: bytes, library: Library) -> Callable[..., None]:
    """A function that owns its table as ``self`` and its machine code as ``__module__``."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes, make.restype = (ctypes.c_void_p, ctypes.py_object, ctypes.py_object), ctypes.py_object
    return make(ctypes.addressof(_method()), table, library)


@cache
def _method() -> _MethodDefinition:
    """Shared by all kernels and kept for the life of the process, because functions point to it."""
    return _MethodDefinition(b"kernel", _library().addresses["call"], METH_FASTCALL, b"A compiled kernel.")


@cache
def _library() -> Library:
    symbols = {
        name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in PYTHON_FUNCTIONS
    }
    return cached_library(wrapper_ir.TEXT, detect_host(), ("call",), symbols)[0]
