"""Questions about a whole tensor, answered by one number."""

from __future__ import annotations

import numpy as np

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.operator import Kind
from kernelgen.tensor.operators.attributes import data_type
from kernelgen.tensor.operators.families import Array, declare, widened
from kernelgen.tensor.operators.type_rules import expect_dtype, floating
from kernelgen.tensor.types import Attrs, DType, TensorType, dtype

Types = tuple[TensorType, ...]

FLOAT32 = dtype("float32")


def _answer(attrs: Attrs) -> DType:
    return dtype(attrs.str("dst_type", FLOAT32.name))


def _elem_any_type(types: Types, attrs: Attrs) -> Types:
    (x,) = types
    if not (x.dtype.is_float or x.dtype.is_integer or x.dtype.name == "bool"):
        raise TypeRuleError(f"expects bool or a number that can be compared, got {x.dtype}")
    return (TensorType((1,), _answer(attrs)),)


def _elem_any(x: Array, *, attrs: Attrs) -> Array:
    """[1] where any element is greater than 0, else [0]; the data type is dst_type, by default float32."""
    return np.asarray([(widened(x) > 0).any()]).astype(_answer(attrs).numpy)


def _float_status_type(types: Types, attrs: Attrs) -> Types:
    expect_dtype(floating, *types)
    return (TensorType((1,), FLOAT32),)


def _float_status(x: Array, *, attrs: Attrs) -> Array:
    """[0.0] where all elements are finite, else [1.0]."""
    return np.asarray([not np.isfinite(widened(x)).all()]).astype(np.float32)


ELEM_ANY = declare("ElemAny", Kind.OPAQUE, 1, _elem_any_type, _elem_any, attributes=(data_type("dst_type", None),))
FLOAT_STATUS = declare("FloatStatus", Kind.OPAQUE, 1, _float_status_type, _float_status, composite=True)
