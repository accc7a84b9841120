"""The fixed subset of AscendC: every call with the kinds and names of its arguments, as the manual's prototypes have them.

Printer, reader, builder and simulator read this table; a call that is not here does not exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from kernelgen.targets.ascend.errors import AscendError
from kernelgen.targets.ascend.instructions import Argument, Call, Enumerator, Struct, TensorRef

STRUCTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "BinaryRepeatParams": (
            "dst_block", "first_block", "second_block", "dst_repeat", "first_repeat", "second_repeat",
        ),
        "UnaryRepeatParams": ("dst_block", "src_block", "dst_repeat", "src_repeat"),
        "BrcbRepeatParams": ("dst_block", "dst_repeat"),
        "CopyRepeatParams": ("dst_block", "src_block", "dst_repeat", "src_repeat"),
        "DataCopyParams": ("count", "length", "src_gap", "dst_gap"),
        "DataCopyExtParams": ("count", "length", "src_gap", "dst_gap", "reserved"),
        "DataCopyPadExtParams": ("padded", "left", "right", "value"),
        "Nd2NzParams": (
            "matrices", "rows", "columns", "src_matrix_stride", "src_row_stride", "dst_column_stride",
            "dst_row_stride", "dst_matrix_stride",
        ),
        "InitConstValueParams": ("repeats", "length", "gap", "value"),
        "LoadData2DParams": ("start", "repeats", "src_stride", "sid", "dst_gap", "transpose", "address_mode"),
        "MmadParams": ("m", "n", "k", "unit_flag", "from_bias", "initial"),
        "FixpipeParamsV220": (
            "columns", "rows", "src_stride", "dst_stride", "quantise", "scale", "matrices", "src_matrix_stride",
            "dst_matrix_stride", "relu",
        ),
    }
)  # fmt: skip
"""Struct of parameters -> its fields in order, under our names."""

WRITE, READ = "write", "read"


@dataclass(frozen=True)
class Slot:
    """One argument. ``kind`` is tensor, scalar, mask, a struct's name or an enumeration's; ``role`` is for tensors."""

    name: str
    kind: str
    role: str = ""


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
    match argument:
        case TensorRef():
            return "tensor"
        case Struct(name):
            return name
        case Enumerator(name):
            return name.partition("::")[0]
        case _:
            return "scalar"


DST = Slot("dst", "tensor", WRITE)
SRC = Slot("src", "tensor", READ)
FIRST, SECOND = Slot("first", "tensor", READ), Slot("second", "tensor", READ)
SCALAR, COUNT = Slot("scalar", "scalar"), Slot("count", "scalar")
MASK, REPEATS = Slot("mask", "mask"), Slot("repeats", "scalar")
BINARY, UNARY = Slot("strides", "BinaryRepeatParams"), Slot("strides", "UnaryRepeatParams")
BINARIES = ("Add", "Sub", "Mul", "Div", "Max", "Min", "And", "Or")
UNARIES = ("Exp", "Ln", "Abs", "Reciprocal", "Sqrt", "Rsqrt", "Not", "Relu")
SCALARS = ("Adds", "Muls", "Maxs", "Mins", "ShiftLeft", "ShiftRight", "LeakyRelu")
REDUCES = ("Sum", "Max", "Min")
REDUCE_STRIDES = (Slot("dst_repeat", "scalar"), Slot("src_block", "scalar"), Slot("src_repeat", "scalar"))


def _both(operation: str, group: str, slots: tuple[Slot, ...], strides: Slot) -> Iterator[Form]:
    """The count form and the repeat form of a vector call."""
    yield Form(operation, group, "count", (*slots, COUNT))
    yield Form(operation, group, "repeat", (*slots, MASK, REPEATS, strides))


def _vector_forms() -> Iterator[Form]:
    for name in BINARIES:
        yield from _both(name, "binary", (DST, FIRST, SECOND), BINARY)
    for name in UNARIES:
        yield from _both(name, "unary", (DST, SRC), UNARY)
    for name in SCALARS:
        yield from _both(name, "scalar", (DST, SRC, SCALAR), UNARY)
    yield from _both("Cast", "cast", (DST, SRC, Slot("mode", "RoundMode")), UNARY)
    yield from _both("Compare", "compare", (DST, FIRST, SECOND, Slot("mode", "CMPMODE")), BINARY)
    yield from _both("CompareScalar", "compare", (DST, FIRST, SCALAR, Slot("mode", "CMPMODE")), UNARY)
    chosen = (DST, Slot("chosen", "tensor", READ), FIRST)
    yield from _both("Select", "select", (*chosen, SECOND, Slot("mode", "SELMODE")), BINARY)
    yield from _both("Select", "select", (*chosen, SCALAR, Slot("mode", "SELMODE")), BINARY)
    yield Form("Duplicate", "duplicate", "count", (DST, SCALAR, COUNT))
    strides = (Slot("dst_block", "scalar"), Slot("dst_repeat", "scalar"))
    yield Form("Duplicate", "duplicate", "repeat", (DST, SCALAR, MASK, REPEATS, *strides))
    yield Form("Copy", "copy", "repeat", (DST, SRC, MASK, REPEATS, Slot("strides", "CopyRepeatParams")))
    yield Form("WholeReduceSum", "whole", "repeat", (DST, SRC, MASK, REPEATS, *REDUCE_STRIDES))
    for name in ("WholeReduceMax", "WholeReduceMin"):
        order = Slot("order", "ReduceOrder")
        yield Form(name, "whole", "repeat", (DST, SRC, MASK, REPEATS, *REDUCE_STRIDES, order))
    for name in REDUCES:
        yield Form(f"BlockReduce{name}", "block", "repeat", (DST, SRC, REPEATS, MASK, *REDUCE_STRIDES))
    yield Form("Brcb", "brcb", "repeat", (DST, SRC, REPEATS, Slot("strides", "BrcbRepeatParams")))
    offsets, base = Slot("offsets", "tensor", READ), Slot("base", "scalar")
    yield Form("Gather", "gather", "count", (DST, SRC, offsets, base, COUNT))
    yield Form("Transpose", "transpose", "whole", (DST, SRC))


def _move_forms() -> Iterator[Form]:
    yield Form("DataCopy", "copy_blocks", "count", (DST, SRC, COUNT))
    yield Form("DataCopy", "copy_blocks", "params", (DST, SRC, Slot("params", "DataCopyParams")))
    yield Form("DataCopy", "nd_to_nz", "params", (DST, SRC, Slot("params", "Nd2NzParams")))
    extended = Slot("params", "DataCopyExtParams")
    yield Form("DataCopyPad", "pad_in", "params", (DST, SRC, extended, Slot("padding", "DataCopyPadExtParams")))
    yield Form("DataCopyPad", "pad_out", "params", (DST, SRC, extended))
    yield Form("LoadData", "load_data", "params", (DST, SRC, Slot("params", "LoadData2DParams")))
    yield Form("InitConstValue", "init_const", "params", (DST, Slot("params", "InitConstValueParams")))
    yield Form("Mmad", "mmad", "params", (DST, FIRST, SECOND, Slot("params", "MmadParams")))
    yield Form("Fixpipe", "fixpipe", "params", (DST, SRC, Slot("params", "FixpipeParamsV220")), 3)


def _order_forms() -> Iterator[Form]:
    number = Slot("id", "scalar")
    yield Form("SetFlag", "set_flag", "id", (number,), 1)
    yield Form("WaitFlag", "wait_flag", "id", (number,), 1)
    yield Form("PipeBarrier", "barrier", "", (), 1)
    yield Form("CrossCoreSetFlag", "cross_set", "id", (number,), 2)
    yield Form("CrossCoreWaitFlag", "cross_wait", "id", (number,))
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
