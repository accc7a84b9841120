"""The fixed subset of AscendC: every call with the names, kinds and C++ types of its arguments.

Printer, reader, builder and simulator read this table; a call that is not here does not exist. The tests hold it against
declarations that were written from the manual alone, and have a C++ compiler read what is printed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from kernelgen.ascendc.errors import AscendError
from kernelgen.ascendc.instructions import GATHER, SELECT, TRANSPOSE, Argument, Call, Enumerator, Struct, TensorRef

ELEMENT = "T"
"""The type parameter of most prototypes: what the elements of the tensors are."""


def _fields(dtype: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, dtype)


BYTE, SHORT, WORD, TRUTH = "uint8_t", "uint16_t", "uint32_t", "bool"
STRUCTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "BinaryRepeatParams": _fields(
            BYTE, "dst_block", "first_block", "second_block", "dst_repeat", "first_repeat", "second_repeat"
        ),
        "UnaryRepeatParams": _fields(SHORT, "dst_block", "src_block") | _fields(BYTE, "dst_repeat", "src_repeat"),
        "BrcbRepeatParams": _fields(SHORT, "dst_block", "dst_repeat"),
        "CopyRepeatParams": _fields(SHORT, "dst_block", "src_block", "dst_repeat", "src_repeat"),
        "DataCopyParams": _fields(SHORT, "count", "length", "src_gap", "dst_gap"),
        "DataCopyExtParams": _fields(SHORT, "count") | _fields(WORD, "length", "src_gap", "dst_gap", "reserved"),
        "DataCopyPadExtParams": _fields(TRUTH, "padded") | _fields(BYTE, "left", "right") | _fields(ELEMENT, "value"),
        "Nd2NzParams": _fields(
            SHORT, "matrices", "rows", "columns", "src_matrix_stride", "src_row_stride", "dst_column_stride",
            "dst_row_stride", "dst_matrix_stride",
        ),
        "InitConstValueParams": _fields(SHORT, "repeats", "length", "gap") | _fields(ELEMENT, "value"),
        "LoadData2DParams": {
            "start": SHORT, "repeats": BYTE, "src_stride": SHORT, "sid": BYTE, "dst_gap": SHORT, "transpose": TRUTH,
            "address_mode": BYTE,
        },
        "LoadData3DParamsV2": {
            "pads": "uint8_t[]",
            **_fields(SHORT, "height", "width", "channels", "columns", "rows", "first_column", "first_row"),
            **_fields(BYTE, "stride_w", "stride_h", "filter_w", "filter_h", "dilation_w", "dilation_h"),
            **_fields(TRUTH, "transpose", "small_k"), "pad_value": ELEMENT,
        },
        "MmadParams": _fields(SHORT, "m", "n", "k") | {"unit_flag": BYTE, "from_bias": TRUTH, "initial": TRUTH},
        "FixpipeParamsV220": {
            **_fields(SHORT, "columns", "rows", "src_stride"), "dst_stride": WORD, "relu": TRUTH,
            "quantise": "QuantMode_t", "scale": "int64_t",
            **_fields(SHORT, "matrices", "src_matrix_stride", "dst_matrix_stride"), "unit_flag": BYTE,
        },
    }
)  # fmt: skip
"""Struct of parameters -> the C++ types of a constructor's parameters by their names, which are ours, in order."""

TEMPLATED = frozenset(name for name, fields in STRUCTS.items() if ELEMENT in fields.values())
"""Structs that are templates: ``DataCopyPadExtParams<float>{...}``."""

WRITE, READ = "write", "read"


@dataclass(frozen=True)
class Slot:
    """One argument. ``kind`` is tensor, scalar, mask, a struct's name or an enumeration's; ``role`` is for tensors.

    ``type`` is the C++ type of a scalar, of a mask that is a number, and of a tensor's elements. A type parameter of the
    prototype (``T``) is what the elements of the tensors with that parameter are, exactly: C++ deduces it from each.
    """

    name: str
    kind: str
    role: str = ""
    type: str = ELEMENT


