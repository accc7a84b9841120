"""AscendC is C++: clang parses it against declarations that know nothing of the generator."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product

import pytest

from kernelgen.ascendc.intrinsics import FORMS, STRUCTS, Form, Slot
from tests.ascendc_compile.compiler import declared, errors_of
from tests.kernelgen.targets.ascend.kernels import SAMPLES

if find_spec("clang") is None:
    pytest.skip("libclang is not installed (it is in the dev group)", allow_module_level=True)

KERNEL = """#include "kernel_operator.h"
using namespace AscendC;

struct k_tiling {
    int32_t rows;
};

extern "C" __global__ __aicore__ void k(GM_ADDR x, GM_ADDR y, k_tiling tiling) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    InitSocState();
    GlobalTensor<half> x_gm;
    x_gm.SetGlobalBuffer((__gm__ half*)x, tiling.rows * 16);
    LocalTensor<half> tile(TPosition::VECCALC, 0, 256);
    LocalTensor<uint8_t> bits(TPosition::VECCALC, 512, 32);
    int32_t n = tiling.rows % 16;
    LINE
    SetFlag<HardEvent::MTE2_V>(0);
    PipeBarrier<PIPE_ALL>();
}
"""
GOOD = (
    "Muls(tile, tile, static_cast<half>(1.25f), n);",
    "Adds(tile, tile, static_cast<half>(1.25f), 128, 2, UnaryRepeatParams{1, 1, 8, 8});",
    "Select(tile, bits, tile, static_cast<half>(0.0f), SELMODE::VSEL_TENSOR_SCALAR_MODE, 128);",
    "DataCopyPad(tile, x_gm, DataCopyExtParams{static_cast<uint16_t>(n), 32, 0, 0, 0}, "
    "DataCopyPadExtParams<half>{false, 0, 0, 0});",
    "if ASCEND_IS_AIC { PipeBarrier<PIPE_V>(); } else { PipeBarrier<PIPE_V>(); }",
)
PLANTED = {
    "no matching function for call to 'Muls'": "Muls(tile, tile, 1.25f, n);",
    "no matching function for call to 'Add'": "Add(tile, tile, n);",
    "no matching function for call to 'And'": "And(tile, tile, tile, n);",
    "no matching constructor for initialization of 'CopyRepeatParams'": "Copy(tile, tile, 64, 1, CopyRepeatParams{1, 1, 8});",
    "cannot be narrowed from type 'int32_t' (aka 'int') to 'uint16_t'": (
        "DataCopyPad(x_gm, tile, DataCopyExtParams{n, 32, 0, 0, 0});"
    ),
    "changes value from 256 to 0": "Brcb(tile, tile, 256, BrcbRepeatParams{1, 8});",
    "undeclared identifier 'NAN'": "Duplicate(tile, static_cast<half>(NAN), 128);",
    "type name requires a specifier": "if (ASCEND_IS_AIC) { PipeBarrier<PIPE_V>(); }",
}


def test_what_the_manual_has_passes() -> None:
    assert errors_of([KERNEL.replace("LINE", line) for line in GOOD]) == [[] for _ in GOOD]


def test_wrong_overloads_counts_and_narrowing_are_reported_with_their_line() -> None:
    line = KERNEL.splitlines().index("    LINE") + 1
    found = errors_of([KERNEL.replace("LINE", planted) for planted in PLANTED.values()])
    for message, errors in zip(PLANTED, found, strict=True):
        assert any(message in error and error.startswith(f"{line}:") for error in errors), (message, errors)


def test_the_hand_written_kernels_are_cplusplus() -> None:
    assert errors_of([sample.text for sample in SAMPLES.values()]) == [[] for _ in SAMPLES]


def test_every_prototype_of_the_generator_is_declared() -> None:
    known = set(declared())
    for form in FORMS:
        assert any((form.operation, types) in known for types in _parameters(form)), form


def test_every_struct_of_the_generator_has_the_constructor() -> None:
    known = set(declared())
    for name, fields in STRUCTS.items():
        assert (name, tuple(fields.values())) in known, name


def _parameters(form: Form) -> Iterator[tuple[str, ...]]:
    """The parameters that C++ may have for a prototype: tensors are of either kind."""
    yield from product(*(_types(slot) for slot in form.slots))


def _types(slot: Slot) -> tuple[str, ...]:
    if slot.kind == "tensor":
        return f"LocalTensor<{slot.type}>", f"GlobalTensor<{slot.type}>"
    if slot.kind in ("scalar", "mask"):
        return (slot.type,)
    return slot.kind, f"{slot.kind}<{slot.type}>"
