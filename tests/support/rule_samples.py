"""Instances of rules: graphs in which the left side stands, and inputs of mixed exponents, zeros, infinities and NaN."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from graphkernel.errors import TypeRuleError
from graphkernel.patterns.drive import promise
from graphkernel.patterns.language import Apply, Attributes, Const, Literal, Rule, Safety, Term, Variable, subterms
from graphkernel.patterns.match import Match, build, matches
from graphkernel.patterns.ranges import Range, Ranges
from kernelgen.tensor.graph import Builder, Graph, Value
from kernelgen.tensor.types import Attrs, DType, TensorType, dtype

DTYPES = ("float32", "float16", "bfloat16", "int32", "uint8", "bool")
SHAPES = ((400,), (2, 3, 4), (3, 1, 5), (1, 1), (5, 5), (2, 16, 2, 3))
CONSTANTS = (3.0, 1e-3, -0.5, 2.0, 1024.0, 0.0, -7.0)
MOST_INSTANCES = 12


@dataclass(frozen=True)
class Instance:
    """A graph that is the left side, the graph that is the right side, and what the rule promises here."""

    left: Graph
    right: Graph
    promise: Safety
    match: Match

    @property
    def types(self) -> tuple[TensorType, ...]:
        return tuple(value.type for value in self.left.inputs)


def instances(rule: Rule) -> Iterator[Instance]:
    """Up to MOST_INSTANCES instances for each data type."""
    for name in DTYPES:
        found = (made for shape in SHAPES for made in _instances(rule, shape, name))
        yield from itertools.islice(found, MOST_INSTANCES)


def _instances(rule: Rule, shape: tuple[int, ...], name: str) -> Iterator[Instance]:
    constants = [v for v in rule.variables.values() if isinstance(v, Const)]
    for numbers in itertools.product(CONSTANTS, repeat=len(constants)):
        builder = Builder()
        bound: dict[str, Value] = {}
        for variable in rule.variables.values():
            if isinstance(variable, Variable) and not isinstance(variable, Const):
                type_ = TensorType(_shape_of(rule, variable, shape), _type_of(rule, variable, name))
                bound[variable.name] = builder.parameter(variable.name, type_)
        for variable, number in zip(constants, numbers, strict=True):
            bound[variable.name] = builder.constant(np.asarray(number).astype(name if name != "bool" else "float32"))
        for root in _built(rule.equation.left, bound, builder, np.zeros(shape, name)):
            made = _instance(rule, root, [v for v in bound.values() if v.is_parameter])
            if made is not None:
                yield made


def _shape_of(rule: Rule, variable: Variable, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The bias of a product is a vector."""
    of_product = variable in rule.equation.left.args and "bias" in rule.name
    return shape[-1:] if of_product else shape


def _type_of(rule: Rule, variable: Variable, name: str) -> DType:
    """Conditions of Select are bool whatever the data is."""
    for part in subterms(rule.equation.left):
        if isinstance(part, Apply) and part.op.name == "Select" and variable in set(subterms(part.args[0])):
            return dtype("bool")
    return dtype(name)


def _built(term: Term, bound: Mapping[str, Value], builder: Builder, like: np.ndarray) -> Iterator[Value]:
    """The term over the bound values, once for each choice of attributes that the type rules accept."""
    match term:
        case Variable():
            yield bound[term.name]
        case Literal(number):
            # not a scalar: numpy's power takes short cuts for scalar exponents
            if np.float64(np.asarray(number).astype(like.dtype)) == number:
                yield builder.constant(np.full_like(like, number))
        case Apply(op, terms, attributes):
            for args in itertools.product(*(list(_built(part, bound, builder, like)) for part in terms)):
                choices = _attributes(op.name, args[0].type) if isinstance(attributes, Attributes) else [Attrs()]
                for attrs in choices:
                    try:
                        yield builder.node(op, args, attrs).out
                    except TypeRuleError:
                        continue
        case _:
            raise AssertionError(term)


