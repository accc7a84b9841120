"""A region's session as machine code runs it: between kernels, without Python."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from graphkernel.runtime.onnxruntime.c_interface import ELEMENTS, OnnxRuntimeError
from graphkernel.runtime.onnxruntime.region_step import as_promised
from kernelgen.native.session import Functions, SessionRecord, Tensor
from kernelgen.tensor.dtypes import dtype
from kernelgen.tensor.elements import element_number, is_carried

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphkernel.runtime.onnxruntime.region_step import RegionStep
    from graphkernel.runtime.steps.steps import Slots
    from kernelgen.tensor.types import TensorType


def is_callable(step: RegionStep, told: frozenset[str]) -> bool:
    """Whether machine code can run the region where these symbols are ``told``: it takes arrays of known extents, and gives
    such, or lets the library allocate what it gives.
    """
    results = zip(step.outputs, step.output_types, strict=True)
    sized = (*step.input_types, *(of for slot, of in results if slot not in step.unsized))
    is_plain = not step.session.model.objects and not any(of.dtype.is_opaque for of in sized)
    is_plain = is_plain and not any(is_carried(of.dtype) for of in step.output_types)
    return is_plain and all(told >= set(of.symbols) for of in sized)


class SessionCall:
    """The session of a region on arrays of these ``shapes``, by slot. A child that was forked runs one of its own."""

    def __init__(self, step: RegionStep, shapes: Mapping[int, tuple[int, ...]], symbols: Mapping[str, int]) -> None:
        self._session, self._here = step.session, step.session.here()
        inputs = zip(step.input_names, step.input_types, map(shapes.get, step.inputs), strict=True)
        outputs = zip(step.output_names, step.output_types, map(shapes.get, step.outputs), strict=True)
        self._first_output = len(step.inputs)
        self._unsized = step.unsized_results(symbols)
        functions = Functions(*self._here.api.addresses)
        tensors = [_tensor(*each) for each in inputs], [_tensor(*each) for each in outputs]
        self.record = SessionRecord(functions, self._here.pointer.value, *tensors)

    def begin(self) -> None:
        """Before a run: a process that was forked has another session."""
        here = self._session.here()
        if here is not self._here:
            self.record.run_in(here.pointer.value)
            self._here = here

    def leave(self, slots: Slots | dict[int, Any]) -> None:
        """Behind a run: puts copies of the results that the library has allocated into their slots."""
        for place, slot, extents in self._unsized:
            found = self.record.copied(self._first_output + place, _DTYPES)
            slots[slot] = as_promised(found, place, extents)

    def failure(self, status: int) -> OnnxRuntimeError:
        """What the library says by a status."""
        return self._here.api.said(status)


_DTYPES = {number: dtype(name).numpy for number, (name, _) in ELEMENTS.items() if name != "bfloat16"}


def _tensor(name: str, of: TensorType, shape: tuple[int, ...] | None) -> Tensor:
    size = 0 if shape is None else prod(shape) * of.dtype.itemsize
    return Tensor(name, element_number(of.dtype) or 0, size, shape)
