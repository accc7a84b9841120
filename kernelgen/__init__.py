"""kernelgen: fused kernels as native code. Importing it is light; each public name loads its room on first use.

Rooms: ascendc, canonical, checker, composite, enclosure, farm, machines, native, nest, poly, samples, semantics, simulators,
system, targets, tensor, transforms, tuning, verify.
Reading order: errors, disjoint_sets, options, stage_log, strict_json, plan, nest_stages, stages, surroundings, kernel,
driver, ascend_package, compilation, made_elsewhere, kept_kernels, made_for_others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelgen.composite.check import check
    from kernelgen.composite.description import KernelDesc
    from kernelgen.composite.read import load_desc
    from kernelgen.composite.write import dump_desc
    from kernelgen.driver import compile
    from kernelgen.errors import DescError, KernelgenError, UnsupportedError
    from kernelgen.kernel import Kernel
    from kernelgen.plan import Plan
    from kernelgen.semantics import reference
    from kernelgen.tuning.hot_sizes import HotSizes

__version__ = "0.1.0"

__all__ = [
    "load_desc", "dump_desc", "check", "compile", "reference",
    "HotSizes", "Kernel", "KernelDesc", "Plan",
    "KernelgenError", "DescError", "UnsupportedError",
]  # fmt: skip

_ROOMS = {
    "load_desc": "composite.read", "dump_desc": "composite.write", "check": "composite.check", "compile": "driver",
    "reference": "semantics", "HotSizes": "tuning.hot_sizes",
    "Kernel": "kernel", "KernelDesc": "composite.description",
    "Plan": "plan", "KernelgenError": "errors",
    "DescError": "errors", "UnsupportedError": "errors",
}  # fmt: skip


def __getattr__(name: str) -> Any:  # any public object
    if name not in _ROOMS:
        raise AttributeError(f"module 'kernelgen' has no attribute {name!r}; public: {', '.join(sorted(_ROOMS))}")
    return getattr(import_module(f"kernelgen.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
