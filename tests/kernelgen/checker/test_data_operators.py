"""Operators whose places data decides, positions of extremes, complex numbers: their terms, and faults planted into them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import pytest
from kernel_examples import Writer, constant, tensor
from nest_faults import DATA_FAULTS, FAULTS, planted

from kernelgen.checker import check
from kernelgen.checker.data import known_data
from kernelgen.checker.described import without_terms
from kernelgen.composite.description import KernelDesc
from kernelgen.composite.link import unlinked
from kernelgen.nest.nodes import Nest
from kernelgen.nest.text import show
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.tensor.dims import sym
from kernelgen.tensor.dtypes import BOOL, COMPLEX64, FLOAT32, INT32, INT64

ROWS, STORED = 6, 17


def ids(*shape):
    return tensor("ids", *shape, dtype=INT32)


def complex_tensor(name, *shape):
    return tensor(name, *shape, dtype=COMPLEX64)


def one(operator, inputs, shape, dtype=FLOAT32, **attrs):
    w = Writer()
    return w.desc(operator, inputs, w.op(operator, *inputs, shape=shape, dtype=dtype, **attrs))


def sparse(operator, values, dense, shape, **attrs):
    matrix = tensor("starts", ROWS + 1, dtype=INT32), tensor("columns", STORED, dtype=INT32)
    return one(operator, (*matrix, *values, *dense), shape, **attrs)


def normal():
    w = Writer()
    return w.desc("normal", (), w.op("StandardNormal", shape=(3, 5), dtype=FLOAT32, seed=7))


def gather_of_symbols():
    return one("Gather", (tensor("x", sym("M"), 5), ids(sym("N"))), (sym("N"), 5), axis=0)


KERNELS: Mapping[str, Callable[[], KernelDesc]] = {
    "gather": lambda: one("Gather", (tensor("x", 7, 5), ids(12)), (12, 5), axis=0),
    "gather of columns": lambda: one("Gather", (tensor("x", 5, 7), ids(12)), (5, 12), axis=1),
    "gather, symbolic": gather_of_symbols,
    "gather_nd": lambda: one("GatherNd", (tensor("x", 7, 5, 3), ids(12, 2)), (12, 3)),
    "scatter": lambda: one("TensorScatterAdd", (tensor("x", 7, 5), ids(42, 1), tensor("u", 42, 5)), (7, 5)),
    "segments": lambda: one("UnsortedSegmentSum", (tensor("x", 42, 5), ids(42)), (7, 5), num_segments=7),
    "one_hot": lambda: one("OneHot", (ids(12), tensor("on", 1), tensor("off", 1)), (12, 7), depth=7, axis=-1),
    "argmax": lambda: one("Argmax", (tensor("x", 60, 5),), (60,), INT32, axis=1),
    "argmin of columns": lambda: one("Argmin", (tensor("x", 5, 300),), (300,), INT32, axis=0),
    "elem_any": lambda: one("ElemAny", (tensor("x", 9),), (1,)),
    "csr times vector": lambda: sparse("CSRMV", [tensor("v", STORED)], [tensor("d", 8, 1)], (ROWS, 1), dense_shape=(ROWS, 8)),
    "csr times matrix": lambda: sparse("CSRMM", [tensor("v", STORED)], [tensor("d", 8, 5)], (ROWS, 5), dense_shape=(ROWS, 8)),
    "csr rows": lambda: sparse("CSRReduceSum", [tensor("v", STORED)], [], (ROWS, 1), dense_shape=(ROWS, 8), axis=1),
    "csr gather": lambda: sparse("CSRGather", [], [tensor("d", ROWS, 8)], (STORED,), dense_shape=(ROWS, 8)),
    "csr over dense": lambda: sparse("CSRDiv", [tensor("v", STORED)], [tensor("d", ROWS, 8)], (STORED,), dense_shape=(ROWS, 8)),
    "csr by dense": lambda: sparse("CSRMul", [tensor("v", STORED)], [tensor("d", ROWS, 1)], (STORED,), dense_shape=(ROWS, 8)),
    "rows of a csr": lambda: one("CSR2COO", (tensor("starts", ROWS + 1, dtype=INT32),), (STORED,), INT32, nnz=STORED),
    "csr of rows": lambda: one("COO2CSR", (tensor("rows", STORED, dtype=INT32),), (ROWS + 1,), INT32, height=ROWS),
    "maxima of windows": lambda: one("Pool2D", (tensor("x", 1, 2, 6, 7),), (1, 2, 3, 4), FLOAT32, pool_type="max",
                                     kernel_size=(2, 2), strides=(2, 2), round_mode="ceil", **{"global": False}),
    "means of windows": lambda: one("Pool2D", (tensor("x", 1, 2, 6, 8),), (1, 2, 4, 5), FLOAT32, pool_type="avg",
                                    kernel_size=(2, 2), strides=(2, 2), pad=(1, 1, 1, 1), **{"global": False}),
    "normal": normal,
    "complex product": lambda: one("Mul", (complex_tensor("a", 9), complex_tensor("b", 9)), (9,), COMPLEX64),
    "complex quotient": lambda: one("RealDiv", (complex_tensor("a", 9), complex_tensor("b", 9)), (9,), COMPLEX64),
    "complex sum": lambda: one("ReduceSum", (complex_tensor("a", 3, 9),), (9,), COMPLEX64, axis=(0,)),
    "complex gather": lambda: one("Gather", (complex_tensor("a", 7, 3), ids(12)), (12, 3), COMPLEX64, axis=0),
    "complex parts": lambda: one("CImag", (complex_tensor("a", 9),), (9,)),
    "complex of parts": lambda: one("Complex", (tensor("a", 9), tensor("b", 9)), (9,), COMPLEX64),
    "complex equal": lambda: one("Equal", (complex_tensor("a", 9), complex_tensor("b", 9)), (9,), BOOL),
}  # fmt: skip


@cache
def finished(name: str) -> tuple[KernelDesc, Nest]:
    desc = KERNELS[name]()
    return desc, lower(desc, Plan()).nest


@pytest.mark.parametrize("kernel", KERNELS)
def test_untouched_kernels_pass(kernel: str) -> None:
    desc, nest = finished(kernel)
    assert without_terms(unlinked(desc)) == ""
    found = check(nest, desc)
    assert found.fault is None, show(nest)
    assert "terms" in found.shown


HARMLESS: Mapping[str, Callable[[str], bool]] = {
    "one_iteration_too_many": lambda kernel: (
        "csr" in kernel
    ),  # all that is stored lies before the end: no row starts there
    "dropped_guard": lambda kernel: kernel == "csr of rows",  # no row of a sound matrix lies outside of it
    "guard_off_by_one": lambda kernel: kernel == "csr of rows",
}
"""Fault -> the kernels in which it changes nothing."""

EQUAL_PLACES = {("other_function", "normal"): 1}  # of 0 * c and 0 + c the upper word alone is read, which is 0
"""In how many places of a kernel a fault changes nothing that anybody reads."""


@pytest.mark.parametrize("fault", [*FAULTS, *DATA_FAULTS])
def test_the_fault_is_found_in_every_place(fault: str) -> None:
    edit = {**FAULTS, **DATA_FAULTS}[fault]
    places = 0
    for name in (each for each in KERNELS if not HARMLESS.get(fault, lambda kernel: False)(each)):
        desc, nest = finished(name)
        missed = [show(changed) for changed in planted(nest, edit) if check(changed, desc).fault is None]
        assert len(missed) == EQUAL_PLACES.get((fault, name), 0), "\n".join((name, *missed))
        places += sum(1 for _ in planted(nest, edit))
    assert places >= 1 or fault in ELSEWHERE


ELSEWHERE = frozenset({"phases_exchanged", "tile_without_its_end", "overlapping_tiles"})
"""Faults that none of these kernels has a place for."""


def test_ids_that_nobody_knows_are_not_guessed() -> None:
    w, x, y = Writer(), tensor("x", 7, 5), tensor("y", 12, dtype=INT32)
    computed = w.op("Mul", y, y, shape=(12,))
    desc = w.desc("k", (x, y), w.op("Gather", x, computed, shape=(12, 5), axis=0))
    found = check(lower(desc, Plan()).nest, desc)
    assert found.fault is None
    assert "terms" not in found.shown


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_matrices_of_few_rows_keep_what_they_store(rows: int) -> None:
    """Of these, too, some rows are made empty, but not all."""
    given = tensor("starts", rows + 1, dtype=INT32), tensor("columns", STORED, dtype=INT32), tensor("d", rows, 8)
    desc = one("CSRGather", given, (STORED,), dense_shape=(rows, 8))
    found = check(lower(desc, Plan()).nest, desc)
    assert found.fault is None
    assert "terms" in found.shown
    for turn in range(2):
        starts = known_data(desc, turn)[0]
        assert (starts[0], starts[-1]) == (0, STORED)
        assert list(starts) == sorted(starts)


def test_an_order_that_nobody_reads_is_none_at_any_size() -> None:
    """The position of an extreme, which is left out where sizes of symbols are put in."""
    w, x = Writer(), tensor("x", sym("N"))
    w.op("Argmin", x, shape=(), dtype=INT64, axis=-1)
    desc = w.desc("k", (x,), w.op("Minimum", x, constant(2.0), shape=(sym("N"),)))
    found = check(lower(desc, Plan()).nest, desc)
    assert found.fault is None
    assert "terms" in found.shown
