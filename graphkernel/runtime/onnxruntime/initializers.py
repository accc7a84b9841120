"""The constants of a region's model: small ones in it, all others beside it, where onnxruntime reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from kernelgen.tensor.types import dtype

SMALL_BYTES = 1 << 10  # that the model itself holds: onnxruntime looks at shapes and scalars while it loads


def lies_beside(array: np.ndarray) -> bool:
    """Whether a constant stays out of the model: onnxruntime then reads it where it is."""
    return array.nbytes > SMALL_BYTES and array.flags.c_contiguous and not dtype(array.dtype).is_opaque


def initializer(array: np.ndarray, name: str) -> Any:  # an onnx message
    """A constant in a model; what :func:`lies_beside` is only named there."""
    from onnx import TensorProto, helper, numpy_helper

    if not lies_beside(array):
        return numpy_helper.from_array(array, name)
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    beside = TensorProto(name=name, data_type=kind, dims=array.shape, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", name), ("offset", "0"), ("length", str(array.nbytes))):
        beside.external_data.add(key=key, value=value)
    return beside
