"""What a plan is made of. A step reads and writes numbered slots; for given symbol values it becomes an action.

``buffered`` steps write into arrays that are there before; the others put arrays of their own into their slots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from graphkernel.errors import RuntimeFailure
from kernelgen.system.named_tuples import NamedTuple
from kernelgen.tensor.bind import concrete_attrs, concrete_shape
from kernelgen.tensor.types import Dim, Shape, Sym, evaluate

if TYPE_CHECKING:
    from kernelgen.tensor.graph import Node

Array = np.ndarray[Any, np.dtype[Any]]
Slots = list[Any]  # one array a slot; None while nothing is there
Action = Callable[[Slots], None]
_ANYWHERE = np.empty(0)  # as good as any where there is no operand to say where arrays lie


class Kernel(Protocol):
    """What a compiler gives back: numpy in, the outputs written into ``out``."""

    def __call__(self, *inputs: Any, out: Sequence[Any] | None = None) -> tuple[Any, ...]:
        """Runs on arrays."""
        ...


class Step(Protocol):
    """One thing to do."""

    @property
    def name(self) -> str:
        """What traces and errors call it."""
        ...

    @property
    def inputs(self) -> tuple[int, ...]:
        """The slots it reads."""
        ...

    @property
    def outputs(self) -> tuple[int, ...]:
        """The slots it fills."""
        ...

    @property
    def buffered(self) -> bool:
        """Whether it writes into arrays that are there before."""
        ...

    def bind(self, slots: Slots, symbols: Mapping[str, int]) -> Action:
        """The action for these symbol values; what ``slots`` holds already stays the same in every call."""
        ...


class KernelStep(NamedTuple):
    """Calls a compiled kernel, which makes the output arrays that are not there.

    ``private`` are the operands that it updates in place although others still need the old content.
    ``stored`` are the results that lie in the memory of an updated operand: slot and position of the operand.
    ``untold`` are symbols whose values the operands' shapes do not tell: an array without elements has them as extents. It
    stands behind the operands, before arrays that were ``prepared``: so many of the last inputs.
    ``rows`` is not empty when it takes any number of rows, each computed by itself: the axis of rows of each input, None for
    one that has none. Then ``awaited`` may be the slot of the token of a sum over ranks, some rows of which are there before
    others, or ``ahead`` that of a sum of its rows, which is started with the first of them: it then runs when that is started.
    """

    name: str
    kernel: Kernel
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    private: frozenset[int] = frozenset()
    stored: tuple[tuple[int, int], ...] = ()
    untold: tuple[str, ...] = ()
    prepared: int = 0
    rows: tuple[int | None, ...] = ()
    awaited: int | None = None
    ahead: int | None = None
    buffered: bool = True

    @property
    def told_at(self) -> int:
        """How many inputs stand before the array of ``untold`` extents."""
        return len(self.inputs) - self.prepared

    @property
    def made(self) -> tuple[int, ...]:
        """The slots of the results that have memory of their own."""
        elsewhere = {slot for slot, _ in self.stored}
        return tuple(slot for slot in self.outputs if slot not in elsewhere)

    def bind(self, slots: Slots, symbols: Mapping[str, int]) -> Action:
        """The action for these symbol values."""
        kernel, inputs, outputs, private, stored = self.kernel, self.inputs, self.made, self.private, self.stored
        extents, told_at = (*[symbols[name] for name in self.untold], 0), self.told_at

        if self.ahead is not None or self.awaited is not None:
            from graphkernel.runtime.steps.rows import rows_action  # few programs have such

            return rows_action(kernel, self.rows, inputs, outputs, self.awaited, self.ahead)

        def call(slots: Slots) -> None:
            operands = [slots[slot] for slot in inputs]
            if len(extents) > 1:
                told = np.empty_like(operands[0] if operands else _ANYWHERE, np.uint8, shape=extents)
                operands.insert(told_at, told)
            for position in private:
                operands[position] = operands[position].copy()
            given = [slots[slot] for slot in outputs]
            if all(array is not None for array in given):
                kernel(*operands, out=given)
            else:
                _fill(slots, outputs, kernel(*operands))
            for slot, position in stored:
                slots[slot] = operands[position]

        return call


class ViewStep(NamedTuple):
    """The same memory in another shape."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    shape: Shape
    buffered: bool = False

    def bind(self, slots: Slots, symbols: Mapping[str, int]) -> Action:
        """The action for these symbol values; done at once when the memory is there already."""
        (source,), (result,), shape = self.inputs, self.outputs, concrete_shape(self.shape, symbols)
        if slots[source] is not None:
            slots[result] = slots[source].reshape(shape)
            return _nothing

        def call(slots: Slots) -> None:
            slots[result] = slots[source].reshape(shape)

        return call


