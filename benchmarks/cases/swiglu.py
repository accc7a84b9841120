"""silu(a) * b: the gate of a large language model's feed-forward layer."""

import numpy as np

from benchmarks.case import Case
from graphkernel import ops

SWIGLU = Case(
    name="swiglu",
    shapes={"a": (4096, 11008), "b": (4096, 11008)},
    tiny={"a": (8, 33), "b": (8, 33)},
    ours=lambda a, b: ops.mul(ops.silu(a), b),
    numpy=lambda a, b: a / (1 + np.exp(-a)) * b,
    torch=lambda torch: lambda a, b: torch.nn.functional.silu(a) * b,
)
