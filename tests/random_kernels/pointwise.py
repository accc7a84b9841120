"""Steps that append element-wise operators."""

from __future__ import annotations

from kernelgen.errors import TypeRuleError
from kernelgen.tensor.dtypes import BOOL, COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, INT32, Category, DType
from kernelgen.tensor.operators.type_rules import broadcast_shapes
from tests.random_kernels.values import DTYPES, Value, wrapped
from tests.random_kernels.writer import Writer

# name -> the error that an error of 1 grows to, and the bound of the result for an operand of at most LARGEST.
SMOOTH: dict[str, tuple[float, float]] = {
    "Tanh": (1, 1), "Sin": (1, 1), "Cos": (1, 1), "Erf": (1.2, 1), "Erfc": (1.2, 2), "Atan": (1, 1.6), "Asinh": (1, 3),
    "FastGeLU": (1.2, 9), "AddMinValue": (1, 9),
}  # fmt: skip
STEEP: dict[str, tuple[float, float]] = {"Exp": (7.5, 7.5), "Expm1": (7.5, 7.5), "Sinh": (4, 4), "Cosh": (4, 4)}
"""The same for operands of at most 2."""
OF_POSITIVE: dict[str, tuple[float, float]] = {
    "Sqrt": (0.8, 3), "Log": (2, 3), "Rsqrt": (1.5, 1.5), "Reciprocal": (4, 2), "Log1p": (0.7, 3),
}  # fmt: skip
"""The same for operands of at least 0.5."""
OF_SMALL: dict[str, tuple[float, float]] = {
    "Asin": (1.2, 0.6), "ACos": (1.2, 2.2), "Atanh": (1.4, 0.6), "Tan": (1.4, 0.6),
}  # fmt: skip
"""The same for operands in [-0.5, 0.5]."""
SIMPLE = ("Neg", "Abs", "TensorMove", "ZerosLike", "Sign", "Square")
STEPS = ("Sign", "Floor", "Ceil", "Trunc", "Round")
COMPARISONS = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")


def unary(w: Writer) -> None:
    """Operators of one number."""
    x = w.pick(lambda v: v.is_number)
    if x is None:
        return
    x = w.tame(x)
    if not x.dtype.is_float or w.chance():
        _simple(w, x)
    elif x.is_exact and w.chance():
        _step(w, x)
    else:
        _smooth(w, x)


def _simple(w: Writer, x: Value) -> None:
    name = w.one(SIMPLE)
    if name == "Sign" and not x.is_exact:
        return
    square = name == "Square"
    bound = x.bound**2 if square else max(x.bound, 1)
    error = 2 * x.bound * x.error + x.rounding if square else x.error
    w.op(name, (x,), (x.shape, x.dtype), wrapped(bound, x.dtype, signed=name == "Neg"), error)


def smooth(w: Writer) -> None:
    """Transcendental functions, of operands in their range."""
    x = w.pick(lambda v: v.dtype.is_float)
    if x is not None:
        _smooth(w, w.tame(x))


def divide(w: Writer) -> None:
    """Quotients and remainders of integers by constants."""
    x = w.pick(lambda v: v.dtype.is_integer)
    if x is not None:
        y = w.constant(x.dtype, (1, 2, 3))
        name = w.one(_quotients(x))
        w.op(name, (x, y), (broadcast_shapes((x.shape, y.shape)), x.dtype), max(x.bound, 3))


def _smooth(w: Writer, x: Value) -> None:
    name = w.one((*SMOOTH, *STEEP, *OF_POSITIVE, *OF_SMALL, "Acosh"))
    if name in STEEP:
        x = _within(w, x, 2)
    elif name in OF_POSITIVE:
        x = w.positive(x)
    elif name in OF_SMALL:
        x = _within(w, x, 0.5)
    elif name == "Acosh":
        one = Value(w.constant(x.dtype, (1,)).tensor, 1)
        x = w.positive(x)
        x = w.op("Add", (x, one), (x.shape, x.dtype), x.bound + 1, x.error + x.rounding)
    slope, bound = (SMOOTH | STEEP | OF_POSITIVE | OF_SMALL | {"Acosh": (1, 3.1)})[name]
    name = "Acos" if name == "ACos" and w.chance(4) else name
    w.op(name, (x,), (x.shape, x.dtype), bound, slope * x.error + x.rounding)


