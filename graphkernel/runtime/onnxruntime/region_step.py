"""A step that runs a session of onnxruntime. What writes the models of sessions is ``regions``; running needs none of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphkernel.runtime.onnxruntime.sessions import Session
from graphkernel.runtime.steps.steps import Action, Extents, Slots, fits, known_extents
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.boxes import boxed
from kernelgen.tensor.elements import ELEMENTS, element_number, for_session, from_session, is_carried
from kernelgen.tensor.types import TensorType, is_whole

if TYPE_CHECKING:
    from kernelgen.tensor.graph import Node, Value


class RegionStep(NamedTuple):
    """Runs a session on arrays that are there, without copies: inputs and outputs are bound by address.

    Onnxruntime allocates the results in the slots ``unsized``. ``nodes`` are its operators, none in a program from disk.
    """

    name: str
    session: Session
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    input_types: tuple[TensorType, ...]
    output_types: tuple[TensorType, ...]
    nodes: tuple[Node, ...] = ()
    unsized: frozenset[int] = frozenset()
    buffered: bool = True

    @property
    def made(self) -> tuple[int, ...]:
        """The slots of the results that it writes into arrays that are there before."""
        return tuple(slot for slot in self.outputs if slot not in self.unsized)

    def bind(self, slots: Slots, symbols: Mapping[str, int]) -> Action:
        """The action for these symbol values; buffers that are there already are bound once in a process."""
        if self.session.model.objects:
            return self._fed()
        bound, session = self._bound(slots, symbols), self.session

        def call(given: Slots) -> None:
            nonlocal bound
            if bound.session is not session.here():  # this process was forked
                bound = self._bound(slots, symbols)
            bound.run(given)

        return call

    def _fed(self) -> Action:
        """The action on Python's objects: onnxruntime binds arrays of numbers only."""
        operands = zip(self.input_names, self.inputs, self.input_types, strict=True)
        taken = tuple((name, slot, None if _is_plain(of) else of.dtype) for name, slot, of in operands)
        given = tuple(
            (slot, None if _is_plain(of) else of.dtype)
            for slot, of in zip(self.outputs, self.output_types, strict=True)
        )
        session, names = self.session, list(self.output_names)

        def call(slots: Slots) -> None:
            feeds = {name: slots[slot] if of is None else for_session(slots[slot], of) for name, slot, of in taken}
            results = session.here().run(names, feeds)
            for (slot, of), result in zip(given, results, strict=True):
                _hand_on(slots, slot, result if of is None else from_session(result, of))

        return call

    def _bound(self, slots: Slots, symbols: Mapping[str, int]) -> _Bound:
        session = self.session.here()
        binding = session.binding(self.input_names, self.output_names)
        inputs = [(place, slot, _element(self.input_types[place])) for place, slot in enumerate(self.inputs)]
        outputs = [(place, slot, _element(self.output_types[place])) for place, slot in enumerate(self.outputs)]
        wholes = [entry for entry in inputs if is_whole(self.input_types[entry[0]].dtype)]
        later_inputs = [x for x in inputs if x not in wholes and not _is_there(binding.bind_input, x, slots)]
        given = [entry for entry in outputs if entry[1] not in self.unsized]
        later_outputs = [entry for entry in given if not _is_there(binding.bind_output, entry, slots)]
        return _Bound(session, binding, later_inputs, later_outputs, self.unsized_results(symbols), wholes)

    def unsized_results(self, symbols: Mapping[str, int]) -> list[tuple[int, int, Extents | None]]:
        """The results that onnxruntime allocates, by place and slot, with what is known of their extents: None where not even
        the rank is.
        """
        return [
            (place, slot, None if is_whole(of.dtype) else known_extents(of.shape, symbols))
            for place, (slot, of) in enumerate(zip(self.outputs, self.output_types, strict=True))
            if slot in self.unsized
        ]


