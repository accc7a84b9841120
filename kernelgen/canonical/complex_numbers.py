"""Complex tensors as real ones with a trailing dim of 2: real part, imaginary part.

    z: c64[N] = Complex(a, b)      ->      z: f32[N, 2] = Concat(a as [N, 1], b as [N, 1])
    w: c64[N] = Mul(z, z)                  r = z0 * z0 - z1 * z1;  i = z0 * z1 + z1 * z0;  w: f32[N, 2] = Concat(r, i)

The arrays are the same bytes. Operators that move elements, and sums, move or add both parts at once; products work on
the parts. What no rule is given for is refused: products of many elements are no reductions of the parts, and complex
numbers have no order. Source: AKG's complex expansion.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from kernelgen.composite.description import KernelDesc, constant, number_of
from kernelgen.composite.rewriting import Rewriting
from kernelgen.composite.vocabulary import SQUARE, STRIDED_SLICE_V2, VIEWS, by_operator, facts
from kernelgen.errors import UnsupportedError
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Shape
from kernelgen.tensor.dtypes import BOOL, COMPLEX64, FLOAT32, FLOAT64, Category, DType
from kernelgen.tensor.graph import Node, Value
from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import catalogue as basic
from kernelgen.tensor.operators.type_rules import normal_axis, reduced_axes
from kernelgen.tensor.types import TensorType


def real_parts(desc: KernelDesc) -> KernelDesc:
    """The description without complex tensors; itself when it has none."""
    if not any(map(_is_complex, desc.graph.inputs)) and not any(map(_touches_complex, desc.operators)):
        return desc
    expansion = _Expansion(Rewriting(desc))
    walk = expansion.walk
    for value in desc.graph.inputs:
        if _is_complex(value):
            walk.becomes(value, replace(value.node, types=(_both(value.type),)).out)
    for node in desc.operators:
        if _touches_complex(node):
            _expand(expansion, node)
        else:
            walk.keep(node)
    return walk.done(tuple(map(walk.now, desc.graph.inputs)))


def _touches_complex(node: Node) -> bool:
    return any(map(_is_complex, (*node.args, *node.outs)))


def _is_complex(value: Value) -> bool:
    return value.dtype.category is Category.COMPLEX


def _real(dtype: DType) -> DType:
    return FLOAT32 if dtype == COMPLEX64 else FLOAT64


def _both(type_: TensorType) -> TensorType:
    """The type of both parts of a complex value; that of a real one as it is."""
    if type_.dtype.category is not Category.COMPLEX:
        return type_
    return TensorType((*type_.shape, 2), _real(type_.dtype))


@dataclass
class _Expansion:
    """The walk over the operators, and the values that rules need on the way."""

    walk: Rewriting

    def make(self, operator: Operator, args: Sequence[Value], shape: Shape, dtype: DType, **attrs: object) -> Value:
        """A new operator's result."""
        return self._made(operator, args, TensorType(shape, dtype), Attrs.of(attrs))

    def copy(self, node: Node, args: Sequence[Value], dtype: DType) -> Value:
        """The same operator on other operands, into another data type."""
        return self._made(node.op, args, TensorType(node.out.shape, dtype), node.attrs)

    def _made(self, operator: Operator, args: Sequence[Value], type_: TensorType, attrs: Attrs) -> Value:
        return self.walk.make(operator, args, type_, attrs, f"complex_part_{len(self.walk.operators)}")

    def both(self, value: Value) -> Value:
        """Both parts of an operand, which may be a constant."""
        is_constant = value.constant is not None and _is_complex(value)
        return self.as_complex(value, value.dtype) if is_constant else self.walk.now(value)

    def as_complex(self, value: Value, dtype: DType) -> Value:
        """Both parts of a real value, or of a constant, as a complex one."""
        name = f"complex_{len(self.walk.operators)}"
        parts = [self.part(value, number, _real(dtype)) for number in (0, 1)]
        return self.assemble(TensorType(value.shape, dtype), parts, name)

    def part(self, value: Value, number: int, like: DType) -> Value:
        """The real (0) or imaginary (1) part; a real value, such as every constant, has the imaginary part 0."""
        if not _is_complex(value) or value.constant is not None:
            if number == 1:
                return constant(0, TensorType((1,), like))
            known = number_of(value)
            if known is None or not _is_complex(value):
                return self.walk.now(value)
            return constant(known.real, TensorType(value.shape, _real(value.dtype)))
        rank = len(value.shape)
        cut: dict[str, object] = {"begin": [0] * rank + [number], "size": [-1] * rank + [1]}
        found = self.make(basic.SLICE, [self.walk.now(value)], (*value.shape, 1), _real(value.dtype), **cut)
        return self.make(basic.RESHAPE, [found], value.shape, found.dtype)

    def assemble(self, type_: TensorType, parts: Sequence[Value], name: str) -> Value:
        """The complex value of two parts."""
        both = _both(type_)
        columns: list[Value] = []
        for part in parts:
            whole = part
            if part.shape != type_.shape or part.dtype != both.dtype:
                cast = self.make(basic.CAST, [part], part.shape, both.dtype)
                whole = self.make(basic.BROADCAST_TO, [cast], type_.shape, both.dtype)
            columns.append(self.make(basic.RESHAPE, [whole], (*type_.shape, 1), both.dtype))
        return self.walk.make(basic.CONCAT, columns, both, Attrs.of(axis=len(type_.shape)), name)

    def joins(self, node: Node, parts: Sequence[Value]) -> None:
        """Lets two parts stand for the result of an operator."""
        self.walk.becomes(node.out, self.assemble(node.out.type, parts, node.name))

    def gives(self, node: Node, operator: Operator, args: Sequence[Value]) -> None:
        """Lets a new operator stand for one with a real result, or with both parts."""
        self.walk.becomes(node.out, self.walk.make(operator, args, _both(node.out.type), name=node.name))


