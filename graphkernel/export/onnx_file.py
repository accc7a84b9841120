"""Writes a graph as an ONNX file; the weights of a model beyond 2 GB go into a file beside it, as ONNX has it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from graphkernel.errors import FrontendError
from graphkernel.export.onnx_model import onnx_model
from kernelgen.system.bounded_io import write_whole, writing
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import dtype

MOST_BYTES_INSIDE = 2**31 - 2**24  # protobuf reads no more than 2 GB; nodes need a little
ALIGNMENT = 64


def save_onnx(graph: Graph, path: str | os.PathLike[str], most_bytes_inside: int = MOST_BYTES_INSIDE) -> None:
    """Writes the model of a graph. With more bytes of weights than given they go into ``PATH.data`` beside it.

    Files appear whole or not at all. Raises ``OptionError`` for an operator that ONNX has no form for, and
    ``FrontendError`` for what the disk refuses.
    """
    from onnx import numpy_helper

    file = Path(path)
    model = onnx_model(graph)
    beside: dict[str, np.ndarray] = {}
    if sum(array.nbytes for array in model.weights.values()) > most_bytes_inside:
        beside = {name: array for name, array in model.weights.items() if not dtype(array.dtype).is_opaque}
        model.proto.graph.initializer.extend(_written_beside(beside, file.with_name(f"{file.name}.data")))
    for name, array in model.weights.items():
        if name not in beside:
            model.proto.graph.initializer.append(numpy_helper.from_array(array, name))
    write_whole(file, model.proto.SerializeToString(deterministic=True), FrontendError)


def _written_beside(weights: Mapping[str, np.ndarray], file: Path) -> list[Any]:
    """Initializers whose content is in the file, each at a multiple of the alignment."""
    from onnx import TensorProto, helper

    found: list[Any] = []
    with writing(file, FrontendError) as stream:
        for name, array in weights.items():
            stream.write(b"\0" * (-stream.tell() % ALIGNMENT))
            place = {"location": file.name, "offset": str(stream.tell()), "length": str(array.nbytes)}
            tensor = TensorProto(name=name, dims=array.shape, data_location=TensorProto.EXTERNAL)
            tensor.data_type = helper.np_dtype_to_tensor_dtype(array.dtype)
            for key, value in place.items():
                tensor.external_data.add(key=key, value=value)
            stream.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
            found.append(tensor)
    return found
