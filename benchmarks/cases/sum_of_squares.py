"""The sum of squares of all elements: a gradient norm. One accumulator in float32 would stop growing at 2^24."""

from benchmarks.case import Case
from graphkernel import ops

SUM_OF_SQUARES = Case(
    name="sum_of_squares",
    shapes={"x": (64 * 2**20,)},
    tiny={"x": (1000,)},
    ours=lambda x: ops.reduce_sum(ops.mul(x, x)),
    numpy=lambda x: (x * x).sum(),
    torch=lambda torch: lambda x: (x * x).sum(),
)