Parts = tuple[Value, Value]
Maker = Callable[[Operator, Value, Value], Value]


def _mul(make: Maker, a: Parts, b: Parts) -> Parts:
    """``(a0 b0 - a1 b1) + (a0 b1 + a1 b0) i``."""
    real = make(basic.SUB, make(basic.MUL, a[0], b[0]), make(basic.MUL, a[1], b[1]))
    return real, make(basic.ADD, make(basic.MUL, a[0], b[1]), make(basic.MUL, a[1], b[0]))


def _each(operator: Operator) -> Callable[[Maker, Parts, Parts], Parts]:
    return lambda make, a, b: (make(operator, a[0], b[0]), make(operator, a[1], b[1]))


_BINARY: Mapping[Operator, Callable[[Maker, Parts, Parts], Parts]] = by_operator({
    basic.ADD: _each(basic.ADD), basic.SUB: _each(basic.SUB), basic.MUL: _mul,
})  # fmt: skip


def _expand(expansion: _Expansion, node: Node) -> None:
    rule = RULES.get(node.op)
    if rule is not None:
        rule(expansion, node)
    elif (attrs := _moved(node)) is not None:
        operator = basic.RESHAPE if node.op in VIEWS else node.op
        types = tuple(map(_both, node.types))
        expansion.walk.keep(node, tuple(map(expansion.both, node.args)), op=operator, attrs=attrs, types=types)
    else:
        raise UnsupportedError("unsupported-dtype", f"operator {node.op.name!r} on complex tensors")


def _complex(expansion: _Expansion, node: Node) -> None:
    expansion.joins(node, expansion.walk.args(node))


def _taken(expansion: _Expansion, node: Node) -> None:
    part = expansion.part(node.args[0], int(node.op is basic.C_IMAG), node.out.dtype)
    expansion.gives(node, basic.CAST, (part,))


def _assign(expansion: _Expansion, node: Node) -> None:
    """The value becomes what its destination is: a real one gets the imaginary part 0, a complex one loses it."""
    destination, value = node.args
    if _is_complex(destination) and not _is_complex(value):
        source = expansion.as_complex(value, destination.dtype)
    elif _is_complex(value) and not _is_complex(destination):
        source = expansion.part(value, 0, destination.dtype)
    else:
        source = expansion.both(value)
    args = (expansion.walk.now(destination), source)
    expansion.walk.keep(node, args, types=tuple(map(_both, node.types)))


def _part_by_part(expansion: _Expansion, node: Node) -> None:
    """The operator on real parts and on imaginary ones; a constant among the attributes is real."""
    kind = _real(node.out.dtype)
    found: list[Value] = []
    for number in (0, 1):
        args = [expansion.part(v, number, kind) if _is_complex(v) else expansion.walk.now(v) for v in node.args]
        attrs = node.attrs.without("pad_val") if number else node.attrs
        type_ = node.out.type.of_dtype(kind)
        found.append(expansion.walk.make(node.op, args, type_, attrs, f"complex_part_{len(expansion.walk.operators)}"))
    expansion.joins(node, found)


