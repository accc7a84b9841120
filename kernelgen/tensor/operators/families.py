"""Constructors of operator declarations: one call declares an operator of a family.

Every meaning computes float16 and bfloat16 in float32 and rounds once at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.algebra import ElementRule, ScalarRule
from kernelgen.tensor.operator import PLAIN, Attribute, InferRule, Kind, Meaning, Operator, Traits
from kernelgen.tensor.operators.attributes import axes, declared, flag
from kernelgen.tensor.operators.type_rules import (
    BOOL,
    Accepts,
    axes_of,
    broadcasting,
    checked,
    expect_dtype,
    floating,
    number,
    real,
    reduced_shape,
)
from kernelgen.tensor.types import Attrs, DType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]
ArrayFunction = Callable[..., Any]

_FLOAT16 = np.dtype(np.float16)


def declare(
    name: str,
    kind: Kind,
    arity: int | None,
    rule: InferRule,
    meaning: Meaning,
    *,
    attributes: Sequence[str | Attribute] = (),
    indices: tuple[int, ...] = (),
    commutative: bool = False,
    composite: bool = False,
    doc: str | None = None,
    takes_opaque: bool = False,
    traits: Traits = PLAIN,
    onnx: str = "",
    scalar: ScalarRule | None = None,
    element: ElementRule | None = None,
) -> Operator:
    """An operator from a plain rule: operand count and attribute names are checked around it.

    What its meaning says of itself is its documentation, unless ``doc`` is given.
    Only those of a library, which ``takes_opaque`` marks, are given what is no number.
    Infinities and NaN are ordinary results, so the meaning computes without numpy's floating-point warnings.
    """
    typed = declared(attributes)
    infer = checked(name, arity, tuple(attribute.name for attribute in typed), rule, takes_opaque)
    quiet = np.errstate(all="ignore")(meaning)
    said = " ".join((meaning.__doc__ or "").split()) if doc is None else doc
    return Operator(
        name, kind, arity, infer, quiet, commutative, composite, said, typed, indices, traits, onnx, scalar, element
    )


def unary(
    name: str,
    function: ArrayFunction,
    accepts: Accepts = floating,
    *,
    composite: bool = False,
    doc: str = "",
    traits: Traits = PLAIN,
    onnx: str = "",
    scalar: ScalarRule | None = None,
) -> Operator:
    """One operand, one result of the same type.

    ``function`` is the numpy meaning, for arrays of the operand's data type (float32 for narrower floats), ``accepts`` the
    data types. ``scalar(f, x)`` says the same of one element, in functions ``f.call(name, *values)``.
    """
    return declare(
        name,
        Kind.ELEMWISE,
        1,
        broadcasting(accepts),
        elementwise_meaning(function),
        composite=composite,
        doc=doc,
        traits=traits,
        onnx=onnx,
        scalar=_without_attributes(scalar),
    )


def binary(
    name: str,
    function: ArrayFunction,
    accepts: Accepts = number,
    *,
    commutative: bool = False,
    composite: bool = False,
    doc: str = "",
    traits: Traits = PLAIN,
    onnx: str = "",
    scalar: ScalarRule | None = None,
) -> Operator:
    """Two operands that broadcast, a result of their data type; ``function``, ``accepts`` and ``scalar(f, x, y)`` as in
    :func:`unary`.
    """
    return declare(
        name,
        Kind.ELEMWISE,
        2,
        broadcasting(accepts),
        elementwise_meaning(function),
        commutative=commutative,
        composite=composite,
        doc=doc,
        traits=traits,
        onnx=onnx,
        scalar=_without_attributes(scalar),
    )


def predicate(
    name: str,
    arity: int,
    function: ArrayFunction,
    accepts: Accepts = real,
    *,
    commutative: bool = False,
    doc: str = "",
    onnx: str = "",
) -> Operator:
    """Operands that broadcast (so many as ``arity``), a bool result: comparisons, logic and classification.

    ``name`` is MindSpore's, ``function`` the numpy meaning, ``accepts`` the data types, ``commutative`` says that
    operands may change places, ``doc`` is a sentence, ``onnx`` the name of the same operator there.
    """
    return declare(
        name,
        Kind.ELEMWISE,
        arity,
        broadcasting(accepts, BOOL),
        result_bool(function),
        commutative=commutative,
        doc=doc,
        traits=Traits(predicate=True),
        onnx=onnx,
    )


def reduction(
    name: str,
    function: ArrayFunction,
    accepts: Accepts = number,
    *,
    composite: bool = False,
    doc: str = "",
    onnx: str = "",
) -> Operator:
    """Reduces the axes ``axis`` (none means all) of data types that ``accepts`` takes. Sums of up to 32-bit floats
    accumulate in float64.

    ``name`` is MindSpore's, ``function(array, axis=, keepdims=)`` the numpy meaning, ``onnx`` the name of the same
    operator there; a ``composite`` one is no operator of kernels. ``doc`` is a sentence.
    """

    def rule(types: tuple[TensorType, ...], attrs: Attrs) -> tuple[TensorType, ...]:
        (x,) = types
        expect_dtype(accepts, x)
        reduced = axes_of(attrs.ints("axis", ()), x.rank)
        return (TensorType(reduced_shape(x.shape, reduced, attrs.bool("keep_dims", False)), x.dtype, x.layout),)

    def meaning(x: Array, *, attrs: Attrs) -> Array:
        reduced = axes_of(attrs.ints("axis", ()), x.ndim)
        exact = x.astype(np.float64) if is_floating(x) else x
        result = function(exact, axis=reduced, keepdims=attrs.bool("keep_dims", False))
        return array_of(result).astype(x.dtype)

    traits = Traits(attribute_operands={1: "axis"})
    return declare(
        name,
        Kind.REDUCE,
        1,
        rule,
        meaning,
        attributes=(axes(), flag("keep_dims")),
        composite=composite,
        doc=doc,
        traits=traits,
        onnx=onnx,
    )


def _without_attributes(rule: ScalarRule | None) -> ScalarRule | None:
    return None if rule is None else lambda f, *operands, attrs: rule(f, *operands)


def elementwise_meaning(function: ArrayFunction) -> Meaning:
    """The meaning of an operator without attributes whose results have the operands' data type."""

    @wraps(function, assigned=("__doc__",))
    def meaning(*arrays: Array, attrs: Attrs) -> Array:
        return rounded(function)(*arrays)

    return meaning


