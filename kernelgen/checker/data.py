"""The inputs of a kernel whose numbers are known: ids, rows and columns of sparse matrices.

They are drawn as for a run on data and then made harder: some ids lie just outside, where that is allowed, and in every
other run the first two rows and the last one of a sparse matrix are empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kernelgen.checker.terms import TOP
from kernelgen.composite.description import KernelDesc
from kernelgen.samples.index_inputs import CSR_OPERANDS, INDEX_OPERANDS, index_inputs
from kernelgen.tensor.graph import Node
from kernelgen.tensor.operators.csr import COO_TO_CSR, CSR_TO_COO
from kernelgen.tensor.operators.type_rules import normal_axis

Data = Mapping[int, tuple[int, ...]]
"""Input position -> the numbers of its elements in row-major order."""

ROW_STARTS = frozenset({*CSR_OPERANDS, CSR_TO_COO})
"""Operators whose first operand holds where the rows of a matrix start."""


def known_data(desc: KernelDesc, turn: int = 0) -> Data:
    """The known inputs of a description without symbols; ``turn`` counts the runs."""
    drawn = index_inputs(desc, np.random.default_rng(0))
    rows = {node.args[0] for node in desc.operators if node.op in ROW_STARTS}
    sound = rows | {v for node in desc.operators if node.op in (*ROW_STARTS, COO_TO_CSR) for v in node.args[:2]}
    for node in desc.operators:
        if node.op in INDEX_OPERANDS:
            ids = node.args[INDEX_OPERANDS[node.op]]
            if ids in drawn and ids not in sound:
                drawn[ids] = _with_ids_outside(drawn[ids], node)
    for starts in rows & drawn.keys() if turn % 2 else ():
        drawn[starts] = _with_empty_rows(drawn[starts])
    return {
        position: tuple(int(number) & TOP for number in drawn[value].reshape(-1))
        for position, value in enumerate(desc.graph.inputs)
        if value in drawn
    }


def _with_ids_outside(ids: np.ndarray[Any, Any], node: Node) -> np.ndarray[Any, Any]:
    """Every fifth id of each coordinate is the last one below or the first one above its range, in turn."""
    made = ids.astype(np.int64)
    columns = (
        [made.reshape(-1)]
        if node.op.name not in ("GatherNd", "TensorScatterAdd")
        else made.reshape(-1, made.shape[-1]).T
    )
    for column, extent in zip(columns, _extents(node), strict=False):
        column[3::10], column[8::10] = -1, extent
    return made


def _extents(node: Node) -> Iterator[int]:
    """How many places each coordinate of an id can name."""
    shape = [int(dim) for dim in node.args[0].shape]  # pyright: ignore[reportArgumentType]  # specialised
    result = [int(dim) for dim in node.out.shape]  # pyright: ignore[reportArgumentType]
    match node.op.name:
        case "Gather":
            yield shape[normal_axis(node.attrs.int("axis", 0), len(shape))]
        case "UnsortedSegmentSum":
            yield result[0]
        case "OneHot":
            yield result[normal_axis(node.attrs.int("axis", -1), len(result))]
        case _:
            yield from shape


def _with_empty_rows(starts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The same number of elements, in as many rows; of a matrix of one row or two none or one can be empty."""
    made = starts.copy()
    between = made[1:-1]
    between[:2], between[-1:] = made[:1], made[-1:]
    return made
