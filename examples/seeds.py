"""The two programs of MindSpore's graph kernel tutorial, at every level: ``python -m examples.seeds``.

Both become one kernel from level 1 on, and print what the tutorial prints: 2.0 and -0.015104.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import graphkernel as gk
from graphkernel import ops


class MyNet:
    """x * 2 + 1."""

    def construct(self, x: Any) -> Any:
        """One tensor to one."""
        a = ops.mul(x, 2.0)
        return ops.add(a, 1.0)


class MyOp:
    """An operator made of others: (x - y) * x."""

    def construct(self, x: Any, y: Any) -> Any:
        """Two tensors to one."""
        a = ops.sub(x, y)
        return ops.mul(a, x)


class MyOpNet:
    """The operator on (2x)^3 and y."""

    def __init__(self) -> None:
        self.my_op = MyOp()

    def construct(self, x: Any, y: Any) -> Any:
        """Two tensors to one."""
        a = ops.mul(x, 2.0)
        b = ops.pow(a, 3.0)
        return self.my_op.construct(b, y)


def graphs() -> tuple[tuple[gk.Graph, tuple[np.ndarray, ...], float], ...]:
    """Each program with its inputs and the number that every element of its result is."""
    square = gk.spec((4, 4), "float32")
    half, fifth, third = (np.full((4, 4), value, np.float32) for value in (0.5, 0.2, 0.3))
    return (
        (gk.trace(MyNet(), square), (half,), 2.0),
        (gk.trace(MyOpNet(), square, square), (fifth, third), -0.015104),
    )


def main() -> None:
    """Runs both at all levels."""
    for graph, inputs, expected in graphs():
        for level in range(4):
            executable = gk.compile(graph, opt_level=level)
            (result,) = executable(*inputs)
            kernels = executable.report.kernel_calls
            print(f"{graph.name} at level {level}: {result[0, 0]:.6f} (expected {expected}), {kernels} kernels")
        print(gk.optimize(graph))


if __name__ == "__main__":
    main()