def result_bool(function: ArrayFunction) -> Meaning:
    """The meaning of a predicate."""

    @wraps(function, assigned=("__doc__",))
    def meaning(*arrays: Array, attrs: Attrs) -> Array:
        return array_of(function(*map(widened, arrays))).astype(np.bool_, copy=False)

    return meaning


def rounded(function: ArrayFunction) -> ArrayFunction:
    """Computes in float32 where the first array is narrower, and rounds the result to its data type."""

    def compute(*arrays: Array) -> Array:
        return array_of(function(*map(widened, arrays))).astype(arrays[0].dtype, copy=False)

    return compute


def array_of(result: Any) -> Array:
    """A scalar of any kind as an array; arrays, of other libraries too, as they are."""
    if isinstance(result, np.generic) or not hasattr(result, "astype"):
        return np.asarray(result)
    return result


def widened(x: Array) -> Array:
    """float16 and bfloat16 as float32, everything else as it is."""
    return x.astype(np.float32) if is_floating(x) and x.dtype.itemsize == _FLOAT16.itemsize else x


def in_float64(x: Array) -> Array:
    """Floats as float64, in which sums hardly round; everything else as it is."""
    return x.astype(np.float64) if is_floating(x) else x


def is_floating(x: Array) -> bool:
    """True for real floats, bfloat16 included (which numpy itself does not know as a float)."""
    return bool(np.issubdtype(x.dtype, np.floating)) or x.dtype.name == "bfloat16"


def scalar_of(attrs: Attrs, name: str, of: DType, default: float | None = None) -> int | float:
    """The number ``name`` among ``attrs`` (else ``default``) as an element of the data type ``of``; integers take
    whole numbers in their range only.

    Raises TypeRuleError for others.
    """
    value = attrs.number(name, default)
    if not of.is_integer:
        return float(value)
    limits = np.iinfo(of.numpy)
    if not limits.min <= value <= limits.max or value != int(value):
        raise TypeRuleError(f"{name} must be a whole number that {of} can hold, got {value}")
    return int(value)
