"""Weights in the format of safetensors: eight bytes of header length, a header in JSON, then the arrays one after the other.

They are written by parts and read as views inside of another file: the package safetensors does neither. The format has no
holes, so arrays of wide elements come first and each lies at a multiple of its element.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from graphkernel.errors import PackageError
from kernelgen.system.bounded_io import json_value
from kernelgen.system.mapped import let_go
from kernelgen.tensor.types import TensorType, dtype

ALIGNMENT = 64
"""Bytes; the first array begins at a multiple of a cache line in the file, and so in memory."""

_CODES: Mapping[str, str] = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32", "int32": "I32",
    "uint64": "U64", "int64": "I64", "float16": "F16", "bfloat16": "BF16", "float32": "F32", "float64": "F64",
}  # fmt: skip
_NAMES: Mapping[str, str] = {code: name for name, code in _CODES.items()}
_LENGTH_BYTES = 8


def most_bytes(arrays: Mapping[str, np.ndarray]) -> int:
    """At most so many bytes are written for these arrays."""
    return sum(array.nbytes for array in arrays.values()) + 512 * (len(arrays) + 1)


def write_tensors(arrays: Mapping[str, np.ndarray], write: Callable[[bytes | memoryview], object], place: int) -> None:
    """Writes arrays by name; ``place`` is where in the file the first byte will lie.

    A complex array is written as its real and imaginary parts. Raises PackageError for other elements than numbers.
    """
    plain = {name: _as_numbers(array, name) for name, array in arrays.items()}
    header: dict[str, Any] = {}
    end = 0
    for name in sorted(plain, key=lambda name: (-plain[name].itemsize, name)):
        array, start = plain[name], end
        end += array.nbytes
        header[name] = {"dtype": _CODES[array.dtype.name], "shape": list(array.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(place + _LENGTH_BYTES + len(text)) % ALIGNMENT)
    write(len(text).to_bytes(_LENGTH_BYTES, "little") + text)
    for name in header:
        write(plain[name].reshape(-1).view(np.uint8).data)
        let_go(plain[name])


def read_tensors(content: memoryview) -> dict[str, np.ndarray]:
    """The arrays as read-only views. Raises PackageError for a header that does not fit its content."""
    length = int.from_bytes(content[:_LENGTH_BYTES], "little")
    data = content[_LENGTH_BYTES + length :]
    try:
        header = json_value(bytes(content[_LENGTH_BYTES : _LENGTH_BYTES + length]).decode(), PackageError)
        return {name: _view(data, entry) for name, entry in cast("dict[str, Any]", header).items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise PackageError(f"weights whose header does not fit them: {error}") from error


def complete(array: np.ndarray, of: TensorType) -> np.ndarray:
    """What was written as its parts is complex again. Raises PackageError for an array of another type."""
    wanted = of.dtype.numpy
    found = array.view(wanted).reshape(array.shape[:-1]) if wanted.kind == "c" and array.ndim else array
    if (found.shape, found.dtype) != (of.shape, wanted):
        raise PackageError(f"weights of type {array.dtype}{list(array.shape)} in place of {of}")
    return found


def _view(data: memoryview, entry: Mapping[str, Any]) -> np.ndarray:
    start, end = entry["data_offsets"]
    kind, shape = dtype(_NAMES[entry["dtype"]]).numpy, tuple(entry["shape"])
    if not (all(type(number) is int and number >= 0 for number in (start, end, *shape)) and end <= len(data)):
        raise ValueError(f"an array from {start} to {end} of {len(data)} bytes")
    return np.frombuffer(data[start:end], kind).reshape(shape)


def _as_numbers(array: np.ndarray, name: str) -> np.ndarray:
    plain = np.ascontiguousarray(array).reshape(array.shape)
    if plain.dtype.kind == "c":
        plain = plain.reshape(-1).view(f"f{plain.itemsize // 2}").reshape(*array.shape, 2)
    if plain.dtype.name not in _CODES:
        raise PackageError(f"constant {name} has elements of type {array.dtype}, which no package can hold")
    return plain
