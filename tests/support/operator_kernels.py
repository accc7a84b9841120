"""Kernels of one operator, and inputs for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.composite.document import Document, Operation, map_tensors
from kernelgen.composite.link import linked, unlinked
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dims import Dim
from kernelgen.tensor.dtypes import Category, dtype

Given = tuple[str, tuple[Dim, ...]]  # data type and shape
F, H, B, I32, C = "float32", "float16", "bfloat16", "int32", "complex64"
MATRIX = {"indptr": [0, 0, 4, 4, 7, 9], "indices": [0, 2, 3, 5, 1, 2, 4, 0, 5], "rows": [1, 1, 1, 1, 3, 3, 3, 4, 4]}


def one(
    name: str, inputs: list[Given], outputs: list[Given], layout: str = "DefaultFormat", **attrs: object
) -> KernelDesc:
    """A kernel of one operator."""
    ins = tuple(Tensor(f"x{k}", s, dtype(d), layout) for k, (d, s) in enumerate(inputs))
    outs = tuple(Tensor(f"y{k}", s, dtype(d), layout) for k, (d, s) in enumerate(outputs))
    named = {"global" if word == "everywhere" else word: value for word, value in attrs.items()}
    return linked(Document(name, ins, outs, (Operation(name, ins, outs, Attrs.of(named)),)))


def csr(name: str, inputs: list[str | Given], outputs: list[Given], **attrs: object) -> KernelDesc:
    """A kernel of one operator on a matrix of 5 x 6 with 9 stored elements; words name its arrays."""
    extent = {"indptr": 6, "indices": 9, "rows": 9}
    given = [(I32, (extent[g],)) if isinstance(g, str) else g for g in inputs]
    plain = unlinked(one(name, given, outputs, "DefaultFormat", **attrs))
    words = {f"x{k}": given for k, given in enumerate(inputs) if isinstance(given, str)}
    return linked(map_tensors(plain, lambda t: replace(t, name=words.get(t.name, t.name))))


def draw(desc: KernelDesc) -> list[np.ndarray]:
    """Normal numbers; integers run from -2 to 8, so indices are out of range at times."""
    rng = np.random.default_rng(3)
    found: list[np.ndarray] = []
    for t in desc.inputs:
        shape = [int(d) for d in t.shape]  # pyright: ignore[reportArgumentType]
        if t.name in MATRIX:
            found.append(np.array(MATRIX[t.name], t.dtype.numpy))
            continue
        numbers = rng.integers(-2, 9, shape) if t.dtype.is_integer else rng.normal(size=shape)
        more = 1j * rng.normal(size=shape) if t.dtype.category is Category.COMPLEX else 0
        found.append(np.asarray(numbers + more).astype(t.dtype.numpy))
    return found