def _attributes(op: str, operand: TensorType) -> Iterator[Attrs]:
    rank, shape = operand.rank, operand.shape
    if op.startswith("Reduce"):
        for keep, axes in itertools.product((True, False), [*((a,) for a in range(rank)), tuple(range(rank))]):
            yield Attrs.of(axis=axes, keep_dims=keep)
    elif op == "Transpose":
        yield from (Attrs.of(perm=perm) for perm in itertools.permutations(range(rank)))
    elif op == "Reshape":
        yield from (Attrs.of(shape=new) for new in (shape, (1, *shape), (operand.size,)))
    elif op == "BroadcastTo":
        yield from (Attrs.of(shape=new) for new in (shape, (2, *shape), tuple(3 if d == 1 else d for d in shape)))
    elif op in ("MatMul", "BatchMatMul"):
        yield from (Attrs.of(transpose_a=a, transpose_b=b) for a, b in itertools.product((False, True), repeat=2))
    elif op == "LayoutTransform":
        pairs = itertools.permutations(("NCHW", "NHWC", "NC1HWC0"), 2)
        yield from (Attrs.of(src_format=source, dst_format=target) for source, target in pairs)
    elif op == "StridedSlice":
        for end in (shape, tuple(max(extent - 1, 1) for extent in extents(operand))):
            yield Attrs.of(begin=(0,) * rank, end=end, strides=(1,) * rank)
    elif op == "Cast":
        yield from (Attrs.of(dst_type=new) for new in ("float32", "float64", "float16", "int32"))


def _instance(rule: Rule, root: Value, inputs: list[Value]) -> Instance | None:
    for found in matches(rule, root.node):
        made = build(rule, found, {}, Builder())
        if made is not None:
            left, right = (Graph("side", tuple(inputs), (value,)) for value in (root, made))
            return Instance(left, right, promise(rule, found, Ranges()), found)
    return None


def extents(type_: TensorType) -> tuple[int, ...]:
    """The shape of a static type."""
    return tuple(dim for dim in type_.shape if isinstance(dim, int))


def wild(type_: TensorType, rng: np.random.Generator) -> np.ndarray:
    """Both signs, exponents over the whole range of the data type, zeros, infinities, NaN, ties."""
    size = int(np.prod(extents(type_)))
    if type_.dtype.name == "bool":
        return rng.integers(0, 2, extents(type_)).astype(bool)
    if type_.dtype.is_integer:
        return (
            rng.choice([0, 1, -1, 2, 7, -9, 2**31 - 1, -(2**31), 12345], size)
            .reshape(extents(type_))
            .astype(type_.dtype.numpy)
        )
    limits = ml_dtypes.finfo(type_.dtype.numpy)
    spread = (
        rng.uniform(1, 2, size)
        * 2.0 ** rng.integers(limits.minexp - 5, limits.maxexp, size)
        * rng.choice([1, -1], size)
    )
    middling = rng.uniform(-8, 8, size)
    special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, float(limits.max), float(limits.tiny)], size)
    with np.errstate(all="ignore"):
        chosen = np.choose(rng.integers(0, 3, size), [spread, middling, special])
        return chosen.reshape(extents(type_)).astype(type_.dtype.numpy)


def extreme(type_: TensorType, rng: np.random.Generator) -> np.ndarray:
    """Finite values near the ends of the range, so that sums and products overflow or vanish."""
    if not type_.dtype.is_float:
        return wild(type_, rng)
    limits = ml_dtypes.finfo(type_.dtype.numpy)
    exponents = rng.choice([limits.maxexp - 1, limits.maxexp - 2, limits.minexp, 0], extents(type_))
    values = rng.uniform(1, 2, extents(type_)) * 2.0**exponents * rng.choice([1, -1], extents(type_))
    return np.clip(values, float(limits.min), float(limits.max)).astype(type_.dtype.numpy)


def tame(type_: TensorType, rng: np.random.Generator) -> np.ndarray:
    """Positive and of like size: inside of every domain that a rule may need."""
    if type_.dtype.is_integer:
        return rng.integers(1, 10, extents(type_)).astype(type_.dtype.numpy)
    if not type_.dtype.is_float:
        return wild(type_, rng)
    return rng.uniform(0.5, 4, extents(type_)).astype(type_.dtype.numpy)


def within(range_: Range, type_: TensorType, rng: np.random.Generator) -> np.ndarray:
    """Values of a range: wild ones where they are in it, its ends, and others in between."""
    drawn = wild(type_, rng)
    if not type_.dtype.is_float:
        return drawn
    limits = ml_dtypes.finfo(type_.dtype.numpy)
    low, high = max(range_.low, float(limits.min)), min(range_.high, float(limits.max))
    between = rng.uniform(max(low, -1e3), min(high, 1e3), drawn.shape)
    ends = rng.choice([range_.low, range_.high, *(() if not range_.nan else (np.nan,))], drawn.shape)
    with np.errstate(all="ignore"):
        inside = (drawn >= range_.low) & (drawn <= range_.high) | (np.isnan(drawn) & range_.nan)
        return np.where(inside, drawn, np.where(rng.random(drawn.shape) < 0.1, ends, between)).astype(drawn.dtype)
