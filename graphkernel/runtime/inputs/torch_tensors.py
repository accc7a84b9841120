"""Tensors of torch at the border. torch is never imported here: whoever made a tensor has imported it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from graphkernel.errors import InputError
from kernelgen.tensor.types import dtype


def is_torch(given: object) -> bool:
    """Whether it is a tensor of torch, or of a class derived from that."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(given, getattr(torch, "Tensor", ()))


def check_tensor(given: Any, name: str) -> None:
    """Raises ``InputError`` for tensors whose memory does not say all: gradients would stop, or signs be lost, in silence."""
    torch = sys.modules["torch"]
    if given.requires_grad and torch.is_grad_enabled():
        raise InputError(
            f"input {name} requires a gradient, and results of compiled kernels have none: give x.detach(), or call inside of "
            "torch.no_grad()"
        )
    if given.layout is not torch.strided or given.is_meta or given.is_quantized:
        kind = "meta" if given.is_meta else "quantized" if given.is_quantized else str(given.layout)
        raise InputError(f"input {name} is a {kind} tensor, which has no plain memory; give a dense one")
    if given.is_neg() or given.is_conj():
        raise InputError(f"input {name} is a view that negates or conjugates; give x.resolve_neg().resolve_conj()")


def from_tensor(given: Any) -> np.ndarray:  # a tensor of torch
    """A checked tensor on the CPU as numpy, in the same memory."""
    plain = given.detach()
    if plain.dtype is sys.modules["torch"].bfloat16:  # which numpy's DLPack lacks
        return np.from_dlpack(plain.view(sys.modules["torch"].int16)).view(dtype("bfloat16").numpy)
    return np.from_dlpack(plain)


def to_tensor(array: np.ndarray) -> Any:
    """A result as a tensor in the same memory."""
    torch = sys.modules["torch"]
    if array.dtype.name == "bfloat16":
        return torch.from_dlpack(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_dlpack(array)
