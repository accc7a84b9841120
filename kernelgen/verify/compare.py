"""How far results may be apart: AKG's tolerances, by the precision of what a tensor was computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelgen.composite.description import KernelDesc
from kernelgen.enclosure.agree import first_wrong
from kernelgen.tensor.dtypes import BFLOAT16, FLOAT16, DType

Array = np.ndarray[Any, Any]

SINGLE = 1e-4
HALF = 1e-3
BRAIN = 1e-2  # bfloat16 has 8 bits of mantissa: one rounding is up to 4e-3


@dataclass(frozen=True)
class Difference:
    """``error`` is the largest absolute difference; ``fault`` says what is beyond the tolerance, empty when nothing is."""

    error: float
    fault: str = ""


def tolerances(desc: KernelDesc) -> dict[str, float]:
    """Output or input -> rtol and atol: that of the least precise data type in its derivation."""
    known = {value: _own(value.dtype) for value in desc.graph.inputs}
    for node in desc.operators:
        inherited = [known.get(value, _own(value.dtype)) for value in node.args]
        known |= {value: max(_own(value.dtype), *inherited, 0.0) for value in node.outs}
    results = {tensor.name: value for tensor, value in zip(desc.outputs, desc.results, strict=True)}
    inputs = {tensor.name: value for tensor, value in zip(desc.inputs, desc.graph.inputs, strict=True)}
    inputs |= {desc.inputs[place].name: value for place, value in desc.updates.items()}
    return {name: known.get(value, _own(value.dtype)) for name, value in (results | inputs).items()}


def difference(found: Array, expected: Array, tolerance: float) -> Difference:
    """Compares two arrays of one shape element by element.

    Args:
        found: what a kernel gave.
        expected: what it should have given. NaN and infinities must stand at the same places.
        tolerance: how far floats may be apart: this much, and this much of the expected value.
            Integers and bools must be equal.
    """
    if found.shape != expected.shape:
        return Difference(np.inf, f"shape {found.shape}, expected {expected.shape}")
    wrong = np.asarray(found != expected)
    if expected.dtype.kind in "iub":
        return Difference(float(wrong.any()), first_wrong(wrong, found, lambda place: str(expected[place])))
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    left, right = found[wrong].astype(wide), expected[wrong].astype(wide)
    with np.errstate(all="ignore"):
        apart = np.abs(left - right)
        close = apart <= tolerance + tolerance * np.abs(right)
    wrong[wrong] = ~((np.isnan(left) & np.isnan(right)) | (close & np.isfinite(right)))
    finite = apart[np.isfinite(apart)]
    return Difference(
        float(finite.max()) if finite.size else 0.0, first_wrong(wrong, found, lambda place: str(expected[place]))
    )


def compare(desc: KernelDesc, names: Sequence[str], found: Sequence[Array], expected: Sequence[Array]) -> Difference:
    """The worst difference over all results; its fault is the first one.

    Args:
        desc: the description, which says how exact a result must be.
        names: the tensors that the results are, for messages.
        found: what a kernel gave, one array a name.
        expected: what it should have given, in the same order.
    """
    allowed = tolerances(desc)
    worst, fault = 0.0, ""
    for name, one, other in zip(names, found, expected, strict=True):
        apart = difference(one, other, allowed[name])
        worst = max(worst, apart.error)
        fault = fault or (f"{name}: {apart.fault}" if apart.fault else "")
    return Difference(worst, fault)


def _own(kind: DType) -> float:
    return HALF if kind == FLOAT16 else BRAIN if kind == BFLOAT16 else SINGLE