@dataclass(frozen=True)
class Form:
    """One prototype: its group (how it is executed), its variant (count, repeat or struct) and its arguments."""

    operation: str
    group: str
    variant: str
    slots: tuple[Slot, ...]
    templates: int = 0

    @property
    def signature(self) -> tuple[str | int, ...]:
        """What tells the prototype from all others: operation, number of template arguments, kinds of arguments."""
        return (
            self.operation,
            self.templates,
            *("scalar" if slot.kind == "mask" else slot.kind for slot in self.slots),
        )

    def position(self, name: str) -> int:
        """Where the argument of that name stands."""
        return next(at for at, slot in enumerate(self.slots) if slot.name == name)


def _kind(argument: Argument) -> str:
    """The kind that an argument has in a signature."""
    if isinstance(argument, TensorRef):
        return "tensor"
    if isinstance(argument, Struct):
        return argument.name
    return argument.name.partition("::")[0] if isinstance(argument, Enumerator) else "scalar"


DST = Slot("dst", "tensor", WRITE)
SRC = Slot("src", "tensor", READ)
FIRST, SECOND = Slot("first", "tensor", READ), Slot("second", "tensor", READ)
SCALAR = Slot("scalar", "scalar")
BINARY, UNARY = Slot("strides", "BinaryRepeatParams"), Slot("strides", "UnaryRepeatParams")
BINARIES = ("Add", "Sub", "Mul", "Div", "Max", "Min", "And", "Or")
UNARIES = ("Exp", "Ln", "Abs", "Reciprocal", "Sqrt", "Rsqrt", "Not", "Relu")
SCALARS = ("Adds", "Muls", "Maxs", "Mins", "ShiftLeft", "ShiftRight", "LeakyRelu")
REDUCES = ("Sum", "Max", "Min")


def _number(name: str, dtype: str) -> Slot:
    return Slot(name, "scalar", type=dtype)


MASK, REPEATS = Slot("mask", "mask", type="uint64_t"), _number("repeats", BYTE)
WIDE_MASK, WIDE_REPEATS = Slot("mask", "mask", type="int32_t"), _number("repeats", "int32_t")
REDUCE_STRIDES = tuple(_number(name, "int32_t") for name in ("dst_repeat", "src_block", "src_repeat"))


def _both(operation: str, group: str, slots: tuple[Slot, ...], strides: Slot, count: str = "int32_t") -> Iterator[Form]:
    """The count form and the repeat form of a vector call."""
    yield Form(operation, group, "count", (*slots, _number("count", count)))
    yield Form(operation, group, "repeat", (*slots, MASK, REPEATS, strides))


def _vector_forms() -> Iterator[Form]:
    for name in BINARIES:
        yield from _both(name, "binary", (DST, FIRST, SECOND), BINARY)
    for name in UNARIES:
        yield from _both(name, "unary", (DST, SRC), UNARY)
    for name in SCALARS:
        yield from _both(name, "scalar", (DST, SRC, SCALAR), UNARY)
    yield from _choosing_forms()
    yield Form("Duplicate", "duplicate", "count", (DST, SCALAR, _number("count", "int32_t")))
    strides = (_number("dst_block", SHORT), _number("dst_repeat", BYTE))
    yield Form("Duplicate", "duplicate", "repeat", (DST, SCALAR, MASK, REPEATS, *strides))
    yield Form("Copy", "copy", "repeat", (DST, SRC, MASK, REPEATS, Slot("strides", "CopyRepeatParams")))
    yield from _reduce_forms()
    yield Form("Brcb", "brcb", "repeat", (DST, SRC, REPEATS, Slot("strides", "BrcbRepeatParams")))
    places = (Slot("offsets", "tensor", READ, WORD), _number("base", WORD), _number("count", WORD))
    yield Form(GATHER, "gather", "count", (DST, SRC, *places))
    yield Form(TRANSPOSE, "transpose", "whole", (DST, SRC))


