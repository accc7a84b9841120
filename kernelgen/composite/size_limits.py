"""What is too much for one kernel: said at once and clearly, before any analysis starts."""

from __future__ import annotations

from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.errors import UnsupportedError
from kernelgen.tensor.dims import Sym, product
from kernelgen.tensor.graph import Value

MOST_BYTES = 2**62
"""Of one tensor. Addresses and numbers of elements are 64-bit integers; the rest is room for sums of them."""
MOST_STEPS = 1_000
"""Of one kernel: operators, an operator of n operands counting as n - 1. Fused kernels have tens, the longest hundreds."""


def within_limits(desc: KernelDesc) -> None:
    """Raises UnsupportedError: ``too-large`` for a tensor that no address reaches, ``budget`` for too many operators."""
    steps = sum(max(1, len(node.args) - 1) for node in desc.operators)
    if steps > MOST_STEPS:
        raise UnsupportedError(
            "budget", f"{desc.name} has {steps} operators, at most {MOST_STEPS} make one kernel: split it"
        )
    for tensor in (*desc.inputs, *desc.outputs):
        _require_addressable(tensor, desc.name)
    for node in desc.operators:
        for value in node.outs:
            _require_addressable(value, desc.name)


def _require_addressable(tensor: Tensor | Value, kernel: str) -> None:
    known = product(dim for dim in tensor.shape if not isinstance(dim, Sym))
    if isinstance(known, int) and known * tensor.dtype.itemsize > MOST_BYTES:
        shape = " x ".join(map(str, tensor.shape))
        raise UnsupportedError(
            "too-large", f"{kernel}: {tensor.name} of {shape} {tensor.dtype} is beyond 64-bit addresses"
        )
