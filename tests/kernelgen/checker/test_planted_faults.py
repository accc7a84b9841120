"""The checker rejects faults planted into the finished nests of real kernels of every main class, wherever they stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import kernel_examples as examples
import pytest
from kernel_examples import Writer, tensor
from nest_faults import FAULTS, planted

from kernelgen.checker import check
from kernelgen.composite.description import KernelDesc
from kernelgen.nest.nodes import Nest
from kernelgen.nest.text import show
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.tensor.dims import sym


def product(rows: int, inner: int, columns: int) -> KernelDesc:
    w, x, y = Writer(), tensor("x", rows, inner), tensor("y", inner, columns)
    return w.desc("product", (x, y), w.op("MatMul", x, y, shape=(rows, columns)))


def padded(rows: int, columns: int) -> KernelDesc:
    w, x = Writer(), tensor("x", rows, columns)
    return w.desc(
        "padded", (x,), w.op("PadAkg", x, shape=(rows + 2, columns + 3), head=(1, 2), tail=(1, 1), pad_val=0.0)
    )


KERNELS: Mapping[str, Callable[[], KernelDesc]] = {
    "row phases": examples.softmax,
    "row phases, symbolic": lambda: examples.softmax(sym("M"), sym("N")),
    "two reductions": examples.layer_norm,
    "columns": lambda: examples.column_sum(10, 70),
    "columns in strips": lambda: examples.column_sum(6, 1500),
    "both directions": examples.two_phase_branches,
    "transpose": lambda: examples.transpose_add(6, 7),
    "transpose in tiles": lambda: examples.transpose_add(70, 80),
    "reshape": examples.crossed_reshape,
    "in place": lambda: examples.momentum(9),
    "half precision": lambda: examples.half_sum(3, 20),
    "product": lambda: product(4, 5, 6),
    "padded": lambda: padded(4, 5),
}


@cache
def finished(name: str) -> tuple[KernelDesc, Nest]:
    desc = KERNELS[name]()
    return desc, lower(desc, Plan()).nest


@pytest.mark.parametrize("kernel", KERNELS)
def test_untouched_kernels_pass(kernel: str) -> None:
    desc, nest = finished(kernel)
    found = check(nest, desc)
    assert found.fault is None
    assert "terms" in found.shown


@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_is_found_in_every_place(fault: str) -> None:
    places = 0
    for name in KERNELS:
        desc, nest = finished(name)
        for changed in planted(nest, FAULTS[fault]):
            places += 1
            assert check(changed, desc).fault is not None, f"{name}: {show(changed)}"
    assert places >= 1


def test_there_are_enough_kinds() -> None:
    assert len(FAULTS) >= 15