def _choosing_forms() -> Iterator[Form]:
    """Casts, comparisons and selections: tensors of two types, U being the other one."""
    other, bits, mode = replace(SRC, type="U"), replace(DST, type="U"), Slot("mode", "CMPMODE")
    yield from _both("Cast", "cast", (DST, other, Slot("mode", "RoundMode")), UNARY, WORD)
    yield from _both("Compare", "compare", (bits, FIRST, SECOND, mode), BINARY, WORD)
    yield from _both("CompareScalar", "compare", (bits, FIRST, SCALAR, mode), UNARY, WORD)
    chosen = (DST, Slot("chosen", "tensor", READ, "U"), FIRST)
    yield from _both(SELECT, "select", (*chosen, SECOND, Slot("mode", "SELMODE")), BINARY, WORD)
    yield from _both(SELECT, "select", (*chosen, SCALAR, Slot("mode", "SELMODE")), BINARY, WORD)


def _reduce_forms() -> Iterator[Form]:
    whole = (DST, SRC, WIDE_MASK, WIDE_REPEATS, *REDUCE_STRIDES)
    yield Form("WholeReduceSum", "whole", "repeat", whole)
    for name in ("WholeReduceMax", "WholeReduceMin"):
        yield Form(name, "whole", "repeat", (*whole, Slot("order", "ReduceOrder")))
    for name in REDUCES:
        yield Form(f"BlockReduce{name}", "block", "repeat", (DST, SRC, WIDE_REPEATS, WIDE_MASK, *REDUCE_STRIDES))


def _move_forms() -> Iterator[Form]:
    yield Form("DataCopy", "copy_blocks", "count", (DST, SRC, _number("count", WORD)))
    yield Form("DataCopy", "copy_blocks", "params", (DST, SRC, Slot("params", "DataCopyParams")))
    yield Form("DataCopy", "nd_to_nz", "params", (DST, SRC, Slot("params", "Nd2NzParams")))
    extended = Slot("params", "DataCopyExtParams")
    yield Form("DataCopyPad", "pad_in", "params", (DST, SRC, extended, Slot("padding", "DataCopyPadExtParams")))
    yield Form("DataCopyPad", "pad_out", "params", (DST, SRC, extended))
    yield Form("LoadData", "load_data", "params", (DST, SRC, Slot("params", "LoadData2DParams")))
    yield Form("LoadData", "load_window", "params", (DST, SRC, Slot("params", "LoadData3DParamsV2")))
    yield Form("InitConstValue", "init_const", "params", (DST, Slot("params", "InitConstValueParams")))
    factors = (replace(FIRST, type="U"), replace(SECOND, type="S"))
    yield Form("Mmad", "mmad", "params", (DST, *factors, Slot("params", "MmadParams")))
    sums = replace(SRC, type="U")
    yield Form("Fixpipe", "fixpipe", "params", (DST, sums, Slot("params", "FixpipeParamsV220")), 3)


def _order_forms() -> Iterator[Form]:
    event, flag = _number("id", "TEventID"), _number("id", SHORT)
    yield Form("SetFlag", "set_flag", "id", (event,), 1)
    yield Form("WaitFlag", "wait_flag", "id", (event,), 1)
    yield Form("PipeBarrier", "barrier", "", (), 1)
    yield Form("CrossCoreSetFlag", "cross_set", "id", (flag,), 2)
    yield Form("CrossCoreWaitFlag", "cross_wait", "id", (flag,))
    yield Form("InitSocState", "init", "", ())


FORMS: tuple[Form, ...] = (*_vector_forms(), *_move_forms(), *_order_forms())
BY_OPERATION: Mapping[str, tuple[Form, ...]] = MappingProxyType(
    {
        name: tuple(form for form in FORMS if form.operation == name)
        for name in dict.fromkeys(f.operation for f in FORMS)
    }
)
BY_SIGNATURE: Mapping[tuple[str | int, ...], Form] = MappingProxyType({form.signature: form for form in FORMS})
VECTOR_GROUPS = frozenset(form.group for form in _vector_forms())


def form_of(call: Call) -> Form:
    """The prototype of a call. Raises AscendError with the prototypes of its name when none fits."""
    form = BY_SIGNATURE.get((call.operation, len(call.template), *map(_kind, call.arguments)))
    if form is not None:
        return form
    forms = BY_OPERATION.get(call.operation, ())
    known = "; ".join(f"({', '.join(slot.name for slot in form.slots)})" for form in forms)
    reason = f"its arguments fit no prototype; known: {known}" if forms else "it is not in the fixed subset"
    raise AscendError(f"{call.operation}: {reason}", call.line)
