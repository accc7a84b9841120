"""All basic operators, and tables of them by name."""

from __future__ import annotations

from kernelgen.tensor.operator import Operator
from kernelgen.tensor.operators import (
    cast,
    complex_numbers,
    creation,
    csr,
    effects,
    elemwise,
    extents,
    indexing,
    layout,
    matmul,
    nn,
    padding,
    pieces,
    pool,
    reduce,
    scan,
    scatter,
    select,
    shape,
    status,
)

FAMILIES = (
    cast, complex_numbers, creation, csr, effects, elemwise, extents, indexing, layout, matmul, nn, padding, pieces, pool,
    reduce, scan, scatter, select, shape, status,
)  # fmt: skip

OPERATORS: tuple[Operator, ...] = tuple(
    {id(value): value for family in FAMILIES for value in vars(family).values() if isinstance(value, Operator)}.values()
)
"""In the order of their families."""