def step(w: Writer) -> None:
    """Floor and its kin, of exact floats."""
    x = w.pick(lambda v: v.dtype.is_float and v.is_exact)
    if x is not None:
        _step(w, w.tame(x))


def _step(w: Writer, x: Value) -> None:
    name = w.one(STEPS)
    kind = INT32 if name == "Round" and w.chance() and not w.special else x.dtype
    w.op(name, (x,), (x.shape, kind), x.bound + 1)


def _within(w: Writer, x: Value, limit: float) -> Value:
    """Clipped to [-limit, limit]."""
    for name, end in (("Minimum", limit), ("Maximum", -limit)):
        x = w.op(name, (x, w.constant(x.dtype, (end,))), (x.shape, x.dtype), x.bound, x.error)
    return Value(x.tensor, limit, x.error)


def binary(w: Writer) -> None:
    """Arithmetic of two numbers."""
    x = w.pick(lambda v: v.is_number)
    if x is None:
        return
    y = w.partner(x)
    x, y = w.tame(x), w.tame(y)
    if w.chance():
        x, y = y, x
    names = ["Add", "Sub", "Mul", "Maximum", "Minimum"]
    if y.tensor.value is not None and y.bound >= 0.5:
        names += ["RealDiv", "Div"] if x.dtype.is_float else _quotients(x)
    name = w.one(names)
    bound, error = {
        "Mul": (x.bound * y.bound, x.bound * y.error + y.bound * x.error),
        **dict.fromkeys(("RealDiv", "Div"), (2 * x.bound, 2 * x.error)),
        **dict.fromkeys(("Maximum", "Minimum"), (max(x.bound, y.bound), max(x.error, y.error))),
    }.get(name, (x.bound + y.bound, x.error + y.error))
    if name not in ("Maximum", "Minimum"):
        error += x.rounding * max(bound, 1)
    shape = broadcast_shapes((x.shape, y.shape))
    w.op(name, (x, y), (shape, x.dtype), wrapped(bound, x.dtype, signed=name == "Sub"), error)


def _quotients(x: Value) -> list[str]:
    """Div goes through float64, whose largest numbers do not fit an integer of 64 bits."""
    return ["FloorDiv", "FloorMod", "Mod", *([] if x.dtype.itemsize == 8 and x.bound > 2**52 else ["Div"])]


def power(w: Writer) -> None:
    """Pow of a positive base, Atan2 beside a positive denominator, a quotient."""
    x = w.pick(lambda v: v.dtype.is_float)
    if x is None:
        return
    base = w.positive(w.tame(x, 3))
    name = w.one(("Pow", "Atan2", "RealDiv"))
    if name == "Pow":
        exponent = w.constant(x.dtype, (2, 0.5, -1, 3, 1.5))
        steepness = 12 * max(base.bound, 2) ** 2
        bound = max(base.bound, 2) ** 3
        w.op(name, (base, exponent), (base.shape, x.dtype), bound, steepness * base.error + bound * base.rounding)
        return
    y = w.tame(w.partner(base))
    error = 2 * y.error + (4 * max(y.bound, 1)) * base.error + 2 * y.rounding + base.rounding
    shape = broadcast_shapes((y.shape, base.shape))
    w.op(name, (y, base), (shape, x.dtype), 2 * max(y.bound, 1.6), error)


