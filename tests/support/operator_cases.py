"""Cases of single operators with an expected value that does not come from :mod:`kernelgen.semantics`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import kernelgen
from kernelgen.composite.check import check
from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.link import linked
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dtypes import dtype

Array = np.ndarray[Any, Any]
TARGETS = ("reference", "python", "cpu", "gpu")
TOLERANCE = {"float64": 1e-6, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2, "complex64": 1e-5}


@dataclass(frozen=True)
class Case:
    """One operator on given arrays. ``expected`` has the shapes and data types that the result must have."""

    op: str
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    formats: tuple[str, ...] = ()
    tolerance: float | None = None

    def __str__(self) -> str:
        shapes = "-".join("x".join(map(str, x.shape)) or "scalar" for x in self.inputs) or "none"
        values = "-".join(f"{k}={v}" for k, v in self.attrs.items())
        return f"{self.op}-{self.expected[0].dtype}-{shapes}-{values}".replace(" ", "")

    @property
    def desc(self) -> KernelDesc:
        """The kernel of this operator alone, checked."""
        formats = (*self.formats, *("DefaultFormat",) * len(self.inputs))
        inputs = tuple(Tensor(f"x{k}", x.shape, dtype(x.dtype), formats[k]) for k, x in enumerate(self.inputs))
        outputs = tuple(Tensor(f"y{k}", y.shape, dtype(y.dtype)) for k, y in enumerate(self.expected))
        op = Operation(self.op, inputs, outputs, Attrs.of(self.attrs))
        return check(linked(Document(self.op.lower(), inputs, outputs, (op,))))

    def agrees(self, target: str) -> None:
        """Runs the operator; skips, with the reason code, what the target refuses."""
        found = run(self.desc, self.inputs, target)
        for one, other in zip(found, self.expected, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            if other.dtype.kind in "iub":
                np.testing.assert_array_equal(one, other)
                continue
            allowed = self.tolerance or TOLERANCE[dtype(other.dtype).name]
            wide = np.complex128 if other.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(one.astype(wide), other.astype(wide), rtol=allowed, atol=allowed)


def run(desc: KernelDesc, inputs: Sequence[Array], target: str) -> tuple[Array, ...]:
    """The outputs of a kernel on a target, or of the reference; skips what the target refuses."""
    try:
        kernel = kernelgen.reference(desc) if target == "reference" else kernelgen.compile(desc, target=target)
    except kernelgen.UnsupportedError as refusal:
        pytest.skip(f"{target}: {refusal}")
    return kernel(*[x.copy() for x in inputs])


def numbers(seed: int, shape: tuple[int, ...], kind: str = "float32", low: float = -2, high: float = 2) -> Array:
    """Numbers between the limits, of both signs; whole ones for integers."""
    random = np.random.default_rng(seed)
    if dtype(kind).is_integer:
        return random.integers(int(low), int(high) + 1, shape).astype(kind)
    return np.asarray(random.uniform(low, high, shape)).astype(dtype(kind).numpy)
