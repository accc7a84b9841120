"""A library's session as a step of a table: the record that machine code reads to call it.

The library is one with onnxruntime's C interface: a session takes and gives pointers to tensors, which are made of addresses,
and a function gives a status that is null when all went well. The code is of
:mod:`kernelgen.targets.cpu.runtime.session_ir`, which says what the fields mean.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from kernelgen.native.library import Library
from kernelgen.native.table import FIELD_BYTES, Place, TableStep
from kernelgen.native.wrapper import SESSION
from kernelgen.system.named_tuples import NamedTuple

HEADER_FIELDS, SESSION_FIELD, COUNT_FIELD, TENSOR_FIELDS = 16, 4, 9, 4
"""Of a record: how many fields it begins with, which are the session and the number of tensors, and how many each of these has
for its layout."""

FOUND_FIELDS, MOST_EXTENTS = 3, 64
"""What is said of a tensor that the library has allocated, before its extents, and how many of these: as many as numpy has."""

UNTOLD = -1
"""No address: a tensor is made when its array's address is another one than before."""

_RELEASE = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


class Functions(NamedTuple):
    """Addresses of a library's functions, and of what describes the memory that arrays lie in."""

    create: int
    run: int
    release: int
    memory: int
    describe: int
    element_of: int
    rank_of: int
    extents_of: int
    release_description: int
    data_of: int


class Tensor(NamedTuple):
    """An array that a session takes or gives: its name, extents, bytes, and the library's number of its data type.

    ``shape`` is None for a result that the library allocates.
    """

    name: str
    element: int
    size: int
    shape: tuple[int, ...] | None


def bytes_of(record: int) -> tuple[int, ...]:
    """How many bytes each array has, inputs before outputs, by a record at this address; 0 where the library allocates it."""
    count = ctypes.c_int64.from_address(record + FIELD_BYTES * COUNT_FIELD).value
    layouts = record + FIELD_BYTES * (HEADER_FIELDS + 2 * count)
    return tuple((ctypes.c_int64 * (TENSOR_FIELDS * count)).from_address(layouts))[::TENSOR_FIELDS]


class SessionRecord:
    """What machine code reads to run a session, and the tensors that it makes. One run at a time."""

    def __init__(self, functions: Functions, session: int, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        tensors = (*inputs, *outputs)
        self._release = _RELEASE(functions.release)
        self._count: Final = len(tensors)
        names = [
            (ctypes.c_char_p * len(each))(*(tensor.name.encode() for tensor in each)) for each in (inputs, outputs)
        ]
        extents = [_extents(of.shape) for of in tensors]
        self._names, self._extents = names, extents  # which machine code reads, and writes where it allocates
        address = ctypes.addressof
        header = [*functions[:SESSION_FIELD], session, address(names[0]), len(inputs), address(names[1]), len(outputs)]
        header += [len(tensors), *functions[SESSION_FIELD:]]
        told = [0 if of.shape is None else UNTOLD for of in tensors]
        layouts = [
            field
            for of, dims in zip(tensors, extents, strict=True)
            for field in (of.size, address(dims), len(of.shape or ()), of.element)
        ]
        self.content: Final = np.array([*header, *[0] * len(tensors), *told, *layouts], np.int64)
        self._cells: Final = self.content.data

    def step(self, name: str, caller: Library, places: Sequence[Place], status: int, number: int) -> TableStep:
        """The step, called ``name``, that ``caller`` runs on arrays at ``places``, inputs first, 0 where the library allocates.

        Nothing is run where the word at ``status`` is set. There a failure leaves the library's status, behind it ``number``.
        """
        sizes = (self.content.ctypes.data, status, number)
        return TableStep(name, caller.addresses[SESSION], tuple(places), sizes)

    def run_in(self, session: int) -> None:
        """From now on it runs this session."""
        self._cells[SESSION_FIELD] = session

    def copied(self, position: int, dtypes: Mapping[int, np.dtype[Any]]) -> np.ndarray:
        """What the last run allocated for the tensor at a ``position``: a copy. ``dtypes`` are by the library's numbers.

        The next run allocates it anew. Raises ValueError where it has more extents than are read.
        """
        found = self._extents[position]
        element, rank, data = found[:FOUND_FIELDS]
        if rank > MOST_EXTENTS:
            raise ValueError(f"a result has {rank} axes; at most {MOST_EXTENTS} are read")
        array = np.empty(found[FOUND_FIELDS : FOUND_FIELDS + rank], dtypes[element])
        ctypes.memmove(array.ctypes.data, data, array.nbytes)
        self._let_go(position)
        return array

    def forget(self) -> None:
        """Lets go of all tensors."""
        for position in range(self._count):
            self._let_go(position)

    def _let_go(self, position: int) -> None:
        tensor, told = self._cells[HEADER_FIELDS + position], HEADER_FIELDS + self._count + position
        if tensor:
            self._cells[HEADER_FIELDS + position] = 0
            self._cells[told] = self._cells[told] and UNTOLD
            self._release(tensor)

    def __del__(self) -> None:
        if hasattr(self, "_cells"):
            self.forget()


def _extents(shape: tuple[int, ...] | None) -> Any:  # an array of ctypes
    """Those of a tensor, or where machine code says what it has found."""
    if shape is None:
        return (ctypes.c_int64 * (FOUND_FIELDS + MOST_EXTENTS))()
    return (ctypes.c_int64 * len(shape))(*shape)
