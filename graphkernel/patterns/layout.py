"""Reshape, Transpose, LayoutTransform, BroadcastTo, StridedSlice and Cast: those that do nothing, and those in a row."""

from __future__ import annotations

from collections.abc import Callable

from graphkernel.patterns.language import Attributes, Rewrite, Safety, Term, rewrite, rule
from graphkernel.patterns.match import Match
from graphkernel.patterns.terms import broadcast_to, cast, layout_transform, reshape, strided_slice, transpose
from kernelgen.tensor.types import Attrs, DType, dtype


def to_result_shape(found: Match) -> Attrs:
    """The attributes of a Reshape or BroadcastTo to the shape of the result."""
    return Attrs.of(shape=found.result.shape)


def _is_no_change(found: Match) -> bool:
    return found.type("x") == found.result


def _in_a_row(found: Match) -> bool:
    return found.attributes("inner").str("dst_format") == found.attributes("outer").str("src_format")


def _all(*conditions: Callable[[Match], bool]) -> Callable[[Match], bool]:
    return lambda found: all(condition(found) for condition in conditions)


@rule(safety=Safety.EXACT)
def reshape_to_same(x: Term, a: Attributes) -> Rewrite:
    return rewrite(reshape(x, attributes=a), x, when=_is_no_change)


@rule(safety=Safety.EXACT)
def reshape_of_reshape(x: Term, a: Attributes, b: Attributes) -> Rewrite:
    return rewrite(reshape(reshape(x, attributes=a), attributes=b), reshape(x, attributes=b))


@rule(safety=Safety.EXACT)
def broadcast_to_same(x: Term, a: Attributes) -> Rewrite:
    return rewrite(broadcast_to(x, attributes=a), x, when=_is_no_change)


@rule(safety=Safety.EXACT)
def broadcast_of_broadcast(x: Term, a: Attributes, b: Attributes) -> Rewrite:
    return rewrite(broadcast_to(broadcast_to(x, attributes=a), attributes=b), broadcast_to(x, attributes=b))


@rule(safety=Safety.EXACT)
def transpose_to_same(x: Term, a: Attributes) -> Rewrite:
    def keeps_order(found: Match) -> bool:
        perm = _perm(found, "a")
        return perm == tuple(range(len(perm)))

    return rewrite(transpose(x, attributes=a), x, when=keeps_order)


@rule(safety=Safety.EXACT)
def transpose_of_transpose(x: Term, inner: Attributes, outer: Attributes) -> Rewrite:
    def composed(found: Match) -> Attrs:
        first = _perm(found, "inner")
        return Attrs.of(perm=tuple(first[axis] for axis in _perm(found, "outer")))

    return rewrite(transpose(transpose(x, attributes=inner), attributes=outer), transpose(x, attributes=composed))


@rule(safety=Safety.EXACT)
def transpose_as_reshape(x: Term, a: Attributes) -> Rewrite:
    """Moving axes of extent 1 moves no element."""

    def moves_only_ones(found: Match) -> bool:
        shape = found.type("x").shape
        moved = [axis for axis in _perm(found, "a") if shape[axis] != 1]
        return moved == sorted(moved)

    return rewrite(transpose(x, attributes=a), reshape(x, attributes=to_result_shape), when=moves_only_ones)


@rule(safety=Safety.EXACT)
def layout_and_back(x: Term, inner: Attributes, outer: Attributes) -> Rewrite:
    def returns(found: Match) -> bool:
        return found.attributes("outer").str("dst_format") == found.attributes("inner").str("src_format")

    return rewrite(
        layout_transform(layout_transform(x, attributes=inner), attributes=outer), x, when=_all(_in_a_row, returns)
    )


@rule(safety=Safety.EXACT)
def layout_of_layout(x: Term, inner: Attributes, outer: Attributes) -> Rewrite:
    def direct(found: Match) -> Attrs:
        return found.attributes("outer").with_(src_format=found.attributes("inner").str("src_format"))

    return rewrite(
        layout_transform(layout_transform(x, attributes=inner), attributes=outer),
        layout_transform(x, attributes=direct),
        when=_in_a_row,
    )


@rule(safety=Safety.EXACT)
def slice_of_all(x: Term, a: Attributes) -> Rewrite:
    """A slice that starts at 0, steps by 1 and ends at the extent is the tensor itself."""

    def takes_all(found: Match) -> bool:
        a, operand = found.attributes("a"), found.type("x")
        begins, steps = a.ints("begin"), a.ints("strides", (1,) * operand.rank)
        return found.result.shape == operand.shape and set(begins) <= {0} and set(steps) <= {1}

    return rewrite(strided_slice(x, attributes=a), x, when=takes_all)


@rule(safety=Safety.EXACT)
def cast_to_same(x: Term, a: Attributes) -> Rewrite:
    return rewrite(cast(x, attributes=a), x, when=_is_no_change)


@rule(safety=Safety.EXACT)
def cast_of_widening_cast(x: Term, a: Attributes, b: Attributes) -> Rewrite:
    """A detour over a data type that holds every value of the operand's changes nothing."""

    def detour_is_lossless(found: Match) -> bool:
        return holds_all(dtype(found.attributes("a").str("dst_type")), found.type("x").dtype)

    return rewrite(cast(cast(x, attributes=a), attributes=b), cast(x, attributes=b), when=detour_is_lossless)


def holds_all(wide: DType, narrow: DType) -> bool:
    """True when every value of ``narrow`` is a value of ``wide``: exponent and fraction fit, integers fit the fraction."""
    significand = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
    if wide == narrow:
        return True
    if wide.is_float and narrow.is_float:
        return wide.bits > narrow.bits
    if wide.is_float and narrow.is_integer:
        return narrow.bits <= significand[wide.name]
    return wide.category is narrow.category and wide.bits >= narrow.bits


def _perm(found: Match, name: str) -> tuple[int, ...]:
    rank = found.type("x").rank
    return tuple(axis % rank for axis in found.attributes(name).ints("perm"))
