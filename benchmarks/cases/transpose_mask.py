"""x[b, s, h, d] -> [b, h, s, d], scaled and masked by row: attention's queries."""

import numpy as np

from benchmarks.case import Case
from graphkernel import ops

ORDER = (0, 2, 1, 3)

TRANSPOSE_MASK = Case(
    name="transpose_mask",
    shapes={"x": (8, 512, 12, 64), "mask": (8, 1, 512, 1)},
    tiny={"x": (2, 5, 3, 8), "mask": (2, 1, 5, 1)},
    ours=lambda x, mask: ops.add(ops.mul(ops.transpose(x, ORDER), 0.125), mask),
    numpy=lambda x, mask: np.transpose(x, ORDER) * 0.125 + mask,
    torch=lambda torch: lambda x, mask: (x.permute(ORDER) * 0.125 + mask).contiguous(),
)
