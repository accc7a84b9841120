"""The sum over rows: a bias gradient."""

from benchmarks.case import Case
from graphkernel import ops

COLUMN_SUM = Case(
    name="column_sum",
    shapes={"x": (8192, 4096)},
    tiny={"x": (17, 33)},
    ours=lambda x: ops.reduce_sum(x, axis=0),
    numpy=lambda x: x.sum(0),
    torch=lambda torch: lambda x: x.sum(0),
)
