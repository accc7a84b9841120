"""Meanings against a second oracle: the kernel generator's own, which was written for AKG's descriptions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from graphkernel.ops import OPS
from kernelgen.composite.description import Tensor
from kernelgen.composite.document import Operation
from kernelgen.semantics.table import meaning_of
from tests.support.operator_samples import Case, cases
from tests.support.operator_values import mixed, positive

DIFFERENT = {
    "Gather": "negative indices count from the end here, in AKG they are out of range",
    "Conv2D": "AKG pads before, with PadAkg",
    "Slice": "a size of -1 has a meaning in AKG",
    "StridedSlice": "end -1 with a negative stride lies before the first element here, in AKG it is the last",
}
SHARED = sorted(name for name in OPS if meaning_of(Operation(name, (), ())) is not None and name not in DIFFERENT)
TYPES = {"float32", "int32", "bool"}
COMPLEX = {"CReal", "CImag"}
POSITIVE = {"Div", "Pow"}  # of integers; what a division by zero gives is nobody's promise


def shared_cases(name: str) -> Iterator[Case]:
    wanted = TYPES | ({"complex64"} if name in COMPLEX else set())
    found = (case for case in cases(OPS[name]) if case.of.name in wanted or len(case.sample.dtypes) == 1)
    return (case for case in found if not (name == "StandardNormal" and case.bound))  # AKG's has no step


def described(case: Case) -> Operation:
    """The operator as AKG describes it."""
    results = OPS[case.op.name].infer(case.bound, case.attrs)
    inputs = [Tensor(f"x{i}", t.shape, t.dtype, t.layout) for i, t in enumerate(case.bound)]
    outputs = [Tensor(f"y{i}", t.shape, t.dtype, t.layout) for i, t in enumerate(results)]
    return Operation(case.op.name, tuple(inputs), tuple(outputs), case.attrs)


@pytest.mark.parametrize("name", SHARED)
def test_both_oracles_agree(name: str) -> None:
    meaning = meaning_of(Operation(name, (), ()))
    assert meaning is not None
    for case in shared_cases(name):
        arrays = case.arrays(positive if name in POSITIVE else mixed)
        with np.errstate(all="ignore"):
            found = meaning(arrays, described(case))
        theirs = found if isinstance(found, tuple) else (found,)
        for ours, other in zip(case.results(arrays), theirs, strict=True):
            with np.errstate(all="ignore"):
                shaped = np.broadcast_to(other, ours.shape).astype(ours.dtype)
            np.testing.assert_allclose(ours, shaped, rtol=1e-5, atol=1e-5, err_msg=str(case))


def test_most_operators_have_both() -> None:
    assert len(SHARED) > 80