def _matmul(expansion: _Expansion, node: Node) -> None:
    """Four real products, of which pairs are added as in a product of numbers; then the bias."""
    kind = _real(node.out.dtype)
    left, right = ((expansion.part(v, 0, kind), expansion.part(v, 1, kind)) for v in node.args[:2])

    def make(operator: Operator, a: Value, b: Value) -> Value:
        if operator is not basic.MUL:
            return expansion.make(operator, (a, b), node.out.shape, kind)
        return expansion.copy(node, (a, b), kind)

    found = _mul(make, left, right)
    for bias in node.args[2:]:
        found = _each(basic.ADD)(make, found, (expansion.part(bias, 0, kind), expansion.part(bias, 1, kind)))
    expansion.joins(node, found)


def _quotient(expansion: _Expansion, node: Node) -> None:
    """``a w / b w`` with ``w = conj(b) / p``, p the larger part of b; a reciprocal is ``w / b w``.

    One part of w is 1 and the other between -1 and 1: nothing is squared, as in ``a conj(b) / |b|^2``, that overflows or
    vanishes. A real divisor divides both parts.
    """
    kind, *dividend, divisor = _real(node.out.dtype), *node.args
    parts = [tuple(expansion.part(value, number, kind) for number in (0, 1)) for value in dividend]

    def make(operator: Operator, *args: Value) -> Value:
        return expansion.make(operator, args, node.out.shape, kind)

    if not _is_complex(divisor):
        expansion.joins(node, [make(basic.REAL_DIV, part, expansion.walk.now(divisor)) for part in parts[0]])
        return
    real, minus_imaginary, size = _scaled_conjugate(expansion, divisor, kind)
    if not dividend:
        above = real, make(basic.NEG, minus_imaginary)
    else:
        ((a, b),) = parts
        above = (
            make(basic.ADD, make(basic.MUL, a, real), make(basic.MUL, b, minus_imaginary)),
            make(basic.SUB, make(basic.MUL, b, real), make(basic.MUL, a, minus_imaginary)),
        )
    expansion.joins(node, [make(basic.REAL_DIV, part, size) for part in above])


def _scaled_conjugate(expansion: _Expansion, value: Value, kind: DType) -> tuple[Value, Value, Value]:
    """Real and negated imaginary part of ``w = conj(value) / p``, and ``value w``, which is real."""
    c, d = (expansion.part(value, number, kind) for number in (0, 1))
    one = constant(1, TensorType((1,), kind))

    def make(operator: Operator, *args: Value, dtype: DType = kind) -> Value:
        return expansion.make(operator, args, value.shape, dtype)

    is_real = make(basic.GREATER_EQUAL, make(basic.ABS, c), make(basic.ABS, d), dtype=BOOL)
    ratio = make(basic.REAL_DIV, make(basic.SELECT, is_real, d, c), make(basic.SELECT, is_real, c, d))
    real, minus_imaginary = make(basic.SELECT, is_real, one, ratio), make(basic.SELECT, is_real, ratio, one)
    size = make(basic.ADD, make(basic.MUL, c, real), make(basic.MUL, d, minus_imaginary))
    return real, minus_imaginary, size


def _cast(expansion: _Expansion, node: Node) -> None:
    """Between precisions both parts are cast; a complex number as a real one is its real part."""
    (source,) = node.args
    if _is_complex(source) and _is_complex(node.out):
        expansion.gives(node, basic.CAST, (expansion.both(source),))
    elif _is_complex(source):
        expansion.gives(node, basic.CAST, (expansion.part(source, 0, node.out.dtype),))
    else:
        zero = constant(0, TensorType((1,), _real(node.out.dtype)))
        expansion.joins(node, (expansion.walk.now(source), zero))


def _product(expansion: _Expansion, node: Node) -> None:
    kind = _real(node.out.dtype)
    operands = node.args if len(node.args) == 2 else node.args * 2
    left, right = ((expansion.part(v, 0, kind), expansion.part(v, 1, kind)) for v in operands)

    def make(operator: Operator, a: Value, b: Value) -> Value:
        return expansion.make(operator, (a, b), node.out.shape, kind)

    expansion.joins(node, _BINARY.get(node.op, _mul)(make, left, right))


def _comparison(expansion: _Expansion, node: Node) -> None:
    kind = next(_real(v.dtype) for v in node.args if _is_complex(v))
    pairs = ([expansion.part(v, number, kind) for v in node.args] for number in (0, 1))
    found = [expansion.copy(node, pair, BOOL) for pair in pairs]
    expansion.gives(node, basic.LOGICAL_AND if node.op is basic.EQUAL else basic.LOGICAL_OR, found)


