"""Kernels one after the other without Python in between: a table of what is called with which addresses.

The code that reads it is of :mod:`kernelgen.targets.cpu.runtime.wrapper_ir`, which says what the fields mean.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from kernelgen.native.library import Library
from kernelgen.native.signature import Argument
from kernelgen.native.wrapper import COPY, PLACES, RUN, fast_function
from kernelgen.system.cached_property import cached_property
from kernelgen.system.named_tuples import NamedTuple

TABLE_FIELDS, CELL_FIELDS, STEP_FIELDS = 2, 2, 3
"""How many fields the table has for all, for each cell, and for each step."""

FIELD_BYTES = 8
_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class Given(NamedTuple):
    """Bytes of the array that a call gives at this position."""

    position: int


Place = int | Given
"""Where an argument lies: an address that stays, or what a call gives."""


class TableStep(NamedTuple):
    """What is called: machine code, where its arrays lie, and the values of its sizes."""

    name: str
    code: int
    arguments: tuple[Place, ...]
    sizes: tuple[int, ...]


def copying(name: str, caller: Library, target: Place, source: Place, size: int) -> TableStep:
    """A step that copies so many bytes."""
    return TableStep(name, caller.addresses[COPY], (target, source), (size,))


class Lookup(NamedTuple):
    """Indices of ``size`` bytes, ``itemsize`` each, into an axis of ``extent`` elements; ``number`` stands for the reader."""

    size: int
    itemsize: int
    extent: int
    number: int


def looking(name: str, caller: Library, target: Place, source: Place, failure: int, lookup: Lookup) -> TableStep:
    """A step that copies the indices at ``source`` to ``target`` as places, as ``lookup`` says.

    ``name`` is the step's, ``caller`` the code; at ``failure`` it writes number and index of the first that is out of range.
    """
    return TableStep(name, caller.addresses[PLACES], (target, source, failure), tuple(lookup))


class Table:
    """Steps on the arrays that a call gives, and on memory that it ``keeps``. One call at a time may run.

    ``releases_lock`` lets other Python threads run meanwhile.
    """

    def __init__(
        self,
        given: tuple[Argument, ...],
        steps: tuple[TableStep, ...],
        caller: Library,
        releases_lock: bool,
        keeps: tuple[object, ...],
    ) -> None:
        self.given: Final = given
        self.steps: Final = steps
        self.caller: Final = caller
        self.releases_lock: Final = releases_lock
        self.keeps: Final = keeps

    @cached_property
    def fast(self) -> Callable[..., None] | None:
        """``fast(*arrays)``: checks the arrays and runs; raises ArgumentError when one does not fit.

        None where numpy's layout is not the known one.
        """
        code, address = self.caller.addresses[RUN], self.content.ctypes.data
        return fast_function(self.given, (), code, self.caller, self.releases_lock, self, address)

    def run_unchecked(self, arrays: Sequence[np.ndarray]) -> None:
        """Runs on arrays that are known to be aligned, C-contiguous, of the given types, and apart where they are written."""
        addresses = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
        _RUN(self.caller.addresses[RUN])(addresses, self.content.ctypes.data)

    @cached_property
    def content(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The fields, and behind them the arguments and sizes that they point to."""
        cells = sum(isinstance(place, Given) for step in self.steps for place in step.arguments)
        head = TABLE_FIELDS + CELL_FIELDS * cells + STEP_FIELDS * len(self.steps)
        content = np.zeros(head + sum(len(s.arguments) + len(s.sizes) for s in self.steps), np.int64)
        cell_fields, step_fields, behind = list[int](), list[int](), list[int]()

        def address() -> int:
            return content.ctypes.data + FIELD_BYTES * (head + len(behind))

        for step in self.steps:
            step_fields += [step.code, address(), address() + FIELD_BYTES * len(step.arguments)]
            for place in step.arguments:
                if isinstance(place, Given):
                    cell_fields += [place.position, address()]
                behind.append(0 if isinstance(place, Given) else place)
            behind.extend(step.sizes)
        content[:] = [cells, len(self.steps), *cell_fields, *step_fields, *behind]
        return content
