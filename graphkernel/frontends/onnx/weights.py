"""The weights of an ONNX file, each in memory once: read from the file into its array, or mapped from the data beside it.

A model in protobuf's form is read whole, and copied whole into its messages, before one of its tensors can be copied
into an array. So the elements of large tensors are left out when the file is read, and follow when all else is known.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from io import BufferedReader
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphkernel.errors import FrontendError
from graphkernel.frontends.onnx.check import SMALL_TENSOR, array_of
from graphkernel.frontends.onnx.external_data import check_external, inner_tensors
from kernelgen.system.bounded_io import opened
from kernelgen.system.limits import LIMITS

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

GRAPH, INITIALIZER, RAW_DATA = 7, 5, 9  # numbers of fields: of a model, of a graph, of a tensor
VARINT, EIGHT_BYTES, DELIMITED, FOUR_BYTES = 0, 1, 2, 5  # how protobuf writes a field
Weights = dict[str, np.ndarray]


def read_model(path: str | os.PathLike[str]) -> tuple[ModelProto, Weights]:
    """The model in a file, and the large initializers that it comes without, by name.

    Data beside the model is mapped where it can be: it must not be cut short while the graph lives. Raises
    ``FrontendError``.
    """
    import onnx

    with ExitStack() as stack:
        file = stack.enter_context(opened(path, FrontendError, LIMITS.model_bytes))
        try:
            light = _Light(file)
            model = onnx.load_model_from_string(light.content)
            check_external(model, Path(path).parent)
            for tensor in inner_tensors(model):
                _load_external(tensor, Path(path).parent)
            return model, _weights(model, light, Path(path).parent)
        except Exception as error:  # protobuf, the file system and onnx's checks of external data have no common class
            raise FrontendError(f"{path}: cannot be read as an ONNX model: {error}") from error


def places_of_weights(path: str | os.PathLike[str]) -> tuple[tuple[int, int], ...] | None:
    """Where the elements of large initializers begin and end in the file; None for a model with data in other files."""
    import onnx

    with opened(path, FrontendError, LIMITS.model_bytes) as file:
        light = _Light(file)
    model = onnx.load_model_from_string(light.content)
    tensors = (*model.graph.initializer, *inner_tensors(model))
    is_beside = any(tensor.data_location == tensor.EXTERNAL for tensor in tensors)
    return None if is_beside else tuple(light.left_out.values())


def _weights(model: ModelProto, light: _Light, folder: Path) -> Weights:
    found: Weights = {}
    for position, tensor in enumerate(model.graph.initializer):
        if tensor.data_location == tensor.EXTERNAL:
            found[tensor.name] = _mapped(tensor, folder)
        elif position in light.left_out:
            found[tensor.name] = light.array(position, tensor)
            tensor.data_location = tensor.EXTERNAL  # so that nobody takes it for a tensor of no elements
    return found


def _mapped(tensor: TensorProto, folder: Path) -> np.ndarray:
    """The data beside a model, after onnx's own checks of where it lies; :func:`check_external` looked at its size."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    layout, offset = _layout(tensor), int(entries.get("offset", 0))
    if layout is None or offset % layout[1].itemsize:
        _load_external(tensor, folder)
        return array_of(tensor, f"initializer {tensor.name}")
    _load_external(_first_byte(tensor, entries["location"], offset), folder)
    shape, dtype = layout
    return np.memmap(folder / entries["location"], dtype, "r", offset, shape).view(np.ndarray)


def _first_byte(tensor: TensorProto, location: str, offset: int) -> TensorProto:
    from onnx import TensorProto

    first = TensorProto(name=tensor.name, data_type=TensorProto.UINT8, dims=[1], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", str(offset)), ("length", "1")):
        first.external_data.add(key=key, value=value)
    return first


def _load_external(tensor: TensorProto, folder: Path) -> None:
    from onnx.external_data_helper import load_external_data_for_tensor

    if tensor.data_location == tensor.EXTERNAL:
        load_external_data_for_tensor(tensor, os.fspath(folder))
        tensor.data_location = tensor.DEFAULT


def _layout(tensor: TensorProto) -> tuple[tuple[int, ...], np.dtype[Any]] | None:
    """Shape and type of its array where the elements lie in a file as they do in memory."""
    from onnx import TensorProto, helper

    packed = ("STRING", "INT4", "UINT4", "FLOAT4E2M1", "INT2", "UINT2")
    if TensorProto.DataType.Name(tensor.data_type) in packed or 0 in tensor.dims:
        return None
    return tuple(tensor.dims), helper.tensor_dtype_to_np_dtype(tensor.data_type)


@dataclass
class _Light:
    """A model's file without the elements of large initializers; these are left out by position."""

    file: BufferedReader
    content: bytes = b""
    left_out: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    _seen: int = 0

    def __post_init__(self) -> None:
        size = self.file.seek(0, os.SEEK_END)
        try:
            self.content = b"".join(self._model(size))
        except ValueError:  # no model; onnx says what it is instead
            self.left_out.clear()
            self.content = self._between(0, size)

    def array(self, position: int, tensor: TensorProto) -> np.ndarray:
        """The elements of an initializer, read into their array."""
        start, stop = self.left_out[position]
        layout = _layout(tensor)
        if layout is None or stop - start != prod(layout[0]) * layout[1].itemsize:
            tensor.raw_data = self._between(start, stop)
            return array_of(tensor, f"initializer {tensor.name}")
        array = np.empty(*layout)
        self.file.seek(start)
        self.file.readinto(array.reshape(-1).view(np.uint8).data)
        return array

    def _model(self, end: int) -> Iterator[bytes]:
        for number, start, body, stop in self._fields(0, end):
            yield _message(GRAPH, self._graph(body, stop)) if number == GRAPH else self._between(start, stop)

    def _graph(self, begin: int, end: int) -> Iterator[bytes]:
        for number, start, body, stop in self._fields(begin, end):
            if number != INITIALIZER:
                yield self._between(start, stop)
                continue
            yield _message(INITIALIZER, self._tensor(body, stop))
            self._seen += 1

    def _tensor(self, begin: int, end: int) -> Iterator[bytes]:
        for number, start, body, stop in self._fields(begin, end):
            if number == RAW_DATA and stop - body > SMALL_TENSOR:
                self.left_out[self._seen] = (body, stop)
                continue
            if number == RAW_DATA:  # of several the last counts
                self.left_out.pop(self._seen, None)
            yield self._between(start, stop)

    def _fields(self, begin: int, end: int) -> Iterator[tuple[int, int, int, int]]:
        """Number, start, start of the content and end of each field of a message."""
        start = begin
        while start < end:
            self.file.seek(start)
            number, kind = divmod(self._varint(), 8)
            length = self._varint() if kind in (DELIMITED, VARINT) else {EIGHT_BYTES: 8, FOUR_BYTES: 4}.get(kind, end)
            body = self.file.tell()
            stop = body if kind == VARINT else body + length
            if stop > end:
                raise ValueError("a field reaches beyond its message")
            yield number, start, body, stop
            start = stop

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.file.read(1)
            if not byte:
                break
            value |= (byte[0] & 127) << shift
            if byte[0] < 128:
                return value
        raise ValueError("no number")

    def _between(self, start: int, stop: int) -> bytes:
        self.file.seek(start)
        return self.file.read(stop - start)


def _message(number: int, parts: Iterator[bytes]) -> bytes:
    body = b"".join(parts)
    head, rest = bytearray([number << 3 | DELIMITED]), len(body)
    while rest > 127:
        head.append(rest & 127 | 128)
        rest >>= 7
    return bytes((*head, rest)) + body
