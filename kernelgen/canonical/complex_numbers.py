"""Complex tensors as real ones with a trailing dim of 2: real part, imaginary part.

    z: c64[N] = Complex(a, b)      ->      z: f32[N, 2] = Concat(a as [N, 1], b as [N, 1])
    w: c64[N] = Mul(z, z)                  r = z0 * z0 - z1 * z1;  i = z0 * z1 + z1 * z0;  w: f32[N, 2] = Concat(r, i)

The arrays are the same bytes. Operators that move elements, and sums, move or add both parts at once; products work on
the parts. What no rule is given for is refused: products of many elements are no reductions of the parts, and complex
numbers have no order. Source: AKG's complex expansion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from kernelgen.composite.axes import normal_axis, reduced_axes
from kernelgen.composite.description import KernelDesc, OpDesc, TensorDesc
from kernelgen.composite.vocabulary import INPLACE_ASSIGN, SQUARE, STRIDED_SLICE_V2, VIEWS, by_name, facts, names_of
from kernelgen.errors import UnsupportedError
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Shape
from kernelgen.tensor.dtypes import BOOL, COMPLEX64, FLOAT32, FLOAT64, Category, DType
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import catalogue as basic


def real_parts(desc: KernelDesc) -> KernelDesc:
    """The description without complex tensors; itself when it has none."""
    tensors = [t for op in desc.ops for t in (*op.inputs, *op.outputs)]
    if not any(_is_complex(t) for t in (*desc.inputs, *desc.outputs, *tensors)):
        return desc
    expansion = _Expansion()
    for op in desc.ops:
        if any(_is_complex(t) for t in (*op.inputs, *op.outputs)):
            _expand(expansion, op)
        else:
            expansion.ops.append(op)
    inputs, outputs = (tuple(map(_both, ts)) for ts in (desc.inputs, desc.outputs))
    return replace(desc, inputs=inputs, outputs=outputs, ops=tuple(expansion.ops))


def _is_complex(tensor: TensorDesc) -> bool:
    return tensor.dtype.category is Category.COMPLEX


def _real(dtype: DType) -> DType:
    return FLOAT32 if dtype == COMPLEX64 else FLOAT64


def _both(tensor: TensorDesc) -> TensorDesc:
    """Both parts of a complex tensor that has a name; a real one as it is."""
    if not _is_complex(tensor):
        return tensor
    return replace(tensor, shape=(*tensor.shape, 2), dtype=_real(tensor.dtype), format="DefaultFormat")


@dataclass
class _Expansion:
    """The operators made so far."""

    ops: list[OpDesc] = field(default_factory=list)

    def make(
        self, operator: Operator, inputs: Sequence[TensorDesc], shape: Shape, dtype: DType, **attrs: object
    ) -> TensorDesc:
        """A new operator's result."""
        result = TensorDesc(f"complex_part_{len(self.ops)}", shape, dtype)
        self.ops.append(OpDesc(operator.name, tuple(inputs), (result,), Attrs.of(attrs)))
        return result

    def copy(self, op: OpDesc, inputs: Sequence[TensorDesc], dtype: DType) -> TensorDesc:
        """The same operator on other operands, into another data type."""
        result = TensorDesc(f"complex_part_{len(self.ops)}", op.output.shape, dtype)
        self.ops.append(OpDesc(op.name, tuple(inputs), (result,), op.attrs))
        return result

    def both(self, tensor: TensorDesc) -> TensorDesc:
        """Both parts of an operand, which may be a constant."""
        is_constant = tensor.value is not None and _is_complex(tensor)
        return self.as_complex(tensor, tensor.dtype) if is_constant else _both(tensor)

    def as_complex(self, tensor: TensorDesc, dtype: DType) -> TensorDesc:
        """Both parts of a real tensor, or of a constant, as a complex one."""
        made = TensorDesc(f"complex_{len(self.ops)}", tensor.shape, dtype)
        self.assemble(made, [self.part(tensor, number, _real(dtype)) for number in (0, 1)])
        return _both(made)

    def part(self, tensor: TensorDesc, number: int, like: DType) -> TensorDesc:
        """The real (0) or imaginary (1) part; a real tensor, such as every constant, has the imaginary part 0."""
        if _is_complex(tensor) and tensor.value is not None:
            tensor = replace(tensor, dtype=_real(tensor.dtype))
        if _is_complex(tensor):
            rank = len(tensor.shape)
            cut: dict[str, object] = {"begin": [0] * rank + [number], "size": [-1] * rank + [1]}
            found = self.make(basic.SLICE, [_both(tensor)], (*tensor.shape, 1), _real(tensor.dtype), **cut)
            return self.make(basic.RESHAPE, [found], tensor.shape, found.dtype)
        return tensor if number == 0 else TensorDesc("", (1,), like, value=0)

    def assemble(self, result: TensorDesc, parts: Sequence[TensorDesc]) -> None:
        """The complex tensor of two parts."""
        both = _both(result)
        columns: list[TensorDesc] = []
        for part in parts:
            whole = part
            if part.shape != result.shape or part.dtype != both.dtype:
                cast = self.make(basic.CAST, [part], part.shape, both.dtype)
                whole = self.make(basic.BROADCAST_TO, [cast], result.shape, both.dtype)
            columns.append(self.make(basic.RESHAPE, [whole], (*result.shape, 1), both.dtype))
        self.ops.append(OpDesc(basic.CONCAT.name, tuple(columns), (both,), Attrs.of(axis=len(result.shape))))


