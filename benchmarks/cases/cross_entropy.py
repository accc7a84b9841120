"""Mean binary cross entropy with logits: max(x, 0) - x * y + log(1 + exp(-|x|))."""

import numpy as np

from benchmarks.case import Case
from graphkernel import ops


def _ours(x, y):
    tail = ops.log1p(ops.exp(ops.neg(ops.abs(x))))
    return ops.reduce_mean(ops.add(ops.sub(ops.maximum(x, 0.0), ops.mul(x, y)), tail))


CROSS_ENTROPY = Case(
    name="cross_entropy",
    shapes={"x": (8 * 2**20,), "y": (8 * 2**20,)},
    tiny={"x": (1000,), "y": (1000,)},
    ours=_ours,
    numpy=lambda x, y: (np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))).mean(),
    torch=lambda torch: torch.nn.functional.binary_cross_entropy_with_logits,
)