def _test(expansion: _Expansion, node: Node) -> None:
    """A complex number is NaN or infinite when a part is, and finite when both are."""
    kind = _real(node.args[0].dtype)
    parts = (expansion.part(node.args[0], number, kind) for number in (0, 1))
    found = [expansion.copy(node, (part,), BOOL) for part in parts]
    expansion.gives(node, basic.LOGICAL_AND if node.op is basic.IS_FINITE else basic.LOGICAL_OR, found)


def _select(expansion: _Expansion, node: Node) -> None:
    kind, condition = _real(node.out.dtype), expansion.walk.now(node.args[0])
    chosen = ([expansion.part(v, number, kind) for v in node.args[1:]] for number in (0, 1))
    parts = [expansion.make(basic.SELECT, (condition, *pair), node.out.shape, kind) for pair in chosen]
    expansion.joins(node, parts)


RULES: Mapping[Operator, Callable[[_Expansion, Node], None]] = MappingProxyType({
    **dict.fromkeys(_BINARY, _product),
    **by_operator({
        basic.COMPLEX: _complex, (basic.C_REAL, basic.C_IMAG): _taken, basic.CAST: _cast, SQUARE: _product,
        (basic.REAL_DIV, basic.DIV, basic.RECIPROCAL): _quotient, basic.SELECT: _select, basic.ASSIGN: _assign,
        (basic.EQUAL, basic.NOT_EQUAL): _comparison, (basic.IS_NAN, basic.IS_INF, basic.IS_FINITE): _test,
        (basic.MATMUL, basic.BATCH_MATMUL): _matmul,
        (basic.PAD_AKG, basic.TRANS_DATA, basic.LAYOUT_TRANSFORM, basic.ONE_HOT): _part_by_part,
    }),
})  # fmt: skip
"""Operators that are more than the same operator on a dim more."""


def _moved(node: Node) -> Attrs | None:
    """The attributes of an operator that treats both parts alike, for one dim more; None for other operators."""
    values = [v for place, v in enumerate(node.args) if not (place == 1 and node.op in _INDEXED)]
    if not all(map(_is_complex, (*values, *node.outs))):
        return None
    rank = len(node.args[0].shape)
    match node.op:
        case basic.TRANSPOSE:
            return Attrs.of(perm=(*node.attrs.ints("perm", tuple(reversed(range(rank)))), rank))
        case basic.CONCAT | basic.SPLIT | basic.GATHER:
            return node.attrs.with_(axis=normal_axis(node.attrs.int("axis", 0), rank))
        case basic.CUM_SUM:
            return node.attrs.with_(axis=normal_axis(node.attrs.ints("axis", (0,))[0], rank))
        case basic.REDUCE_SUM:
            return node.attrs.with_(axis=reduced_axes(node)) if rank else None
        case basic.TILE:
            return Attrs.of(multiples=(*node.attrs.ints("multiples"), 1))
        case basic.SLICE:
            return Attrs.of(begin=(*node.attrs.ints("begin"), 0), size=(*node.attrs.ints("size"), -1))
        case basic.STRIDED_SLICE:
            return _with_whole_dim(node.attrs) if node.attrs.int("ellipsis_mask", 0) else node.attrs
        case basic.UNPAD_AKG:
            return Attrs.of(tail=(*node.attrs.ints("tail"), 0))
        case _ if node.op is STRIDED_SLICE_V2 and ("axes" in node.attrs or "begin" in node.attrs):
            axes = node.attrs.ints("axes", tuple(range(len(node.attrs.ints("begin")))))
            return node.attrs.with_(axes=tuple(normal_axis(axis, rank) for axis in axes))
        case _:
            return node.attrs if node.op in _ALIKE else None


def _with_whole_dim(attrs: Attrs) -> Attrs:
    """A StridedSlice with an entry for the parts behind all others: its ellipsis ends before them."""
    place = len(attrs.ints("begin"))
    longer = {name: (*attrs.ints(name), value) for name, value in (("begin", 0), ("end", 0), ("strides", 1))}
    masks = {name: attrs.int(name, 0) | 1 << place for name in ("begin_mask", "end_mask")}
    return attrs.with_(**longer, **masks)


_INDEXED = frozenset(facts(lambda word: word.indices == (1,)))
"""Their second operands are numbers of places."""

_ALIKE = frozenset(facts(lambda word: word.traits.parts_alike))
