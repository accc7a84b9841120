"""gelu(x + bias) with tanh: the activation of a transformer's feed-forward layer, and the same where only the call counts."""

import numpy as np

from benchmarks.case import Case
from graphkernel import ops

SCALE = np.sqrt(2 / np.pi)


def _numpy(x, bias):
    t = x + bias
    return 0.5 * t * (1 + np.tanh(SCALE * (t + 0.044715 * t**3)))


def _torch(torch):
    return lambda x, bias: torch.nn.functional.gelu(x + bias, approximate="tanh")


def _case(name, rows, columns, tiny):
    return Case(
        name=name,
        shapes={"x": (rows, columns), "bias": (columns,)},
        tiny={"x": tiny, "bias": tiny[-1:]},
        ours=lambda x, bias: ops.gelu(ops.add(x, bias), approximate="tanh"),
        numpy=_numpy,
        torch=_torch,
    )


BIAS_GELU = _case("bias_gelu", 4096, 3072, tiny=(8, 33))
BIAS_GELU_SMALL = _case("bias_gelu_small", 64, 64, tiny=(4, 8))
