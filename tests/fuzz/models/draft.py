"""A model while it is drawn: its values with their content, one array for each set of inputs.

Every node runs in onnxruntime as soon as it is proposed, for all sets. So the ranges of operands are known when the next
one is chosen, and what onnxruntime or ONNX's checker refuses never gets in. Sets differ in content, and in the extents
of symbols: an axis is symbolic where the sets disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
from onnx import NodeProto, defs, helper

from tests.fuzz.models.contents import DATA_TYPES, WEIGHTS, content, is_float, numpy_dtype, special
from tests.fuzz.models.oracle import BFLOAT16, Array, Unable, run_node

Extent = tuple[int, ...]
"""An axis: its extent in each set."""
Dims = tuple[Extent, ...]
SETS = 2
MOST_ELEMENTS = 3000
LARGEST = {"float16": 500.0, "bfloat16": 1e4}
LARGEST_FLOAT = 1e5
EXTENTS = (1, 2, 3, 4, 4, 6, 8)
SYMBOLS: tuple[Extent, ...] = ((5, 7), (11, 13), (7, 1))


class Rejected(Exception):
    """What was drawn does not go on: draw again."""


@dataclass(frozen=True, eq=False)
class Known:
    """A value: its name and content in every set."""

    name: str
    arrays: tuple[Array, ...]
    constant: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """Its data type."""
        return self.arrays[0].dtype

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self.arrays[0].ndim

    @property
    def dims(self) -> Dims:
        """Its axes."""
        return tuple(zip(*(array.shape for array in self.arrays), strict=True))

    @property
    def size(self) -> int:
        """Elements of the largest."""
        return max(array.size for array in self.arrays)

    def within(self, low: float | None, high: float | None) -> bool:
        """Whether all elements are in the range."""
        if low is None and high is None:
            return True
        parts = [array.astype(np.float64).reshape(-1) for array in self.arrays]
        everything = np.concatenate(parts)
        begin, end = -np.inf if low is None else low, np.inf if high is None else high
        return bool(np.all((everything >= begin) & (everything <= end)))


@dataclass(frozen=True)
class Proposal:
    """A node before it has names. Absent operands are None."""

    operands: Sequence[Known | None]
    attributes: dict[str, Any] = field(default_factory=dict[str, Any])
    results: int = 1


def is_static(extent: Extent) -> bool:
    """Whether it is the same in all sets."""
    return len(set(extent)) == 1


@dataclass
class Draft:
    """The model so far. ``op`` is the operator that is being drawn."""

    random: Random
    numbers: np.random.Generator
    opset: int
    special: bool
    symbols: tuple[Extent, ...]
    values: list[Known] = field(default_factory=list[Known])
    inputs: list[Known] = field(default_factory=list[Known])
    constants: list[Known] = field(default_factory=list[Known])
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    op: str = ""

    # ------------------------------------------------ choices

    @property
    def schema(self) -> Any:  # OpSchema
        """ONNX's own description of the operator at this opset."""
        return defs.get_schema(self.op, self.opset, "")

    def chance(self, probability: float) -> bool:
        """Heads or tails."""
        return self.random.random() < probability

    def takes(self, attribute: str) -> bool:
        """Whether the operator has an attribute at this opset."""
        return attribute in self.schema.attributes

    def allowed(self, position: int) -> list[str]:
        """Data types that ONNX allows for an operand."""
        formal = self.schema.inputs[min(position, len(self.schema.inputs) - 1)]
        texts = set(formal.types)
        return [name for name in DATA_TYPES if f"tensor({_onnx_name(name)})" in texts]

    def data_type(self, names: Sequence[str]) -> np.dtype[Any]:
        """One of them, by weight."""
        if not names:
            raise Rejected("no data type")
        return numpy_dtype(self.random.choices(names, [WEIGHTS.get(name, 1) for name in names])[0])

    def extent(self) -> Extent:
        """A static or symbolic one."""
        if self.symbols and self.chance(0.35):
            return self.random.choice(self.symbols)
        return (self.random.choice(EXTENTS),) * SETS

    def dims(self, least: int = 0, most: int = 4) -> Dims:
        """The axes of a new tensor."""
        rank = self.random.choice([r for r in (0, 1, 1, 2, 2, 2, 3, 3, 4) if least <= r <= most] or [least])
        return tuple(self.extent() for _ in range(rank))

    def axis(self, x: Known, where: Callable[[Extent], bool] = lambda _: True) -> int:
        """One of the axes, counted from either end."""
        places = [axis for axis, extent in enumerate(x.dims) if where(extent)]
        if not places:
            raise Rejected("no such axis")
        axis = self.random.choice(places)
        return axis - x.rank if self.chance(0.3) else axis

    # ------------------------------------------------ values

    def operand(
        self, position: int = 0, *, dtype: np.dtype[Any] | None = None, rank: tuple[int, int] = (0, 4),
        low: float | None = None, high: float | None = None, where: Callable[[Known], bool] = lambda _: True,
        only: Sequence[str] | None = None, otherwise: Dims = (),
    ) -> Known:  # fmt: skip
        """A value that is there already, or a new one, with the axes ``otherwise`` in front."""
        names = [name for name in self.allowed(position) if only is None or name in only]
        types = {numpy_dtype(name) for name in names} if dtype is None else {dtype}
        free = self.special and self.chance(0.5)
        found = [
            x for x in self.values
            if x.dtype in types and rank[0] <= x.rank <= rank[1] and where(x) and (free or x.within(low, high))
        ]  # fmt: skip
        if found and self.chance(0.8):
            return found[-1 - min(int(self.random.expovariate(0.5)), len(found) - 1)]
        made = self.fresh(dtype or self.data_type(names), (*otherwise, *self.dims(*rank)), low, high)
        if not where(made):
            raise Rejected("a new value does not do")
        return made

    def partner(self, x: Known, position: int = 1, *, low: float | None = None, high: float | None = None) -> Known:
        """A second operand of the same type that broadcasts with the first."""
        found = [y for y in self.values if y.dtype == x.dtype and _broadcast(x.dims, y.dims) and y.within(low, high)]
        if found and self.chance(0.5):
            return self.random.choice(found)
        dims = x.dims[self.random.choice((0, 0, 0, x.rank // 2, x.rank)) :]
        dims = tuple((1,) * SETS if self.chance(0.15) else extent for extent in dims)
        return self.fresh(x.dtype, dims, low, high)

    def fresh(
        self, dtype: np.dtype[Any] | str, dims: Dims, low: float | None = None, high: float | None = None,
        constant: bool | None = None,
    ) -> Known:  # fmt: skip
        """A new input, or a new constant where its shape is static."""
        of = numpy_dtype(dtype) if isinstance(dtype, str) else dtype
        shapes = tuple(zip(*dims, strict=True)) if dims else ((),) * SETS
        if any(np.prod(shape, dtype=np.int64) > MOST_ELEMENTS for shape in shapes):
            raise Rejected("too large")
        fixed = all(map(is_static, dims)) and self.chance(0.3) if constant is None else constant
        arrays = [self._content(of, shape, low, high) for shape in shapes]
        return self.constant(arrays[0]) if fixed else self._input(tuple(arrays))

    def _content(self, of: np.dtype[Any], shape: tuple[int, ...], low: float | None, high: float | None) -> Array:
        plain = content(self.numbers, of, shape, low, high)
        return special(self.numbers, plain) if self.special and self.chance(0.6) else plain

    def constant(self, array: Array | Sequence[int], dtype: Any = None) -> Known:
        """A new constant."""
        data = np.asarray(array, np.int64 if dtype is None and not isinstance(array, np.ndarray) else dtype)
        made = Known(f"c{len(self.constants)}", (data,) * SETS, constant=True)
        self.constants.append(made)
        self.values.append(made)
        return made

    def parameters(self, array: Array | Sequence[int], dtype: Any = None) -> Known:
        """A new constant for one node alone: no other is drawn over it."""
        made = self.constant(array, dtype)
        self.values.remove(made)
        return made

    def _input(self, arrays: tuple[Array, ...]) -> Known:
        made = Known(f"x{len(self.inputs)}", arrays)
        self.inputs.append(made)
        self.values.append(made)
        return made

    # ------------------------------------------------ nodes

    def add(self, proposal: Proposal) -> None:
        """Runs the node and takes it in. Raises ``Rejected``."""
        operands = list(proposal.operands)
        while operands and operands[-1] is None:
            operands.pop()
        number = len(self.nodes)
        names = [f"v{number}" if proposal.results == 1 else f"v{number}_{i}" for i in range(proposal.results)]
        attributes = {name: value for name, value in proposal.attributes.items() if value is not None}
        inputs = ["" if x is None else x.name for x in operands]
        node = helper.make_node(self.op, inputs, names, **attributes)
        fixed = [x is not None and x.constant for x in operands]
        try:
            found = [
                run_node(node, self.opset, [x and x.arrays[i] for x in operands], fixed, check=i == 0)
                for i in range(SETS)
            ]
        except Unable as error:
            raise Rejected(str(error)) from error
        made = [Known(name, arrays) for name, arrays in zip(names, zip(*found, strict=True), strict=True)]
        for value in made:
            self._accept(value)
        self.nodes.append(node)
        self.values.extend(made)

    def _accept(self, value: Known) -> None:
        shapes = {array.ndim for array in value.arrays}
        if value.size > MOST_ELEMENTS or len(shapes) > 1 or value.rank > 6:
            raise Rejected("too large")
        if value.dtype.name not in DATA_TYPES:
            raise Rejected("data type")
        if is_float(value.dtype) and not self.special:
            most = LARGEST.get(value.dtype.name, LARGEST_FLOAT)
            if not value.within(-most, most):
                raise Rejected("out of range")

    def restore(self, mark: tuple[int, int, int]) -> None:
        """Forgets the inputs and constants that a rejected node brought."""
        inputs, constants, values = mark
        del self.inputs[inputs:], self.constants[constants:], self.values[values:]

    def mark(self) -> tuple[int, int, int]:
        """Where :meth:`restore` goes back to."""
        return len(self.inputs), len(self.constants), len(self.values)


def _onnx_name(name: str) -> str:
    return {"float32": "float", "float64": "double"}.get(name, name)


def _broadcast(a: Dims, b: Dims) -> bool:
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(m == n or set(m) == {1} or set(n) == {1} for m, n in pairs)


__all__ = ["BFLOAT16", "SETS", "Dims", "Draft", "Extent", "Known", "Proposal", "Rejected", "is_static"]
