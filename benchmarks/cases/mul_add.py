"""x * 2 + 1: nothing but memory."""

from benchmarks.case import Case
from graphkernel import ops

MUL_ADD = Case(
    name="mul_add",
    shapes={"x": (4096, 4096)},
    tiny={"x": (16, 24)},
    ours=lambda x: ops.add(ops.mul(x, 2.0), 1.0),
    numpy=lambda x: x * 2 + 1,
    torch=lambda torch: lambda x: x * 2 + 1,
)
