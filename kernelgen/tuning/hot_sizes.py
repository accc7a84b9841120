"""A kernel for all sizes with kernels of their own for the sizes that the user asks for.

    kernel = HotSizes(compile(desc))
    kernel(x); kernel(x); kernel(y)                        all sizes: one kernel; calls are counted by size
    kernel = kernel.specialised(*kernel.hottest(1))        compiles one more, for the sizes of x
    kernel(x); kernel(y)                                   the new one; the one for all sizes

Nothing is measured and nothing is compiled unasked. At large sizes both kernels are about equally fast; a small inner extent
is where knowing it pays, because loops over it are unrolled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kernelgen.composite.bind_sizes import bind
from kernelgen.composite.specialize import specialize
from kernelgen.driver import compile
from kernelgen.errors import ArgumentError
from kernelgen.kernel import Kernel

Sizes = Mapping[str, int]
Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class HotSizes:
    """``kernel(*inputs, out=None)``: called like a Kernel. ``special`` holds kernels by the shapes of their inputs."""

    general: Kernel
    special: Mapping[Shapes, Kernel] = field(default_factory=dict[Shapes, Kernel])
    calls: Counter[Shapes] = field(default_factory=Counter[Shapes])

    def __call__(self, *inputs: Any, out: Sequence[Any] | None = None) -> tuple[np.ndarray, ...]:
        """Runs the kernel of these sizes, else the one for all. Raises ArgumentError as a Kernel does."""
        shapes = tuple([np.shape(array) for array in inputs])
        results = self.special.get(shapes, self.general)(*inputs, out=out)
        self.calls[shapes] += 1
        return results

    def hottest(self, count: int = 1) -> tuple[Sizes, ...]:
        """The sizes that were called most, the most frequent first; of equal ones those that came first."""
        return tuple(bind(self.general.desc, shapes) for shapes, _ in self.calls.most_common(count))

    def specialised(self, *sizes: Sizes) -> HotSizes:
        """The same with one more kernel for each of these sizes; calls go on being counted together.

        Raises ArgumentError when a symbol has no size or is unknown, and what ``compile`` raises.
        """
        desc, more = self.general.desc, dict[Shapes, Kernel]()
        for each in sizes:
            if set(each) != set(desc.symbols):
                raise ArgumentError(
                    f"{desc.name} has the symbols {', '.join(desc.symbols)}, got {', '.join(sorted(each))}"
                )
            fixed = specialize(desc, each)
            shapes = tuple(tuple(int(dim) for dim in tensor.shape) for tensor in fixed.inputs)  # pyright: ignore[reportArgumentType]  # specialised
            more[shapes] = compile(
                fixed, self.general.target, replace(self.general.lowered.plan, bands=None, code=None)
            )
        return replace(self, special={**self.special, **more})
