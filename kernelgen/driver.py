"""compile(desc, target): the story of a kernel in one function."""

from __future__ import annotations

import sys

from kernelgen.desc import KernelDesc
from kernelgen.desc_limits import within_limits
from kernelgen.dims import Sym, product
from kernelgen.errors import ArgumentError, UnsupportedError
from kernelgen.kernel import Kernel, Resources
from kernelgen.nest.nodes import Nest, Space
from kernelgen.poly.map_cpu import CpuPlan
from kernelgen.stages import Lowered, lower
from kernelgen.targets import Target, find_target

DEEP = 20_000
"""Python frames; enough for a chain of as many operators as :mod:`kernelgen.desc_limits` lets through."""


def compile(desc: KernelDesc, target: str | Target = "cpu", plan: CpuPlan | None = None) -> Kernel:
    """Lowers, proves, prints and loads a description.

    ``plan`` overrides the mapping's choices. Raises UnsupportedError (with a reason code) for what the target cannot
    do, ProofError when a proof fails, BackendUnavailable when the target needs something that is not installed.
    """
    if not isinstance(desc, KernelDesc):  # pyright: ignore[reportUnnecessaryIsInstance]  # a path is easily given
        raise ArgumentError(f"compile takes a KernelDesc, got {type(desc).__name__}; kernelgen.load_desc reads one")
    within_limits(desc)
    found = find_target(target)
    lowered = _lowered(desc, plan or CpuPlan())
    nest, trail = lowered.nest, lowered.trail
    source = trail.run("source", lambda: found.emit(nest))
    entry = trail.run("load", lambda: found.load(source, nest))
    resources = Resources(trail.milliseconds, _bytes(nest, workspace=False), _bytes(nest, workspace=True))
    return Kernel(desc, found.name, source, lowered, entry, resources)


def _lowered(desc: KernelDesc, plan: CpuPlan) -> Lowered:
    """Long chains of operators nest deeper than Python's usual limit: they get a second try with a higher one."""
    try:
        return lower(desc, plan)
    except RecursionError:
        usual = sys.getrecursionlimit()
    sys.setrecursionlimit(max(usual, DEEP))
    try:
        return lower(desc, plan)
    except RecursionError:
        message = f"{desc.name}: expressions of its {len(desc.ops)} operators nest too deeply; split the kernel"
        raise UnsupportedError("budget", message) from None
    finally:
        sys.setrecursionlimit(usual)


def _bytes(nest: Nest, workspace: bool) -> int | None:
    total = 0
    for buffer in nest.buffers:
        size = product(buffer.shape)
        if isinstance(size, Sym):
            return None
        total += size * buffer.dtype.itemsize if (buffer.space is Space.WORKSPACE) == workspace else 0
    return total
