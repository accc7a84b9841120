"""x / rms(x) * gamma: the normalisation of large language models."""

import numpy as np

from benchmarks.case import Case
from graphkernel import ops

EPSILON = 1e-6


def _torch(torch):
    return lambda x, gamma: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPSILON) * gamma


RMS_NORM = Case(
    name="rms_norm",
    shapes={"x": (4096, 4096), "gamma": (4096,)},
    tiny={"x": (5, 33), "gamma": (33,)},
    ours=lambda x, gamma: ops.rms_norm(x, gamma, epsilon=EPSILON)[0],
    numpy=lambda x, gamma: x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * gamma,
    torch=_torch,
)