def add_n(w: Writer) -> None:
    """AddN of values of one shape."""
    x = w.pick(lambda v: v.dtype in (FLOAT32, FLOAT64, INT32) and v.bound <= 8)
    if x is None:
        return
    others = [v for v in w.values if v.shape == x.shape and v.dtype == x.dtype and v.bound <= 8][-4:]
    operands = [x, *others]
    bound, error = sum(v.bound for v in operands), sum(v.error for v in operands)
    w.op("AddN", operands, (x.shape, x.dtype), bound, error + x.rounding * bound)


def compare(w: Writer) -> None:
    """Comparisons and SelectGT and its kin, of exact values."""
    x = w.pick(lambda v: v.is_number and v.is_exact)
    if x is None:
        return
    y = w.partner(x, exact=True)
    shape = broadcast_shapes((x.shape, y.shape))
    if w.chance() and w.is_finite(x):
        name = w.one(("SelectGT", "SelectLT", "SelectGE", "SelectLE"))
        w.op(name, (x, y, x, y), (shape, x.dtype), max(x.bound, y.bound))
    else:
        w.op(w.one(COMPARISONS), (x, y), (shape, BOOL), 1)


def logical(w: Writer) -> None:
    """Operators of truth values, and tests of floats."""
    x = w.pick(lambda v: v.dtype == BOOL)
    if x is None or w.chance(5):
        y = w.pick(lambda v: v.dtype.is_float)
        if y is not None:
            w.op(w.one(("IsNan", "IsFinite", "IsInf")), (w.tame(y),), (y.shape, BOOL), 1)
        return
    if w.chance():
        w.op("LogicalNot", (x,), (x.shape, BOOL), 1)
        return
    y = w.partner(x)
    w.op(w.one(("LogicalAnd", "LogicalOr")), (x, y), (broadcast_shapes((x.shape, y.shape)), BOOL), 1)


def select(w: Writer) -> None:
    """Select by a truth value."""
    condition = w.pick(lambda v: v.dtype == BOOL)
    x = w.pick(lambda v: not v.is_complex)
    if condition is None or x is None:
        return
    y = w.partner(x)
    try:
        shape = broadcast_shapes((condition.shape, x.shape, y.shape))
    except TypeRuleError:
        return
    if w.fits(shape):
        w.op("Select", (condition, x, y), (shape, x.dtype), max(x.bound, y.bound), max(x.error, y.error))


def cast(w: Writer) -> None:
    """Between all data types but complex ones."""
    target = w.one(DTYPES)
    x = w.pick(lambda v: not v.is_complex and ((v.dtype.is_float and target.is_float) or v.is_exact))
    if x is None:
        return
    if x.dtype.is_float and target.is_integer and w.special:
        return
    if x.dtype.is_integer and target.itemsize == 2 and target.is_float:
        x = w.clipped(x)
    elif target != BOOL:
        x = w.tame(x)
    if target.category is Category.UINT and x.dtype.is_float:
        x = w.op("Abs", (x,), (x.shape, x.dtype), x.bound, x.error)
    bound = 1.0 if target == BOOL else wrapped(x.bound, target, signed=not _is_unsigned(x.dtype))
    # A large integer as a float is rounded, but in the same way everywhere.
    w.op("Cast", (x,), (x.shape, target), bound, x.error, dst_type=target.name)


def _is_unsigned(kind: DType) -> bool:
    return kind.category is Category.UINT or kind == BOOL


def complex_number(w: Writer) -> None:
    """Complex numbers: made of two reals, computed with, compared, taken apart."""
    x = w.pick(lambda v: v.is_complex)
    if x is None or w.chance(4):
        _made_complex(w)
        return
    w.one(
        (
            _parts,
            _parts,
            _complex_binary,
            _complex_binary,
            _complex_quotient,
            _complex_test,
            _complex_cast,
            _complex_sum,
        )
    )(w, x)


def _parts(w: Writer, x: Value) -> None:
    w.op(w.one(("CReal", "CImag")), (x,), (x.shape, COMPLEX_PARTS[x.dtype]), x.bound, x.error)