Parts = tuple[TensorDesc, TensorDesc]
Maker = Callable[[Operator, TensorDesc, TensorDesc], TensorDesc]


def _mul(make: Maker, a: Parts, b: Parts) -> Parts:
    """``(a0 b0 - a1 b1) + (a0 b1 + a1 b0) i``."""
    real = make(basic.SUB, make(basic.MUL, a[0], b[0]), make(basic.MUL, a[1], b[1]))
    return real, make(basic.ADD, make(basic.MUL, a[0], b[1]), make(basic.MUL, a[1], b[0]))


def _div(make: Maker, a: Parts, b: Parts) -> Parts:
    """``a conj(b) / |b|^2``."""
    size = make(basic.ADD, make(basic.MUL, b[0], b[0]), make(basic.MUL, b[1], b[1]))
    real = make(basic.ADD, make(basic.MUL, a[0], b[0]), make(basic.MUL, a[1], b[1]))
    imaginary = make(basic.SUB, make(basic.MUL, a[1], b[0]), make(basic.MUL, a[0], b[1]))
    return make(basic.REAL_DIV, real, size), make(basic.REAL_DIV, imaginary, size)


def _each(operator: Operator) -> Callable[[Maker, Parts, Parts], Parts]:
    return lambda make, a, b: (make(operator, a[0], b[0]), make(operator, a[1], b[1]))


_BINARY: Mapping[str, Callable[[Maker, Parts, Parts], Parts]] = by_name({
    basic.ADD: _each(basic.ADD), basic.SUB: _each(basic.SUB), basic.MUL: _mul, (basic.REAL_DIV, basic.DIV): _div,
})  # fmt: skip


def _reciprocal(make: Maker, a: Parts) -> Parts:
    """``conj(a) / |a|^2``."""
    size = make(basic.ADD, make(basic.MUL, a[0], a[0]), make(basic.MUL, a[1], a[1]))
    minus_one = TensorDesc("", (1,), a[1].dtype, value=-1)
    return make(basic.REAL_DIV, a[0], size), make(basic.REAL_DIV, make(basic.MUL, a[1], minus_one), size)


def _expand(expansion: _Expansion, op: OpDesc) -> None:
    rule = RULES.get(op.name)
    if rule is not None:
        rule(expansion, op)
    elif (attrs := _moved(op)) is not None:
        name = basic.RESHAPE.name if op.name in _RESHAPES else op.name
        operands = tuple(map(expansion.both, op.inputs))
        expansion.ops.append(OpDesc(name, operands, tuple(map(_both, op.outputs)), attrs))
    else:
        raise UnsupportedError("unsupported-dtype", f"operator {op.name!r} on complex tensors")


def _complex(expansion: _Expansion, op: OpDesc) -> None:
    expansion.assemble(op.output, op.inputs)


def _taken(expansion: _Expansion, op: OpDesc) -> None:
    part = expansion.part(op.inputs[0], int(op.name == basic.C_IMAG.name), op.output.dtype)
    expansion.ops.append(OpDesc(basic.CAST.name, (part,), (op.output,)))


