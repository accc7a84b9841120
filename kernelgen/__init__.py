"""kernelgen: fused kernels as native code. Importing it is light; each public name loads its room on first use.

Reading order: errors, escape, limits, notices, cores, task_limits, identifiers, dtypes, dims, attrs, desc and options; files,
doors, own_folder, object_cache; nest, plan (with strict_json); vocabulary; desc_json (with desc_cursor, desc_operands,
desc_symbols, desc_layouts, desc_inplace), desc_write, desc_rules (with desc_axes, desc_slices, desc_windows, desc_sparse),
desc_check, desc_bind, desc_limits, native, meaning, enclosure, samples, samples_scale (with samples_index), trials; normalise,
poly, targets and checker; trail, stages, kernel; driver, hot_sizes, tune; verify; kit; command_line, __main__.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelgen.desc import KernelDesc, OpDesc, TensorDesc
    from kernelgen.desc_check import check
    from kernelgen.desc_json import load_desc
    from kernelgen.desc_write import dump_desc
    from kernelgen.driver import compile
    from kernelgen.errors import DescError, KernelgenError, UnsupportedError
    from kernelgen.hot_sizes import HotSizes
    from kernelgen.kernel import Kernel
    from kernelgen.meaning import reference
    from kernelgen.plan import Plan

__version__ = "0.1.0"

__all__ = [
    "load_desc", "dump_desc", "check", "compile", "reference",
    "HotSizes", "Kernel", "KernelDesc", "OpDesc", "TensorDesc", "Plan",
    "KernelgenError", "DescError", "UnsupportedError",
]  # fmt: skip

_ROOMS = {
    "load_desc": "desc_json", "dump_desc": "desc_write", "check": "desc_check", "compile": "driver",
    "reference": "meaning", "HotSizes": "hot_sizes", "Kernel": "kernel", "KernelDesc": "desc", "OpDesc": "desc", "Plan": "plan",
    "TensorDesc": "desc", "KernelgenError": "errors", "DescError": "errors", "UnsupportedError": "errors",
}  # fmt: skip


def __getattr__(name: str) -> Any:  # any public object
    if name not in _ROOMS:
        raise AttributeError(f"module 'kernelgen' has no attribute {name!r}; public: {', '.join(sorted(_ROOMS))}")
    return getattr(import_module(f"kernelgen.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
