"""Type rules: from operand types and attributes to result types.

A rule raises :class:`TypeRuleError` with what it expected; :func:`checked` puts the operator and its operands in front.
Equal symbols are equal extents; two different symbols never broadcast, since they could differ at run time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kernelgen.errors import TypeRuleError, nearest
from kernelgen.tensor.operator import Application, InferRule
from kernelgen.tensor.types import Attrs, Dim, DType, Shape, Sym, TensorType, dtype, evaluate

Accepts = Callable[[DType], bool]
Types = tuple[TensorType, ...]

BOOL = dtype("bool")


def any_dtype(_: DType) -> bool:
    """Every data type."""
    return True


def number(d: DType) -> bool:
    """Everything that can be added: all but bool."""
    return d != BOOL


def real(d: DType) -> bool:
    """Floats and integers."""
    return d.is_float or d.is_integer


def floating(d: DType) -> bool:
    """Floats."""
    return d.is_float


def integer(d: DType) -> bool:
    """Signed and unsigned integers."""
    return d.is_integer


def boolean(d: DType) -> bool:
    """Bool only."""
    return d == BOOL


_EXPECTATIONS: dict[Accepts, str] = {
    any_dtype: "any data type",
    number: "a number",
    real: "floats or integers",
    floating: "floats",
    integer: "integers",
    boolean: "bool",
}

KEEP_BASIC = frozenset(
    {
        "keep_basic",
        "skip",
        "inplace_group",
        "inplace_algo",
        "inplace_output_index",
        "aggregate",
        "aggregate_input_index",
    }
)
"""Attributes that any operator may have; they say of one application that no kernel may hold it."""

BY_ROWS = "by_rows"
"""The attribute of a fused node whose rows do not depend on each other: its kernel takes any number of them."""

OWN_KERNEL = "own_kernel"
"""An attribute that any operator may have; it says of one application that it is worth a kernel even where nothing joins it."""


def checked(
    name: str, arity: int | None, attributes: tuple[str, ...], rule: InferRule, takes_opaque: bool = False
) -> InferRule:
    """The rule with operand count and attribute names checked first and a message that names operator and operands."""

    known = KEEP_BASIC.union(attributes, (OWN_KERNEL,))

    def infer(types: Types, attrs: Attrs) -> Types:
        try:
            if arity is not None and len(types) != arity:
                raise TypeRuleError(f"takes {arity} operand{'' if arity == 1 else 's'}, got {len(types)}")
            for attribute, _ in attrs.items_:
                if attribute not in known:
                    hint = nearest(attribute, attributes)
                    raise TypeRuleError(
                        f"has no attribute {attribute!r}{hint}; it has: {', '.join(attributes) or 'none'}"
                    )
            found = rule(types, attrs)
            if not takes_opaque and any([type_.dtype.is_opaque for type_ in (*types, *found)]):
                raise TypeRuleError("takes and gives numbers; others are for operators of the host library")
            return found
        except (TypeError, KeyError, ValueError) as error:
            message = error.args[0] if error.args else str(error)
            raise TypeRuleError(f"{name}({', '.join(map(str, types))}): {message}") from error

    return infer


def expect_dtype(accepts: Accepts, *types: TensorType) -> DType:
    """The data type that all operands share and that is accepted. Raises TypeRuleError where they differ, or it is not."""
    first = types[0].dtype
    for type_ in types:
        if type_.dtype is not first and type_.dtype != first:
            raise TypeRuleError(f"operands must have one data type, got {first} and {type_.dtype}; Cast one of them")
    if not accepts(first):
        raise TypeRuleError(f"expects {_EXPECTATIONS[accepts]}, got {first}")
    return first


def broadcast_shapes(shapes: Iterable[Shape]) -> Shape:
    """Numpy's broadcasting for dims that may be symbols."""
    result: Shape = ()
    for shape in shapes:
        if not shape or shape == result:
            continue
        if not result:
            result = shape
            continue
        rank = max(len(result), len(shape))
        left, right = (1,) * (rank - len(result)) + result, (1,) * (rank - len(shape)) + shape
        result = tuple(_broadcast_dim(a, b, result, shape) for a, b in zip(left, right, strict=True))
    return result


def _broadcast_dim(a: Dim, b: Dim, left: Shape, right: Shape) -> Dim:
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    why = "could differ at run time" if isinstance(a, Sym) or isinstance(b, Sym) else "differ and neither is 1"
    raise TypeRuleError(f"{shape_text(left)} and {shape_text(right)} do not broadcast: extents {a} and {b} {why}")


