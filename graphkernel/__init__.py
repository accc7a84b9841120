"""graphkernel: fuses tensor graphs into proven kernels.

Rooms: cli, cluster, communication, expanders, export, frontends, gradients, mindspore, ops, packages, passes, patterns, report,
onnx_writing, runtime, system.
Reading order: errors, catalogue, conditions, decisions, handoff, options, declarations, pipeline, elsewhere, recall,
step_hooks, building, driver, bisect.

Importing the package is light: each public name loads its room on first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphkernel import ops
    from graphkernel.driver import explain, optimize
    from graphkernel.errors import GraphKernelError
    from graphkernel.frontends.differentiate import grad, value_and_grad
    from graphkernel.frontends.jit import jit
    from graphkernel.frontends.known_models import load
    from graphkernel.frontends.load import parse, save
    from graphkernel.frontends.trace import spec, trace
    from graphkernel.options import Options
    from graphkernel.packages.read import load_compiled
    from graphkernel.recall import compile
    from graphkernel.report.explain import Explanation
    from graphkernel.report.report import Report
    from graphkernel.runtime.executable import Executable
    from kernelgen.tensor.evaluation.evaluate import evaluate
    from kernelgen.tensor.graph import Graph
    from kernelgen.tensor.text import show

__version__ = "0.1.0"

__all__ = [
    "trace", "spec", "load", "save", "load_compiled", "parse", "show", "optimize", "explain", "compile", "jit", "grad",
    "value_and_grad", "evaluate", "ops",
    "Graph", "Options", "Executable", "Report", "Explanation", "GraphKernelError",
]  # fmt: skip

_ROOMS: Mapping[str, str] = {
    "trace": "graphkernel.frontends.trace",
    "spec": "graphkernel.frontends.trace",
    "load": "graphkernel.frontends.known_models",
    "save": "graphkernel.frontends.load",
    "load_compiled": "graphkernel.packages.read",
    "parse": "graphkernel.frontends.load",
    "show": "kernelgen.tensor.text",
    "optimize": "graphkernel.driver",
    "explain": "graphkernel.driver",
    "compile": "graphkernel.recall",
    "jit": "graphkernel.frontends.jit",
    "grad": "graphkernel.frontends.differentiate",
    "value_and_grad": "graphkernel.frontends.differentiate",
    "evaluate": "kernelgen.tensor.evaluation.evaluate",
    "Graph": "kernelgen.tensor.graph",
    "Options": "graphkernel.options",
    "Executable": "graphkernel.runtime.executable",
    "Report": "graphkernel.report.report",
    "Explanation": "graphkernel.report.explain",
    "GraphKernelError": "graphkernel.errors",
}  # fmt: skip


def __getattr__(name: str) -> Any:  # any public object
    if name == "ops":
        return import_module("graphkernel.ops")
    if name not in _ROOMS:
        raise AttributeError(f"module 'graphkernel' has no attribute {name!r}; public: {', '.join(sorted(__all__))}")
    return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
