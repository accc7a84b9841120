"""A hypothesis strategy for composite kernels over everything that the polyhedral builder knows.

Every value carries a bound of its magnitude and a bound of how far two correct evaluations may be apart. Values that grow
are clipped; comparisons, roundings and conversions to integers only see values without error, so that no result hangs on
the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from kernelgen.attrs import Attrs
from kernelgen.desc import KernelDesc, OpDesc, TensorDesc
from kernelgen.desc_rules import broadcast
from kernelgen.dims import Dim, Shape, evaluate, product, sym
from kernelgen.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    DType,
)  # fmt: skip

Array = np.ndarray[Any, Any]

DTYPES = (FLOAT32, BOOL, INT8, INT16, INT32, INT64, UINT8, FLOAT16, BFLOAT16, FLOAT64)
EXTENTS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 65)
LARGEST = 8.0
"""Floats beyond are clipped before they go on."""
ROUNDING = {FLOAT16: 2.0**-10, BFLOAT16: 2.0**-7, FLOAT32: 2.0**-20, FLOAT64: 2.0**-20}
MOST_ERROR = 0.05
"""Values of less certainty are not used."""

# name -> the error that an error of 1 grows to, and the bound of the result for an operand of at most LARGEST.
SMOOTH: dict[str, tuple[float, float]] = {
    "Tanh": (1, 1), "Sin": (1, 1), "Cos": (1, 1), "Erf": (1.2, 1), "Atan": (1, 1.6), "Asinh": (1, 3), "FastGeLU": (1.2, 9),
}  # fmt: skip
EXACT = ("Neg", "Abs", "TensorMove", "ZerosLike", "Maximum", "Minimum")
STEPS = ("Sign", "Floor", "Ceil", "Trunc", "Round")
COMPARISONS = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")
REDUCTIONS = ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceAll", "ReduceAny")


@dataclass(frozen=True)
class Value:
    """A tensor, the largest magnitude of its elements, and how far they may be from those of another evaluation."""

    tensor: TensorDesc
    bound: float
    error: float = 0.0

    @property
    def shape(self) -> Shape:
        return self.tensor.shape

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype


@dataclass(frozen=True)
class Sample:
    """A kernel, inputs for it, and how far each named tensor may be from the reference."""

    desc: KernelDesc
    inputs: list[Array]
    errors: dict[str, float]

    def __repr__(self) -> str:
        """One line per operator, for the report of a failure."""
        lines = [
            f"{op.output.name}: {_text(op.output)} = {op.name}({', '.join(map(_operand_text, op.inputs))}) {dict(op.attrs)}"
            for op in self.desc.ops
        ]
        inputs = ", ".join(
            f"{t.name}: {_text(t)} of {list(x.shape)}" for t, x in zip(self.desc.inputs, self.inputs, strict=True)
        )
        return "\n".join([f"({inputs})", *lines, f"-> {', '.join(t.name for t in self.desc.outputs)}"])


def _text(tensor: TensorDesc) -> str:
    return f"{tensor.dtype}{list(tensor.shape)}"


def _operand_text(tensor: TensorDesc) -> str:
    return tensor.name if tensor.value is None else f"{tensor.value}: {_text(tensor)}"


@st.composite
def kernels(draw: st.DrawFn, elements: int = 400, steps: int = 40) -> Sample:
    """Kernels of 1 to ``steps`` drawn steps whose tensors have at most ``elements`` elements (inputs are of one box)."""
    box, sizes = draw(_boxes(elements))
    writer = _Writer(draw, sizes, elements)
    for _ in range(draw(st.integers(1, 5))):
        writer.parameter(draw(_broadcast_parts(box)), draw(st.sampled_from((FLOAT32, FLOAT32, *DTYPES))))
    for _ in range(draw(st.integers(1, steps))):
        writer.step()
    return writer.sample(np.random.default_rng(draw(st.integers(0, 99))))


@st.composite
def _boxes(draw: st.DrawFn, elements: int) -> tuple[Shape, dict[str, int]]:
    """A shape of rank 0 to 4, some of its dims symbolic, and the sizes of the symbols."""
    dims: list[Dim] = []
    sizes: dict[str, int] = {}
    room = elements
    symbolic = draw(st.booleans())
    for place in range(draw(st.integers(0, 4))):
        extent = draw(st.sampled_from([e for e in EXTENTS if e <= room]))
        if draw(st.integers(0, 40)) == 40:
            extent = 0
        room //= max(extent, 1)
        if symbolic and extent and draw(st.booleans()):
            sizes[f"s{place}"] = extent
            dims.append(sym(f"s{place}"))
        else:
            dims.append(extent)
    return tuple(dims), sizes


@st.composite
def _broadcast_parts(draw: st.DrawFn, box: Shape) -> Shape:
    """A shape that broadcasts to the box: the box itself in half of the cases."""
    if draw(st.booleans()):
        return box
    kept = [dim if draw(st.integers(0, 2)) else 1 for dim in box]
    return tuple(kept[draw(st.integers(0, len(kept))) :])


@dataclass
class _Writer:
    draw: st.DrawFn
    sizes: dict[str, int]
    elements: int
    inputs: list[TensorDesc] = field(default_factory=list)
    ops: list[OpDesc] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    errors: dict[str, float] = field(default_factory=dict)

    # ------------------------------------------------------------ writing

    def parameter(self, shape: Shape, dtype: DType) -> None:
        tensor = TensorDesc(f"x{len(self.inputs)}", shape, dtype)
        self.inputs.append(tensor)
        self.values.append(Value(tensor, 1 if dtype == BOOL else 3))

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        shape: Shape,
        dtype: DType,
        bound: float,
        error: float,
        /,
        **attrs: Any,
    ) -> Value:
        """Appends an operator; the rounding of its result is added to the error when the error is not 0."""
        if dtype.is_float and error:
            error += bound * ROUNDING[dtype]
        result = Value(TensorDesc(f"t{len(self.ops)}", shape, dtype), bound, error)
        self.ops.append(OpDesc(name, tuple(v.tensor for v in operands), (result.tensor,), Attrs.of(attrs)))
        self.errors[result.tensor.name] = error
        if error <= MOST_ERROR:
            self.values.append(result)
        return result

    def size(self, shape: Shape) -> int:
        return prod(evaluate(dim, self.sizes) for dim in shape)

    # ------------------------------------------------------------ choosing

    def one(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def pick(self, fits: Callable[[Value], bool] = lambda v: True) -> Value | None:
        """A value; later ones are likelier."""
        found = [v for v in self.values if fits(v)]
        return self.one(found + found[-3:]) if found else None

    def constant(self, dtype: DType) -> Value:
        number = self.draw(st.sampled_from((0, 1, 2, 3, 0.5, -1.25, -2)))
        kept = bool(number) if dtype == BOOL else number if dtype.is_float else abs(int(number))
        shape = self.one(((1,), (), (1, 1)))
        name = f"c{len(self.ops)}_{self.draw(st.integers(0, 9))}"
        return Value(TensorDesc(name, shape, dtype, value=float(kept) if dtype.is_float else kept), abs(float(kept)))

    def partner(self, first: Value, dtype: DType | None = None, exact: bool = False) -> Value:
        """A value of the data type that broadcasts with the first, or a constant."""
        wanted = dtype or first.dtype

        def fits(v: Value) -> bool:
            if v.dtype != wanted or (exact and v.error):
                return False
            try:
                return self.size(broadcast(v.shape, first.shape)) <= self.elements
            except ValueError:
                return False

        return (self.pick(fits) if self.draw(st.integers(0, 4)) else None) or self.constant(wanted)

    def tame(self, value: Value) -> Value:
        """The value itself, or clipped when it is large (floats) or may have wrapped around (integers)."""
        if value.bound <= LARGEST or value.dtype == BOOL:
            return value
        limit = Value(TensorDesc(f"most{len(self.ops)}", (1,), value.dtype, value=self._number(4, value.dtype)), 4)
        value = self.op("Minimum", (value, limit), value.shape, value.dtype, value.bound, value.error)
        least = 0 if value.dtype == UINT8 else -4
        limit = Value(TensorDesc(f"least{len(self.ops)}", (1,), value.dtype, value=self._number(least, value.dtype)), 4)
        return self.op("Maximum", (value, limit), value.shape, value.dtype, 4, value.error)

    def _number(self, value: int, dtype: DType) -> float:
        return float(value) if dtype.is_float else value

    # ------------------------------------------------------------ steps

    def step(self) -> None:
        self.one((
            self.unary, self.binary, self.binary, self.binary, self.compare, self.logical, self.select, self.cast,
            self.reduce, self.reduce, self.reshape, self.reshape, self.transpose, self.broadcast_to, self.expand,
            self.add_n, self.assign,
        ))()  # fmt: skip

    def unary(self) -> None:
        x = self.pick(lambda v: v.dtype != BOOL)
        if x is None:
            return
        x = self.tame(x)
        if not x.dtype.is_float or self.draw(st.booleans()):
            name = self.one(("Neg", "Abs", "TensorMove", "ZerosLike", "Sign", "Square"))
            bound = x.bound**2 if name == "Square" else max(x.bound, 1)
            error = (2 * x.bound * x.error + self.rounding(x)) if name == "Square" else x.error
            if name == "Sign" and x.error:
                return
            self.op(name, (x,), x.shape, x.dtype, self.wrapped(bound, x.dtype, name), error)
        elif not x.error and self.draw(st.booleans()):
            self.op(self.one(STEPS), (x,), x.shape, x.dtype, x.bound + 1, 0)
        else:
            name = self.one(tuple(SMOOTH))
            slope, bound = SMOOTH[name]
            self.op(name, (x,), x.shape, x.dtype, bound, slope * x.error + self.rounding(x))

    def rounding(self, x: Value) -> float:
        """Enough for an inexact operator on a float; 0 for integers."""
        return ROUNDING[x.dtype] * max(x.bound, 1) if x.dtype.is_float else 0

    def wrapped(self, bound: float, dtype: DType, name: str) -> float:
        """Integers wrap around: what may leave the range has the range as its bound."""
        if not dtype.is_integer:
            return bound
        info = np.iinfo(dtype.numpy)
        limit = float(info.max) + 1
        leaves = bound >= limit or (dtype == UINT8 and name in ("Sub", "Neg"))
        return limit if leaves else bound

    def binary(self) -> None:
        x = self.pick(lambda v: v.dtype != BOOL)
        if x is None:
            return
        y = self.partner(x)
        x, y = self.tame(x), self.tame(y)
        if self.draw(st.booleans()):
            x, y = y, x
        names = ["Add", "Sub", "Mul", "Maximum", "Minimum"]
        if y.tensor.value is not None and y.bound >= 0.5:
            names += ["RealDiv"] if x.dtype.is_float else ["Div", "FloorDiv", "FloorMod", "Mod"]
        if x.dtype.is_float and x.tensor.value is None and y.error + x.error == 0:
            names += ["Equal"]
        name = self.one(names)
        shape = broadcast(x.shape, y.shape)
        if name == "Equal":
            self.op(name, (x, y), shape, BOOL, 1, 0)
            return
        bound, error = {
            "Mul": (x.bound * y.bound, x.bound * y.error + y.bound * x.error),
            "RealDiv": (2 * x.bound, 2 * x.error),
            "Maximum": (max(x.bound, y.bound), max(x.error, y.error)),
            "Minimum": (max(x.bound, y.bound), max(x.error, y.error)),
        }.get(name, (x.bound + y.bound, x.error + y.error))
        if name not in ("Maximum", "Minimum"):
            error += self.rounding(x) * max(bound, 1)
        self.op(name, (x, y), shape, x.dtype, self.wrapped(bound, x.dtype, name), error)

    def add_n(self) -> None:
        x = self.pick(lambda v: v.dtype in (FLOAT32, FLOAT64, INT32) and v.bound <= LARGEST)
        if x is None:
            return
        others = [v for v in self.values if v.shape == x.shape and v.dtype == x.dtype and v.bound <= LARGEST][-4:]
        operands = [x, *others]
        bound, error = sum(v.bound for v in operands), sum(v.error for v in operands)
        self.op("AddN", operands, x.shape, x.dtype, bound, error + self.rounding(x) * bound)

    def compare(self) -> None:
        x = self.pick(lambda v: v.dtype != BOOL and not v.error)
        if x is None:
            return
        y = self.partner(x, exact=True)
        shape = broadcast(x.shape, y.shape)
        if self.draw(st.booleans()) and x.bound < inf:
            self.selected((x, y), shape)
            return
        self.op(self.one(COMPARISONS), (x, y), shape, BOOL, 1, 0)

    def selected(self, compared: tuple[Value, Value], shape: Shape) -> None:
        """SelectGT and its kin: a comparison and a choice in one."""
        y = compared[0]
        self.op(
            self.one(("SelectGT", "SelectLT", "SelectGE", "SelectLE")), (*compared, y, compared[1]), shape, y.dtype,
            max(y.bound, compared[1].bound), 0,
        )  # fmt: skip

    def logical(self) -> None:
        x = self.pick(lambda v: v.dtype == BOOL)
        if x is None:
            y = self.pick(lambda v: v.dtype.is_float)
            if y is not None:
                self.op(self.one(("IsNan", "IsFinite", "IsInf")), (self.tame(y),), y.shape, BOOL, 1, 0)
            return
        if self.draw(st.booleans()):
            self.op("LogicalNot", (x,), x.shape, BOOL, 1, 0)
            return
        y = self.partner(x)
        self.op(self.one(("LogicalAnd", "LogicalOr")), (x, y), broadcast(x.shape, y.shape), BOOL, 1, 0)

    def select(self) -> None:
        condition = self.pick(lambda v: v.dtype == BOOL)
        x = self.pick()
        if condition is None or x is None:
            return
        y = self.partner(x)
        try:
            shape = broadcast(condition.shape, x.shape, y.shape)
        except ValueError:
            return
        if self.size(shape) <= self.elements:
            bound, error = max(x.bound, y.bound), max(x.error, y.error)
            self.op("Select", (condition, x, y), shape, x.dtype, bound, error)

    def cast(self) -> None:
        target = self.one(DTYPES)
        x = self.pick(lambda v: (v.dtype.is_float and target.is_float) or not v.error)
        if x is None:
            return
        unsigned = target == UINT8 and x.dtype.is_float
        if (x.dtype.is_float and target != BOOL) or target.is_float:
            x = self.tame(x)
        if unsigned:
            x = self.op("Abs", (x,), x.shape, x.dtype, x.bound, x.error)
        bound = 1.0 if target == BOOL else x.bound
        if target.is_integer:
            limit = float(np.iinfo(target.numpy).max) + 1
            bound = bound if bound < limit and target != UINT8 else limit
        self.op("Cast", (x,), x.shape, target, bound, x.error, dst_type=target.name)

    def reduce(self) -> None:
        name = self.one(REDUCTIONS)
        logical = name in ("ReduceAll", "ReduceAny")
        x = self.pick(lambda v: (v.dtype == BOOL) == logical)
        if x is None:
            return
        x = self.tame(x)
        rank = len(x.shape)
        axes = sorted(self.draw(st.sets(st.integers(0, rank - 1)))) if rank else []
        count = self.size(tuple(x.shape[a] for a in axes) if axes else x.shape)
        keep = self.draw(st.booleans())
        reduced = axes or list(range(rank))
        shape = tuple(1 if d in reduced else dim for d, dim in enumerate(x.shape) if keep or d not in reduced)
        bound, error = x.bound, x.error
        if name == "ReduceSum":
            bound = count * x.bound
            error = count * x.error + self.rounding(x) * max(bound, 1)
        elif name == "ReduceProd":
            if x.dtype.is_float and (count > 8 or x.bound > 2):
                return
            bound = max(x.bound, 1) ** min(count, 99)
            error = count * bound * x.error + self.rounding(x) * max(bound, 1)
        elif count == 0 and not logical:
            bound = inf if x.dtype.is_float else float(np.iinfo(x.dtype.numpy).max) + 1
        if x.dtype.is_float and name != "ReduceProd" and bound > 30000 and bound < inf:
            return
        written = [a - rank if self.draw(st.booleans()) else a for a in axes]
        attrs: dict[str, Any] = {"axis": tuple(written), "keep_dims": keep}
        self.op(name, (x,), shape, x.dtype, self.wrapped(bound, x.dtype, name), error, **attrs)

    def reshape(self) -> None:
        x = self.pick()
        if x is not None:
            shape = self.reshaped(x.shape)
            self.op("Reshape", (x,), shape, x.dtype, x.bound, x.error, shape=shape)

    def reshaped(self, shape: Shape) -> Shape:
        """Merged or split dims, ones in other places, the dims of another value, or any factors (which do not line up)."""
        count = product(shape)
        others = [v.shape for v in self.values if product(v.shape) == count]
        way = self.one(("merge", "split", "ones", "other", "factors"))
        if way == "other":
            return self.one(others)
        if way == "merge" and len(shape) > 1:
            at = self.draw(st.integers(0, len(shape) - 2))
            return (*shape[:at], product(shape[at : at + 2]), *shape[at + 2 :])
        if way == "split" and shape:
            at = self.draw(st.integers(0, len(shape) - 1))
            return (*shape[:at], *self.factors(shape[at]), *shape[at + 1 :])
        if way == "factors" and isinstance(count, int) and count:
            found = [f for part in self.factors(count) for f in self.factors(part)]
            return tuple(self.draw(st.permutations(found)))
        at = self.draw(st.integers(0, len(shape)))
        core = tuple(d for d in shape if d != 1)
        return core if way == "ones" and self.draw(st.booleans()) else (*shape[:at], 1, *shape[at:])

    def factors(self, dim: Dim) -> tuple[Dim, ...]:
        if not isinstance(dim, int) or dim == 0:
            return (dim, 1) if isinstance(dim, int) or len(dim.terms) != 1 else self.symbolic_factors(dim)
        inner = self.one([d for d in range(1, dim + 1) if dim % d == 0])
        return (dim // inner, inner)

    def symbolic_factors(self, dim: Any) -> tuple[Dim, ...]:
        """A monomial as its coefficient and its symbols."""
        ((symbols, coefficient),) = dim.terms
        parts = [*([coefficient] if coefficient != 1 else []), *map(sym, symbols)]
        return tuple(self.draw(st.permutations(parts)))

    def transpose(self) -> None:
        x = self.pick(lambda v: len(v.shape) > 1) or self.pick()
        if x is None:
            return
        perm = tuple(self.draw(st.permutations(range(len(x.shape)))))
        self.op("Transpose", (x,), tuple(x.shape[p] for p in perm), x.dtype, x.bound, x.error, perm=perm)

    def broadcast_to(self) -> None:
        x = self.pick() if self.draw(st.integers(0, 5)) else self.constant(self.one(DTYPES))
        other = self.pick()
        if x is None or other is None:
            return
        try:
            shape = broadcast(x.shape, other.shape)
        except ValueError:
            return
        if self.size(shape) <= self.elements:
            self.op("BroadcastTo", (x,), shape, x.dtype, x.bound, x.error, shape=shape)

    def expand(self) -> None:
        x = self.pick(lambda v: len(v.shape) < 6)
        if x is not None:
            at = self.draw(st.integers(0, len(x.shape)))
            self.op("ExpandDims", (x,), (*x.shape[:at], 1, *x.shape[at:]), x.dtype, x.bound, x.error, axis=at)

    def assign(self) -> None:
        target = self.one(self.inputs)
        shapes = (target.shape, (), (1,))
        source = self.pick(lambda v: v.shape in shapes and v.dtype == target.dtype and v.bound < inf)
        source = source if self.draw(st.integers(0, 9)) else self.constant(target.dtype)
        if source is None or source.tensor == target:
            return
        position = next((k for k, v in enumerate(self.values) if v.tensor == target), None)
        destination = Value(target, source.bound, source.error)
        if position is not None:
            self.values[position] = destination
        self.errors[target.name] = max(source.error, self.errors.get(target.name, 0))
        other = self.pick(lambda v: v.bound < inf)
        if other is None or self.draw(st.booleans()):
            self.op("Assign", (destination, source), target.shape, target.dtype, source.bound, source.error)
        else:
            self.op("InplaceAssign", (destination, source, other), other.shape, other.dtype, other.bound, other.error)

    # ------------------------------------------------------------ the end

    def sample(self, random: np.random.Generator) -> Sample:
        """The kernel with some of its values as outputs: results, now and then an input or the same value twice."""
        made = [op.output for op in self.ops]
        outputs = self.draw(st.lists(st.sampled_from(made[-8:] + made), min_size=1, max_size=4)) if made else []
        if not outputs or self.draw(st.integers(0, 7)) == 7:
            outputs.append(self.one(self.inputs))
        desc = KernelDesc("random", tuple(self.inputs), tuple(outputs), tuple(self.ops))
        return Sample(desc, [self._array(t, random) for t in self.inputs], self.errors)

    def _array(self, tensor: TensorDesc, random: np.random.Generator) -> Array:
        shape = [evaluate(dim, self.sizes) for dim in tensor.shape]
        if tensor.dtype == BOOL:
            return random.integers(0, 2, shape).astype(bool)
        if tensor.dtype.is_integer:
            return random.integers(0 if tensor.dtype == UINT8 else -3, 4, shape).astype(tensor.dtype.numpy)
        return np.asarray(random.uniform(-3, 3, shape)).astype(tensor.dtype.numpy)
