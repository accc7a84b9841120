"""Kernels as Python functions that cost a tenth of a microsecond to call: the tables that their machine code reads.

The code is of :mod:`kernelgen.targets.cpu.runtime.wrapper_ir`, which says what the fields of a table mean.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from kernelgen.errors import ArgumentError
from kernelgen.native.code import Code
from kernelgen.native.library import Library, function_address
from kernelgen.native.mapped import load_code
from kernelgen.native.signature import Argument
from kernelgen.tensor.dims import Dim, Sym

METH_FASTCALL = 0x80
CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
"""numpy's flags of an array; the last is wanted of those that are written."""

DATA, RANK, DIMS, DTYPE, FLAGS = 16, 24, 32, 56, 64
"""Byte offsets in numpy's array struct."""

KIND, NUMBER = 24, 28
"""Byte offsets in numpy's dtype struct: of kind, character and byte order in one byte each, and of the type's number. The eight
bytes from the first on say which type of numbers it is; an array that was pickled has a dtype object of its own.
"""

HEADER_FIELDS, ARRAY_FIELDS, DIM_FIELDS = 10, 6, 3
"""How many fields the table has for all arrays together, for each, and for each extent."""

OVERLAP = "an array that is written overlaps another one"
CALL, RUN, COPY, PLACES, SESSION = "call", "run", "copy", "places", "session"
"""What the code that kernels are called through exports: the function of Python's, a table's loop, and steps that copy,
that look at indices, and that run a session of a library."""

PYTHON_FUNCTIONS = ("Py_IncRef", "PyErr_Format", "PyEval_SaveThread", "PyEval_RestoreThread")


def fast_function(
    expected: tuple[Argument, ...],
    sizes: tuple[str, ...],
    code: int,
    caller: Library,
    releases_lock: bool,
    keeps: object,
    table: int = 0,
) -> Callable[..., None] | None:
    """``function(*arrays)``, or None when numpy's layout is not the known one or an extent is no ``a * symbol + b``.

    It calls ``code`` with the arrays' addresses and the sizes, or with the address of a ``table`` in place of these, raises
    ArgumentError with the array's name when one does not fit, and keeps alive what it ``keeps``.
    """
    dims = [_dim_record(dim, sizes) for argument in expected for dim in argument.shape]
    if not layout_is_known() or None in dims or not _all_bound(dims, len(sizes)):
        return None
    header = (code, len(expected), len(sizes), int(releases_lock), id(np.ndarray), id(None), id(ArgumentError), table)
    record = _table(header, expected, [record for record in dims if record is not None])
    return _python_function(record, keeps, caller)


@cache
def layout_is_known() -> bool:
    """Tests the offsets of numpy's array struct on arrays whose fields are known."""
    return all(
        _has_known_layout(array) for array in (np.zeros((2, 3), np.float32), np.zeros((4, 1, 2), np.int64)[:, 0])
    )


def _has_known_layout(array: np.ndarray) -> bool:
    def field(offset: int, kind: Any) -> int:  # a ctypes integer type
        return kind.from_address(id(array) + offset).value

    extents = field(DIMS, ctypes.c_int64)
    flags = CONTIGUOUS * array.flags.c_contiguous | ALIGNED * array.flags.aligned | WRITEABLE * array.flags.writeable
    return (
        field(DATA, ctypes.c_int64) == array.ctypes.data
        and field(RANK, ctypes.c_int32) == array.ndim
        and tuple((ctypes.c_int64 * array.ndim).from_address(extents)) == array.shape
        and field(DTYPE, ctypes.c_int64) == id(array.dtype)
        and _dtype_has_known_layout(array.dtype)
        and field(FLAGS, ctypes.c_int32) & (CONTIGUOUS | ALIGNED | WRITEABLE) == flags
    )


def _dtype_has_known_layout(dtype: np.dtype[Any]) -> bool:
    characters = (ctypes.c_char * 3).from_address(id(dtype) + KIND).value.decode()
    number = ctypes.c_int32.from_address(id(dtype) + NUMBER).value
    return characters == dtype.kind + dtype.char + dtype.byteorder and number == dtype.num


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
    fields = HEADER_FIELDS + ARRAY_FIELDS * len(expected) + DIM_FIELDS * len(dims)
    texts = [f"expected {len(expected)} arrays: {', '.join(a.name for a in expected)}", OVERLAP, *map(str, expected)]
    messages = [text.replace("%", "%%").encode() + b"\0" for text in texts]
    offsets = [8 * fields + sum(map(len, messages[:number])) for number in range(len(messages))]
    numbers = [*header, *offsets[:2]]
    first = 0
    for argument, offset in zip(expected, offsets[2:], strict=True):
        flags = CONTIGUOUS | ALIGNED | (WRITEABLE if argument.is_written else 0)
        kind = ctypes.c_int64.from_address(id(argument.dtype.numpy) + KIND).value
        numbers += [kind, flags, len(argument.shape), first, offset, argument.dtype.itemsize]
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


def _python_function(table: bytes, keeps: object, caller: Library) -> Callable[..., None]:
    """A function that owns its table as ``self`` and what it keeps as ``__module__``."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes, make.restype = (ctypes.c_void_p, ctypes.py_object, ctypes.py_object), ctypes.py_object
    return make(ctypes.addressof(_method(caller)), table, keeps)


@cache
def _method(caller: Library) -> _MethodDefinition:
    """Shared by all kernels and kept for the life of the process, because functions point to it."""
    return _MethodDefinition(b"kernel", caller.addresses[CALL], METH_FASTCALL, b"A compiled kernel.")


@cache
def caller_of(code: Code) -> Library:
    """The function that all kernels of this process are called through that were compiled with this code."""
    return load_code(code, python_functions())


def python_functions() -> dict[str, int]:
    """Where the functions of Python lie that it calls."""
    return {name: function_address(getattr(ctypes.pythonapi, name)) for name in PYTHON_FUNCTIONS}
