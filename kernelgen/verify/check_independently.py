"""The independent checker on a kernel: on its own nest, and on a small kernel of the same operators where that is large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kernelgen.checker import check
from kernelgen.composite.description import KernelDesc
from kernelgen.kernel import Kernel
from kernelgen.nest.nodes import Nest
from kernelgen.samples.smaller_shapes import scale_down
from kernelgen.verify.record import Record, Status

SMALL_BYTES = 24 << 10
"""Arguments of a kernel that the checker runs as a whole: tiles and strips of the usual sizes still have neighbours."""


def examined(record: Record, desc: KernelDesc, compiler: Callable[[KernelDesc], Any]) -> Record:
    """The record with what the checker has shown, or a failure with its fault."""
    found = check(_nest(compiler(desc)), desc)
    shown, faults = {"kernel": found.shown}, [found.fault]
    small = None if found.is_whole else scale_down(desc, SMALL_BYTES)
    if small is not None:
        again = check(_nest(compiler(small)), small)
        shown, faults = {**shown, "small": again.shown}, [*faults, again.fault]
    for fault in faults:
        if fault is not None:
            return replace(record, status=Status.FAILED, reason="checker", message=str(fault))
    return replace(record, checked=shown)


def _nest(kernel: Any) -> Nest:  # a Kernel; tests give verifiers other compilers
    return kernel.whole_nest if isinstance(kernel, Kernel) else kernel.nest
