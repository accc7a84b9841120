"""Appends operators to a random kernel; chooses operands that fit, and keeps the bounds of what was made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from random import Random
from typing import Any, TypeVar

import numpy as np

from kernelgen.composite.description import Tensor
from kernelgen.composite.document import Operation
from kernelgen.composite.shape_rules import expected_shapes
from kernelgen.errors import TypeRuleError
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Dim, Shape, Sym, evaluate, sym
from kernelgen.tensor.dtypes import BOOL, Category, DType
from kernelgen.tensor.operators.type_rules import broadcast_shapes
from tests.random_kernels.values import LARGEST, MOST_ERROR, ROUNDING, SIGNIFICANT, Value

T = TypeVar("T")
PLAIN = "DefaultFormat"


@dataclass
class Writer:
    """The kernel so far. ``protected`` inputs are not assigned to: operators rely on what they hold.

    ``special`` says that floats may be NaN or infinite: they are then not converted to integers.
    """

    random: Random
    sizes: dict[str, int]
    elements: int
    special: bool = False
    inputs: list[Tensor] = field(default_factory=list)
    ops: list[Operation] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    errors: dict[str, float] = field(default_factory=dict)
    protected: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)

    # ------------------------------------------------------------ writing

    def parameter(
        self, shape: Shape, dtype: DType, bound: float | None = None, protected: bool = False, layout: str = PLAIN
    ) -> Value:
        """A new input."""
        tensor = Tensor(f"x{len(self.inputs)}", shape, dtype, layout)
        self.inputs.append(tensor)
        size = _size(dtype) if bound is None else bound
        value = Value(tensor, size)
        self.values.append(value)
        if protected:
            self.protected.add(tensor.name)
        return value

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        result: tuple[Shape, DType],
        bound: float,
        error: float = 0.0,
        layout: str = PLAIN,
        **attrs: Any,
    ) -> Value:
        """Appends an operator; the rounding of its result is added to the error when the error is not 0."""
        (value,) = self.several(name, operands, [result], bound, error, layout, **attrs)
        return value

    def several(
        self,
        name: str,
        operands: Sequence[Value],
        results: Sequence[tuple[Shape, DType]],
        bound: float,
        error: float = 0.0,
        layout: str = PLAIN,
        **attrs: Any,
    ) -> list[Value]:
        """Appends an operator of several results, all with the same bounds."""
        made: list[Value] = []
        for place, (shape, dtype) in enumerate(results):
            grown = error + bound * ROUNDING[dtype] if dtype in ROUNDING and error else error
            suffix = f"_{place}" if place else ""
            made.append(Value(Tensor(f"t{len(self.ops)}{suffix}", shape, dtype, layout), bound, grown))
        tensors = tuple(v.tensor for v in made)
        self.ops.append(Operation(name, tuple(v.tensor for v in operands), tensors, Attrs.of(attrs)))
        for value in made:
            self.errors[value.tensor.name] = value.error
            if value.error <= MOST_ERROR and layout != "FRACTAL_NZ":
                self.values.append(value)
        return made

    def shape_of(self, name: str, operands: Sequence[Value], **attrs: Any) -> Shape | None:
        """The shape that an operator of one result must have; None when the operands do not fit."""
        guess = Tensor("guess", (), operands[0].dtype if operands else self.values[0].dtype)
        try:
            shapes = expected_shapes(Operation(name, tuple(v.tensor for v in operands), (guess,), Attrs.of(attrs)))
        except (ValueError, TypeRuleError):
            return None
        return shapes[0] if shapes else None

    # ------------------------------------------------------------ sizes

    def size(self, shape: Shape) -> int:
        """The number of elements."""
        return prod(evaluate(dim, self.sizes) for dim in shape)

    def fits(self, shape: Shape | None) -> bool:
        """Whether a tensor of that shape is small enough."""
        return shape is not None and len(shape) <= 7 and self.size(shape) <= self.elements

    def extent(self, dim: Dim) -> int:
        """The size of a dim."""
        return evaluate(dim, self.sizes)

    def dim(self, extents: Sequence[int]) -> Dim:
        """One of the extents, or a symbol that the shape of an input tells."""
        told = {dim for tensor in self.inputs for dim in tensor.shape}
        symbols = [symbol for symbol in map(sym, self.sizes) if symbol in told]
        return self.one(symbols) if symbols and self.chance(3) else self.one(extents)

    # ------------------------------------------------------------ choosing

    def one(self, options: Sequence[T]) -> T:
        """One of several."""
        return options[self.random.randrange(len(options))]

    def number(self, least: int, most: int) -> int:
        """An integer, both ends included."""
        return self.random.randint(least, most)

    def chance(self, one_in: int = 2) -> bool:
        """True once in so many times."""
        return self.random.randrange(one_in) == 0

    def pick(self, wanted: Callable[[Value], bool] = lambda v: True) -> Value | None:
        """A value; later ones are likelier."""
        found = [v for v in self.values if wanted(v)]
        return self.one(found + found[-3:]) if found else None

    def static(self, v: Value) -> bool:
        """No symbol in the shape."""
        return not any(isinstance(dim, Sym) for dim in v.shape)

    def constant(self, dtype: DType, numbers: Sequence[float] = (0, 1, 2, 3, 0.5, -1.25, -2)) -> Value:
        """An inline constant in one of the shapes that writers use."""
        number = self.one(numbers)
        kept = bool(number) if dtype == BOOL else abs(int(number)) if dtype.is_integer else number
        name = f"c{len(self.ops)}_{self.number(0, 9)}"
        value = float(kept) if not dtype.is_integer and dtype != BOOL else kept
        return Value(Tensor(name, self.one(((1,), (), (1, 1))), dtype, value=value), abs(float(kept)))

    def partner(self, first: Value, dtype: DType | None = None, exact: bool = False) -> Value:
        """A value of the data type that broadcasts with the first, or a constant."""
        wanted = dtype or first.dtype

        def suits(v: Value) -> bool:
            if v.dtype != wanted or (exact and not v.is_exact):
                return False
            try:
                return self.fits(broadcast_shapes((v.shape, first.shape)))
            except TypeRuleError:
                return False

        return (self.pick(suits) if self.number(0, 4) else None) or self.constant(wanted)

    def tame(self, value: Value, limit: float = LARGEST) -> Value:
        """The value itself, or clipped to [-4, 4] when it is a large float. Integers wrap around, which is exact."""
        return self.clipped(value) if value.dtype.is_float and value.bound > limit else value

    def clipped(self, value: Value) -> Value:
        """The value clipped to [-4, 4]."""
        kind = value.dtype
        for name, end in (("Minimum", 4), ("Maximum", 0 if kind.category is Category.UINT else -4)):
            number = float(end) if kind.is_float else end
            clip = Value(Tensor(f"{name}{len(self.ops)}", (1,), kind, value=number), 4)
            value = self.op(name, (value, clip), (value.shape, kind), value.bound, value.error)
        clipped = Value(value.tensor, 4, value.error)
        self.values = [clipped if v.tensor == value.tensor else v for v in self.values]
        return clipped

    def positive(self, value: Value) -> Value:
        """``|x| + 0.5`` of a float."""
        value = self.op("Abs", (value,), (value.shape, value.dtype), value.bound, value.error)
        half = Value(Tensor(f"half{len(self.ops)}", (1,), value.dtype, value=0.5), 0.5)
        error = value.error + value.rounding
        return self.op("Add", (value, half), (value.shape, value.dtype), value.bound + 0.5, error)

    def is_finite(self, value: Value) -> bool:
        """False for the neutral elements of empty reductions."""
        return value.bound < inf


def _size(kind: DType) -> float:
    """The largest magnitude of an input that is drawn as its data type allows."""
    if kind == BOOL:
        return 1.0
    return float(np.iinfo(kind.numpy).max) + 1 if kind.is_integer else SIGNIFICANT * 1.5
