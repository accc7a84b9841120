"""ONNX's numbers and names of data types, and arrays as onnxruntime takes and gives them.

Onnxruntime takes numbers that numpy itself does not know (int4, float8, bfloat16) as float32, which holds them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from kernelgen.tensor.boxes import Array, boxed, unboxed
from kernelgen.tensor.types import DType, dtype, is_whole

CARRIER = np.dtype(np.float32)
ELEMENTS: Mapping[str, tuple[int, str]] = {
    "float32": (1, "float"), "uint8": (2, ""), "int8": (3, ""), "uint16": (4, ""), "int16": (5, ""), "int32": (6, ""),
    "int64": (7, ""), "string": (8, ""), "bool": (9, ""), "float16": (10, ""), "float64": (11, "double"), "uint32": (12, ""),
    "uint64": (13, ""), "complex64": (14, ""), "complex128": (15, ""), "bfloat16": (16, ""),
    "float8_e4m3fn": (17, "float8e4m3fn"), "float8_e4m3fnuz": (18, "float8e4m3fnuz"), "float8_e5m2": (19, "float8e5m2"),
    "float8_e5m2fnuz": (20, "float8e5m2fnuz"), "uint4": (21, ""), "int4": (22, ""), "float4_e2m1fn": (23, "float4e2m1"),
    "float8_e8m0fnu": (24, "float8e8m0"), "uint2": (25, ""), "int2": (26, ""),
}  # fmt: skip
"""ONNX's number of each data type, and its name where it is not ours: executables of packages do without onnx."""
OURS = {theirs or own: own for own, (_, theirs) in ELEMENTS.items()}
CARRIED = frozenset(name for name, (number, _) in ELEMENTS.items() if number >= ELEMENTS["bfloat16"][0])
TENSOR = "tensor("


def is_carried(of: DType) -> bool:
    """Whether onnxruntime's arrays have no such elements, so that others carry them."""
    return _element(of) in CARRIED


def for_session(array: Array, of: DType) -> Any:  # what onnxruntime's run takes
    """What a session is given for an operand."""
    value = unboxed(array, of)
    return np.asarray(value).astype(CARRIER) if is_carried(of) else value


def from_session(value: Any, of: DType) -> Array:  # what onnxruntime's run gives
    """The array in a slot for a result of a session, or of onnx's evaluator."""
    if is_carried(of):
        value = np.asarray(value).astype(dtype(_element(of)).numpy)
    return boxed(value) if is_whole(of) else np.asarray(value, of.numpy if of.is_opaque else None)


def _element(of: DType) -> str:
    """What the elements of tensors are called here; empty where values are no tensors."""
    if not is_whole(of):
        return of.name
    return OURS.get(of.name[len(TENSOR) : -1], "") if of.name.startswith(TENSOR) else ""


def element_number(of: DType) -> int | None:
    """ONNX's number of the elements of tensors of this data type; None where values are no tensors."""
    return ELEMENTS[_element(of)][0] if _element(of) else None
