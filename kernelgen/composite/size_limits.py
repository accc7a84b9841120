"""What is too much for one kernel: said at once and clearly, before any analysis starts."""

from __future__ import annotations

from kernelgen.composite.description import KernelDesc, OpDesc, TensorDesc
from kernelgen.errors import UnsupportedError
from kernelgen.tensor.dims import Sym, product

MOST_BYTES = 2**62
"""Of one tensor. Addresses and numbers of elements are 64-bit integers; the rest is room for sums of them."""
MOST_STEPS = 1_000
"""Of one kernel: operators, an operator of n operands counting as n - 1. Fused kernels have tens, the longest hundreds."""


def within_limits(desc: KernelDesc) -> None:
    """Raises UnsupportedError: ``too-large`` for a tensor that no address reaches, ``budget`` for too many operators."""
    steps = sum(max(1, len(op.inputs) - 1) for op in desc.ops)
    if steps > MOST_STEPS:
        raise UnsupportedError(
            "budget", f"{desc.name} has {steps} operators, at most {MOST_STEPS} make one kernel: split it"
        )
    for tensor in (*desc.inputs, *desc.outputs):
        _require_addressable(tensor, desc.name)
    for op in desc.ops:
        _require_results(op, desc.name)


def _require_results(op: OpDesc, kernel: str) -> None:
    for tensor in op.outputs:
        _require_addressable(tensor, kernel)


def _require_addressable(tensor: TensorDesc, kernel: str) -> None:
    known = product(dim for dim in tensor.shape if not isinstance(dim, Sym))
    if isinstance(known, int) and known * tensor.dtype.itemsize > MOST_BYTES:
        shape = " x ".join(map(str, tensor.shape))
        raise UnsupportedError(
            "too-large", f"{kernel}: {tensor.name} of {shape} {tensor.dtype} is beyond 64-bit addresses"
        )