class PlacesStep(NamedTuple):
    """The places that indices mean on an axis of ``extent`` elements. Its name is that of the operator that reads there."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    extent: Dim
    buffered: bool = True

    def bind(self, slots: Slots, symbols: Mapping[str, int]) -> Action:
        """The action for these symbol values. It raises RuntimeFailure for an index that is out of range."""
        name, extent = self.name, evaluate(self.extent, symbols)
        (source,), (result,) = self.inputs, self.outputs

        def call(slots: Slots) -> None:
            indices = slots[source]
            wrong = indices[(indices < -extent) | (indices >= extent)]
            if wrong.size:
                raise beyond(name, int(wrong[0]), extent)
            slots[result][...] = np.where(indices < 0, indices + extent, indices)

        return call


def beyond(name: str, index: int, extent: int) -> RuntimeFailure:
    """What is said of an index that no place of an axis has, in onnxruntime's words."""
    allowed = f"must be within the inclusive range [{-extent},{extent - 1}]"
    return RuntimeFailure(f"{name} fails: indices element out of data bounds, idx={index} {allowed}")


class ShapeStep(NamedTuple):
    """The extents of an array, read off the array: an operator by its numpy meaning would bring what declares operators."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    buffered: bool = True

    def bind(self, slots: Slots, symbols: Mapping[str, int]) -> Action:
        """The action for these symbol values."""
        (source,), (result,) = self.inputs, self.outputs

        def call(slots: Slots) -> None:
            slots[result][...] = slots[source].shape

        return call


class NumpyStep(NamedTuple):
    """Computes one operator by its numpy meaning."""

    node: Node
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    buffered: bool = False

    @property
    def name(self) -> str:
        """The operator's label."""
        return self.node.name

    def bind(self, slots: Slots, symbols: Mapping[str, int]) -> Action:
        """The action for these symbol values."""
        meaning, attrs = self.node.op.meaning, concrete_attrs(self.node.attrs, symbols)
        inputs, outputs = self.inputs, self.outputs
        layouts = [(known_extents(type_.shape, symbols), type_.dtype.numpy) for type_ in self.node.types]

        def call(slots: Slots) -> None:
            operands = [slots[slot] for slot in inputs]
            with np.errstate(all="ignore"):
                found = meaning(*operands, attrs=attrs)
            results = found if isinstance(found, tuple) else (found,)
            for slot, layout, result in zip(outputs, layouts, results, strict=True):
                slots[slot] = _own(_promised(np.asarray(result), layout), operands)

        return call


def _fill(slots: Slots, outputs: Sequence[int], results: Sequence[Array]) -> None:
    """Takes over arrays that a kernel made; where one was there already, its content."""
    for slot, result in zip(outputs, results, strict=True):
        if slots[slot] is None:
            slots[slot] = result
        else:
            np.copyto(slots[slot], result)


Extents = tuple[int | None, ...]


def known_extents(shape: Shape, symbols: Mapping[str, int]) -> Extents:
    """The extents for these values of symbols; None for those that depend on others."""
    return tuple(
        None if isinstance(dim, Sym) and not symbols.keys() >= set(dim.symbols) else evaluate(dim, symbols)
        for dim in shape
    )


def _promised(result: Array, layout: tuple[Extents, np.dtype[Any]]) -> Array:
    """The result, if it is as its type says: a slice beyond its axis is shorter than whoever exported it took for granted."""
    (shape, dtype) = layout
    if result.dtype != dtype or not fits(result.shape, shape):
        promised = ", ".join("any" if extent is None else str(extent) for extent in shape)
        raise ValueError(f"gives {result.dtype}{list(result.shape)}, promised is {dtype}[{promised}]")
    return result


def fits(shape: tuple[int, ...], extents: Extents) -> bool:
    """Whether an array of this shape has these extents, as far as they are known."""
    return len(shape) == len(extents) and all(want in (None, have) for have, want in zip(shape, extents, strict=True))


def _own(result: Array, operands: Sequence[Array]) -> Array:
    """The result in memory of its own, since an operand's buffer may be reused while the result lives."""
    borrowed = result.base is not None or any(result is operand for operand in operands)
    return result.copy() if borrowed else result


def _nothing(slots: Slots) -> None:
    """The action of a step that was done when it was bound."""
