"""compile(desc, target): the story of a kernel in one function."""

from __future__ import annotations

import time

from kernelgen.desc import KernelDesc
from kernelgen.dims import Sym, product
from kernelgen.kernel import Kernel, Resources
from kernelgen.nest.nodes import Nest, Space
from kernelgen.poly.map_cpu import CpuPlan
from kernelgen.stages import lower
from kernelgen.targets import Target, find_target


def compile(desc: KernelDesc, target: str | Target = "cpu", plan: CpuPlan | None = None) -> Kernel:
    """Lowers, proves, prints and loads a description.

    ``plan`` overrides the mapping's choices. Raises UnsupportedError (with a reason code) for what the target cannot
    do, ProofError when a proof fails, BackendUnavailable when the target needs something that is not installed.
    """
    found = find_target(target)
    lowered = lower(desc, plan or CpuPlan())
    start = time.perf_counter()
    source = found.emit(lowered.nest)
    printed = time.perf_counter()
    entry = found.load(source, lowered.nest)
    loaded = time.perf_counter()
    times = {**lowered.milliseconds, "emit": (printed - start) * 1e3, "load": (loaded - printed) * 1e3}
    resources = Resources(times, _bytes(lowered.nest, workspace=False), _bytes(lowered.nest, workspace=True))
    return Kernel(desc, found.name, source, lowered, entry, resources)


def _bytes(nest: Nest, workspace: bool) -> int | None:
    total = 0
    for buffer in nest.buffers:
        size = product(buffer.shape)
        if isinstance(size, Sym):
            return None
        total += size * buffer.dtype.itemsize if (buffer.space is Space.WORKSPACE) == workspace else 0
    return total