def _assign(expansion: _Expansion, op: OpDesc) -> None:
    """The value becomes what its destination is: a real one gets the imaginary part 0, a complex one loses it."""
    destination, value, *others = op.inputs
    if _is_complex(destination) and not _is_complex(value):
        source = expansion.as_complex(value, destination.dtype)
    elif _is_complex(value) and not _is_complex(destination):
        source = expansion.part(value, 0, destination.dtype)
    else:
        source = expansion.both(value)
    operands = (_both(destination), source, *map(expansion.both, others))
    expansion.ops.append(OpDesc(op.name, operands, (_both(op.output),), op.attrs))


def _part_by_part(expansion: _Expansion, op: OpDesc) -> None:
    """The operator on real parts and on imaginary ones; a constant among the attributes is real."""
    kind = _real(op.output.dtype)
    found: list[TensorDesc] = []
    for number in (0, 1):
        operands = [expansion.part(t, number, kind) if _is_complex(t) else t for t in op.inputs]
        attrs = op.attrs.without("pad_val") if number else op.attrs
        made = replace(op.output, name=f"complex_part_{len(expansion.ops)}", dtype=kind)
        expansion.ops.append(replace(op, inputs=tuple(operands), outputs=(made,), attrs=attrs))
        found.append(made)
    expansion.assemble(op.output, found)


def _matmul(expansion: _Expansion, op: OpDesc) -> None:
    """Four real products, of which pairs are added as in a product of numbers; then the bias."""
    kind = _real(op.output.dtype)
    left, right = ((expansion.part(t, 0, kind), expansion.part(t, 1, kind)) for t in op.inputs[:2])

    def make(operator: Operator, a: TensorDesc, b: TensorDesc) -> TensorDesc:
        if operator is not basic.MUL:
            return expansion.make(operator, (a, b), op.output.shape, kind)
        return expansion.copy(op, (a, b), kind)

    found = _mul(make, left, right)
    for bias in op.inputs[2:]:
        found = _each(basic.ADD)(make, found, (expansion.part(bias, 0, kind), expansion.part(bias, 1, kind)))
    expansion.assemble(op.output, found)


def _inverse(expansion: _Expansion, op: OpDesc) -> None:
    kind = _real(op.output.dtype)

    def make(operator: Operator, a: TensorDesc, b: TensorDesc) -> TensorDesc:
        return expansion.make(operator, (a, b), op.output.shape, kind)

    operand = expansion.part(op.inputs[0], 0, kind), expansion.part(op.inputs[0], 1, kind)
    expansion.assemble(op.output, _reciprocal(make, operand))


def _cast(expansion: _Expansion, op: OpDesc) -> None:
    """Between precisions both parts are cast; a complex number as a real one is its real part."""
    (source,) = op.inputs
    if _is_complex(source) and _is_complex(op.output):
        expansion.ops.append(OpDesc(basic.CAST.name, (_both(source),), (_both(op.output),)))
    elif _is_complex(source):
        expansion.ops.append(OpDesc(basic.CAST.name, (expansion.part(source, 0, op.output.dtype),), (op.output,)))
    else:
        expansion.assemble(op.output, (source, TensorDesc("", (1,), _real(op.output.dtype), value=0)))


def _product(expansion: _Expansion, op: OpDesc) -> None:
    kind = _real(op.output.dtype)
    operands = op.inputs if len(op.inputs) == 2 else op.inputs * 2
    left, right = ((expansion.part(t, 0, kind), expansion.part(t, 1, kind)) for t in operands)

    def make(operator: Operator, a: TensorDesc, b: TensorDesc) -> TensorDesc:
        return expansion.make(operator, (a, b), op.output.shape, kind)

    rule = _BINARY.get(op.name, _mul)
    expansion.assemble(op.output, rule(make, left, right))


def _comparison(expansion: _Expansion, op: OpDesc) -> None:
    kind = next(_real(t.dtype) for t in op.inputs if _is_complex(t))
    pairs = ([expansion.part(t, number, kind) for t in op.inputs] for number in (0, 1))
    found = [expansion.copy(op, pair, BOOL) for pair in pairs]
    joined = basic.LOGICAL_AND if op.name == basic.EQUAL.name else basic.LOGICAL_OR
    expansion.ops.append(OpDesc(joined.name, tuple(found), (op.output,)))