def broadcasting(accepts: Accepts, result: DType | None = None) -> InferRule:
    """Element-wise over broadcast operands of one data type; the result's type is theirs or the given one."""

    def rule(types: Types, attrs: Attrs) -> Types:
        if not types:
            raise TypeRuleError("needs at least one operand")
        shared = expect_dtype(accepts, *types)
        if result is None and types.count(types[0]) == len(types):
            return (types[0],)
        shape = broadcast_shapes(type_.shape for type_ in types)
        of, layout = result or shared, _shared_layout(types)
        for type_ in types:  # one object for equal types: tables find it by identity
            if type_.shape == shape and type_.dtype is of and type_.layout == layout:
                return (type_,)
        return (TensorType(shape, of, layout),)

    return rule


def _shared_layout(types: Types) -> str:
    """The layout of the operands that have the result's rank; operands that are broadcast in have no say."""
    first = types[0].layout
    if all([type_.layout == first for type_ in types]):
        return first
    rank = max(type_.rank for type_ in types)
    layouts = {type_.layout for type_ in types if type_.rank == rank}
    if len(layouts) > 1:
        raise TypeRuleError(f"operands must have one layout, got {' and '.join(sorted(layouts))}")
    return layouts.pop()


def axis_of(axis: int, rank: int) -> int:
    """A non-negative axis; negative ones count from the end. Raises TypeRuleError where the rank has no such axis."""
    if not -rank <= axis < rank:
        raise TypeRuleError(f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def axes_of(axes: Sequence[int], rank: int, *, empty_means_all: bool = True) -> tuple[int, ...]:
    """Sorted non-negative axes; no axes means all of them (MindSpore's ``axis=()``).

    Raises TypeRuleError where one is named twice.
    """
    if not axes and empty_means_all:
        return tuple(range(rank))
    resolved = sorted(axis_of(axis, rank) for axis in axes)
    if len(set(resolved)) != len(resolved):
        raise TypeRuleError(f"axes {tuple(axes)} name one axis twice")
    return tuple(resolved)


def normal_axis(axis: int, rank: int) -> int:
    """The axis counted from the front; that of a scalar is 0, for AKG writes scalars as one element as well.

    Raises TypeRuleError when there is none of that number.
    """
    return axis_of(axis, max(rank, 1))


def single_axis(node: Application, default: int) -> int:
    """The one axis of operand 0 that ``axis`` names, in a list or not, else ``default``; counted from the front."""
    return normal_axis(node.attrs.ints("axis", (default,))[0], len(node.args[0].shape))


def reduced_axes(node: Application) -> tuple[int, ...]:
    """The dims that a reduction removes, sorted and non-negative; an absent or empty ``axis`` means all."""
    rank = len(node.args[0].shape)
    axes = node.attrs.ints("axis", ())
    return tuple(sorted({normal_axis(a, rank) for a in axes})) if axes else tuple(range(rank))


def written_reduction(node: Application) -> Attrs:
    """The attributes of a reduction with all axes that it reduces, and with ``keep_dims``: (0, 2) for (-1, 0) of rank 3."""
    return node.attrs.with_(axis=reduced_axes(node), keep_dims=node.attrs.bool("keep_dims", False))


def written_axis(node: Application) -> Attrs:
    """The attributes of any operator but a reduction, its one axis, where it has one, counted from the front."""
    counts = node.op.traits.axis_of
    axes = node.attrs.ints("axis") if counts and "axis" in node.attrs else ()
    if len(axes) != 1:
        return node.attrs
    counted = node.args[0] if counts == "operand" else node.outs[0]
    return node.attrs.with_(axis=normal_axis(axes[0], len(counted.shape)))


def reduced_shape(shape: Shape, axes: Sequence[int], keep_dims: bool) -> Shape:
    """The ``shape`` after reducing sorted non-negative ``axes``, which ``keep_dims`` leaves as 1."""
    if keep_dims:
        return tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
    return tuple(dim for axis, dim in enumerate(shape) if axis not in axes)


def static(dim: Dim, what: str) -> int:
    """The dim as an int; symbols are refused. Raises TypeRuleError for a symbol."""
    if isinstance(dim, Sym):
        raise TypeRuleError(f"{what} must be static, got {dim}")
    return dim


def surely_nonnegative(dim: Dim) -> bool:
    """True when the dim is >= 0 for all symbols >= 1; False when that is not so or not seen at once."""
    if isinstance(dim, int):
        return dim >= 0
    grows = all(coefficient > 0 for symbols, coefficient in dim.terms if symbols)
    return grows and evaluate(dim, dict.fromkeys(dim.symbols, 1)) >= 0


def shape_text(shape: Iterable[object]) -> str:
    """``[N, 4]``."""
    return f"[{', '.join(map(str, shape))}]"
