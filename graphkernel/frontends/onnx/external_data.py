"""The data beside an ONNX model, before it is read: as much as its tensors hold, and no more than fits in memory.

A file of a terabyte costs nothing where it has holes, and a thousand tensors may name the same gigabyte of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from graphkernel.errors import FrontendError
from graphkernel.frontends.onnx.check import all_nodes

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

FOUR_BITS = frozenset({"INT4", "UINT4", "FLOAT4E2M1"})
TWO_BITS = frozenset({"INT2", "UINT2"})
_WITHOUT_BOUND = 1 << 62
_LIMITS_OF_CONTAINERS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def check_external(model: ModelProto, folder: Path) -> None:
    """Raises ``FrontendError`` where a tensor names more or less data than it holds, or all name more than memory holds."""
    total = 0
    for tensor in _tensors(model):
        if tensor.data_location == tensor.EXTERNAL:
            wanted, named = _bytes_of(tensor), _named_bytes(tensor, folder)
            if named != wanted:
                raise FrontendError(f"tensor {tensor.name} holds {wanted} bytes, the data that it names has {named}")
            total += wanted
    if total > (most := memory_bytes()):
        raise FrontendError(f"the data beside the model takes {total >> 20} MiB, there are {most >> 20} MiB of memory")


def memory_bytes() -> int:
    """The memory of the machine, or of the container."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else []
    for path in _LIMITS_OF_CONTAINERS:
        try:
            found.append(int(Path(path).read_text()))
        except (OSError, ValueError):  # none, or its limit is "max"
            continue
    return min(found, default=_WITHOUT_BOUND)


def _tensors(model: ModelProto) -> Iterator[TensorProto]:
    yield from model.graph.initializer
    yield from inner_tensors(model)


def inner_tensors(model: ModelProto) -> Iterator[TensorProto]:
    """The tensors of attributes and bodies."""
    for node in all_nodes(model.graph):
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors) if attribute.HasField("t") else attribute.tensors
            for body in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                yield from body.initializer


def _bytes_of(tensor: TensorProto) -> int:
    """What its elements take in a file."""
    from onnx import TensorProto, helper

    name = TensorProto.DataType.Name(tensor.data_type)
    count = prod(tensor.dims)
    if name in FOUR_BITS | TWO_BITS:
        in_a_byte = 2 if name in FOUR_BITS else 4
        return -(-count // in_a_byte)
    return count * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize


def _named_bytes(tensor: TensorProto, folder: Path) -> int:
    """What would be read: the given length, or from the offset to the end of the file."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    if "length" in entries:
        return int(entries["length"])
    return (folder / entries.get("location", "")).stat().st_size - int(entries.get("offset", 0))