class _Bound(NamedTuple):
    """A session with the addresses of what is there before a call; the rest is bound in each call.

    Entries are places among the inputs or outputs, slots, and numbers of data types.
    """

    session: Any
    binding: Any
    inputs: list[tuple[int, int, int]]
    outputs: list[tuple[int, int, int]]
    unsized: list[tuple[int, int, Extents | None]]
    wholes: list[tuple[int, int, int]]

    def run(self, slots: Slots) -> None:
        """Binds the rest, runs, and takes over the results that onnxruntime allocates."""
        binding = self.binding
        held: list[np.ndarray] = []  # copies stay alive until the session is done
        for place, slot, element in self.inputs:
            array = slots[slot]
            if not array.flags.c_contiguous:
                array = np.ascontiguousarray(array).reshape(array.shape)
                held.append(array)
            binding.bind_input(place, element, array.shape, array.ctypes.data)
        for place, slot, element in self.outputs:
            binding.bind_output(place, element, slots[slot].shape, slots[slot].ctypes.data)
        for place, slot, element in self.wholes:
            held.append(_tensor(slots[slot], element))
            binding.bind_input(place, element, held[-1].shape, held[-1].ctypes.data)
        binding.run()
        for place, slot, extents in self.unsized:
            slots[slot] = as_promised(binding.taken(place).numpy(), place, extents)


def as_promised(array: np.ndarray, place: int, extents: Extents | None) -> np.ndarray:
    """The ``array`` that onnxruntime gave at a ``place``. Raises ValueError where it has not these ``extents``."""
    if extents is not None and not fits(array.shape, extents):
        raise ValueError(f"result {place} has the shape {array.shape}, promised is {extents}")
    return boxed(array) if extents is None else array


def _is_plain(of: TensorType) -> bool:
    """Whether it is an array of numbers that onnxruntime takes and gives as it is."""
    return not of.dtype.is_opaque and not is_carried(of.dtype)


def _hand_on(slots: Slots, slot: int, array: np.ndarray) -> None:
    """Puts a result of a session into its slot, or into the array that is there."""
    if slots[slot] is None:
        slots[slot] = array
    elif slots[slot].shape == array.shape:
        np.copyto(slots[slot], array)
    else:
        raise ValueError(f"a result has the shape {array.shape}, promised is {slots[slot].shape}")


def operands_of(nodes: Sequence[Node]) -> tuple[Value, ...]:
    """What the nodes of a region take from outside, constants left out."""
    inside = set(nodes)
    operands = dict.fromkeys(arg for node in nodes for arg in node.args if arg.node not in inside)
    return tuple(value for value in operands if not value.is_known)


def region_step(
    name: str,
    session: Session,
    nodes: Sequence[Node],
    names: Mapping[Value, str],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    slots: Mapping[Value, int],
) -> RegionStep:
    """The step of a session, with the names that values have in its model."""
    return RegionStep(
        name, session, tuple(names[value] for value in inputs), tuple(names[value] for value in outputs),
        tuple(slots[value] for value in inputs), tuple(slots[value] for value in outputs),
        tuple(value.type for value in inputs), tuple(value.type for value in outputs), tuple(nodes),
    )  # fmt: skip


def _is_there(bind: Any, entry: tuple[int, int, int], slots: Slots) -> bool:  # a method of a binding
    """Binds an array that is there before every call; False when there is none."""
    place, slot, element = entry
    array = slots[slot]
    if array is None or not array.flags.c_contiguous:
        return False
    bind(place, element, array.shape, array.ctypes.data)
    return True


def _tensor(box: np.ndarray, element: int) -> np.ndarray:
    """The tensor of any rank in a box, if its elements are of this type."""
    array = np.asarray(box[()])
    if array.dtype.name not in ELEMENTS or ELEMENTS[array.dtype.name][0] != element:
        raise ValueError(f"a tensor of {array.dtype}, which is not what the operator takes")
    return np.ascontiguousarray(array).reshape(array.shape)


def _element(type_: TensorType) -> int:
    return element_number(type_.dtype) or 0