def _complex_binary(w: Writer, x: Value) -> None:
    y = w.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape) or x
    name = w.one(("Add", "Sub", "Mul", "Square", "Neg"))
    if name == "Neg":
        w.op(name, (x,), (x.shape, x.dtype), x.bound, x.error)
        return
    y = x if name == "Square" else y
    if name in ("Mul", "Square"):
        bound, error = x.bound * y.bound, x.bound * y.error + y.bound * x.error
    else:
        bound, error = x.bound + y.bound, x.error + y.error
    operands = (x,) if name == "Square" else (x, y)
    if bound < 1000:
        w.op(name, operands, (x.shape, x.dtype), bound, error + x.rounding * max(y.bound, 1))


def _complex_quotient(w: Writer, x: Value) -> None:
    """Over a number whose real part is at least 0.5."""
    real = w.pick(lambda v: v.dtype == COMPLEX_PARTS[x.dtype])
    if real is None or x.bound > 1000:
        return
    half = w.positive(w.tame(real))
    y = w.op("Complex", (half, half), (half.shape, x.dtype), 1.5 * half.bound, 1.5 * half.error)
    if w.chance():
        w.op("Reciprocal", (y,), (y.shape, y.dtype), 2, 6 * y.error + y.rounding)
        return
    try:
        shape = broadcast_shapes((x.shape, y.shape))
    except TypeRuleError:
        return
    if w.fits(shape):
        error = 2 * x.error + 4 * max(x.bound, 1) * y.error + 4 * x.rounding * max(y.bound, 1)
        w.op(w.one(("RealDiv", "Div")), (x, y), (shape, x.dtype), 2 * max(x.bound, 1), error)


def _complex_test(w: Writer, x: Value) -> None:
    name = w.one(("IsNan", "IsInf", "IsFinite", "Equal", "NotEqual"))
    if name.startswith("Is"):
        w.op(name, (x,), (x.shape, BOOL), 1)
    elif x.is_exact:
        y = w.pick(lambda v: (v.dtype, v.shape) == (x.dtype, x.shape) and v.is_exact) or x
        w.op(name, (x, y), (x.shape, BOOL), 1)


def _complex_cast(w: Writer, x: Value) -> None:
    """To the other precision, to a real number, or from a real number."""
    target = w.one((COMPLEX64, COMPLEX128, FLOAT32, FLOAT64))
    real = w.pick(lambda v: v.dtype in (FLOAT32, FLOAT64, INT32) and v.bound <= 8)
    if target.category is Category.COMPLEX and real is not None and w.chance():
        x = real
    w.op("Cast", (x,), (x.shape, target), x.bound, x.error + x.rounding * (x.dtype != target), dst_type=target.name)


def _complex_sum(w: Writer, x: Value) -> None:
    """ReduceSum and CumSum."""
    if not x.shape or (bound := w.size(x.shape) * x.bound) > 1000:
        return
    axis = w.number(0, len(x.shape) - 1)
    error = w.size(x.shape) * x.error + x.rounding * max(bound, 1)
    if w.chance():
        w.op(
            "CumSum",
            (x,),
            (x.shape, x.dtype),
            max(bound, 1),
            error,
            axis=axis,
            exclusive=w.chance(),
            reverse=w.chance(),
        )
        return
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    w.op("ReduceSum", (x,), (shape, x.dtype), max(bound, 1), error, axis=(axis,), keep_dims=False)


COMPLEX_PARTS: dict[DType, DType] = {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}


def _made_complex(w: Writer) -> None:
    x = w.pick(lambda v: v.dtype in (FLOAT32, FLOAT64))
    if x is None:
        return
    x = w.tame(x)
    y = w.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape and v.bound <= 8) or x
    kind = COMPLEX64 if x.dtype == FLOAT32 else COMPLEX128
    w.op("Complex", (x, y), (x.shape, kind), 1.5 * max(x.bound, y.bound), max(x.error, y.error))