def _test(expansion: _Expansion, op: OpDesc) -> None:
    """A complex number is NaN or infinite when a part is, and finite when both are."""
    kind = _real(op.inputs[0].dtype)
    parts = (expansion.part(op.inputs[0], number, kind) for number in (0, 1))
    found = [expansion.copy(op, (part,), BOOL) for part in parts]
    joined = basic.LOGICAL_AND if op.name == basic.IS_FINITE.name else basic.LOGICAL_OR
    expansion.ops.append(OpDesc(joined.name, tuple(found), (op.output,)))


def _select(expansion: _Expansion, op: OpDesc) -> None:
    kind = _real(op.output.dtype)
    chosen = ([expansion.part(t, number, kind) for t in op.inputs[1:]] for number in (0, 1))
    parts = [expansion.make(basic.SELECT, (op.inputs[0], *pair), op.output.shape, kind) for pair in chosen]
    expansion.assemble(op.output, parts)


RULES: Mapping[str, Callable[[_Expansion, OpDesc], None]] = MappingProxyType({
    **dict.fromkeys(_BINARY, _product),
    **by_name({
        basic.COMPLEX: _complex, (basic.C_REAL, basic.C_IMAG): _taken, basic.CAST: _cast, SQUARE: _product,
        basic.RECIPROCAL: _inverse, (basic.EQUAL, basic.NOT_EQUAL): _comparison, basic.SELECT: _select,
        (basic.IS_NAN, basic.IS_INF, basic.IS_FINITE): _test, (basic.ASSIGN, INPLACE_ASSIGN): _assign,
        (basic.MATMUL, basic.BATCH_MATMUL): _matmul,
        (basic.PAD_AKG, basic.TRANS_DATA, basic.LAYOUT_TRANSFORM, basic.ONE_HOT): _part_by_part,
    }),
})  # fmt: skip
"""Operators that are more than the same operator on a dim more."""


def _moved(op: OpDesc) -> Attrs | None:
    """The attributes of an operator that treats both parts alike, for one dim more; None for other operators."""
    values = [t for place, t in enumerate(op.inputs) if not (place == 1 and op.name in _INDEXED)]
    if not all(map(_is_complex, (*values, *op.outputs))):
        return None
    rank = len(op.inputs[0].shape)
    match op.name:
        case basic.TRANSPOSE.name:
            return Attrs.of(perm=(*op.attrs.ints("perm", tuple(reversed(range(rank)))), rank))
        case basic.CONCAT.name | basic.SPLIT.name | basic.GATHER.name:
            return op.attrs.with_(axis=normal_axis(op.attrs.int("axis", 0), rank))
        case basic.CUM_SUM.name:
            return op.attrs.with_(axis=normal_axis(op.attrs.ints("axis", (0,))[0], rank))
        case basic.REDUCE_SUM.name:
            return op.attrs.with_(axis=reduced_axes(op)) if rank else None
        case basic.TILE.name:
            return Attrs.of(multiples=(*op.attrs.ints("multiples"), 1))
        case basic.SLICE.name:
            return Attrs.of(begin=(*op.attrs.ints("begin"), 0), size=(*op.attrs.ints("size"), -1))
        case basic.STRIDED_SLICE.name:
            return _with_whole_dim(op.attrs) if op.attrs.int("ellipsis_mask", 0) else op.attrs
        case basic.UNPAD_AKG.name:
            return Attrs.of(tail=(*op.attrs.ints("tail"), 0))
        case STRIDED_SLICE_V2.name if "axes" in op.attrs or "begin" in op.attrs:
            axes = op.attrs.ints("axes", tuple(range(len(op.attrs.ints("begin")))))
            return op.attrs.with_(axes=tuple(normal_axis(axis, rank) for axis in axes))
        case _:
            return op.attrs if op.name in _ALIKE else None


def _with_whole_dim(attrs: Attrs) -> Attrs:
    """A StridedSlice with an entry for the parts behind all others: its ellipsis ends before them."""
    place = len(attrs.ints("begin"))
    longer = {name: (*attrs.ints(name), value) for name, value in (("begin", 0), ("end", 0), ("strides", 1))}
    masks = {name: attrs.int(name, 0) | 1 << place for name in ("begin_mask", "end_mask")}
    return attrs.with_(**longer, **masks)


_RESHAPES = names_of(*VIEWS)

_INDEXED = frozenset(facts(lambda op: isinstance(op, Operator) and op.indices == (1,)))
"""Their second operands are numbers of places."""

_ALIKE = frozenset(facts(lambda op: op.traits.parts_alike))
