"""A sample as JSON: what a failure is reported and kept as."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from kernelgen.composite.read import load_desc
from kernelgen.composite.write import dump_desc
from kernelgen.tensor.dtypes import dtype
from tests.random_kernels.values import Array, Sample


def to_json(sample: Sample, **more: Any) -> dict[str, Any]:
    """The description as composite JSON, the inputs as nested lists, the errors, and a text to read."""
    inputs = [_array_json(array) for array in sample.inputs]
    return {
        **more,
        "text": repr(sample).split("\n"),
        "desc": dump_desc(sample.desc),
        "inputs": inputs,
        "errors": sample.errors,
    }


def from_json(source: Path | dict[str, Any]) -> Sample:
    """The sample in a file or an object."""
    document = json.loads(source.read_text()) if isinstance(source, Path) else source
    inputs = tuple(_array(item) for item in document["inputs"])
    return Sample(load_desc(document["desc"]), inputs, document["errors"])


def _array_json(array: Array) -> dict[str, Any]:
    """Complex numbers as pairs."""
    plain = np.stack([array.real, array.imag], -1) if array.dtype.kind == "c" else array
    wide = plain.astype(np.float64) if plain.dtype.kind not in "biu" else plain
    return {"dtype": dtype(array.dtype).name, "shape": list(array.shape), "values": wide.reshape(-1).tolist()}


def _array(document: dict[str, Any]) -> Array:
    kind = dtype(document["dtype"]).numpy
    if kind.kind == "c":
        pairs = np.asarray(document["values"], np.float64).reshape(-1, 2)
        return (pairs[:, 0] + 1j * pairs[:, 1]).astype(kind).reshape(document["shape"])
    wide = kind if kind.kind in "iub" else np.float64  # numbers from 2^63 on fit no type that numpy would choose
    return np.asarray(document["values"], wide).astype(kind).reshape(document["shape"])
