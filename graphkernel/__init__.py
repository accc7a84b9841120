"""graphkernel: fuses tensor graphs into proven kernels.

Rooms, lowest floor first: ``errors``, ``escape``, ``limits``, ``doors``, ``mapped``, ``environment``, ``options`` (with
``flag_text``),
``catalogue``, ``decisions``, ``logs``, ``array_files``; ``ir``; ``ops``; ``cluster`` and ``expanders``; ``gradients``;
``patterns``; ``passes``; ``declarations``; ``pipeline``, ``hooks``, ``handoff``; ``runtime``, ``report``, ``packages``,
``driver``, ``recall``; ``bisect``, ``export``; ``frontends``; ``cli``. A floor imports only floors below.

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
    from graphkernel.ir.evaluate import evaluate
    from graphkernel.ir.graph import Graph
    from graphkernel.ir.text import show
    from graphkernel.options import Options
    from graphkernel.packages.read import load_compiled
    from graphkernel.recall import compile
    from graphkernel.report.explain import Explanation
    from graphkernel.report.report import Report
    from graphkernel.runtime.executable import Executable

__version__ = "0.1.0"

__all__ = [
    "trace", "spec", "load", "save", "load_compiled", "parse", "show", "optimize", "explain", "compile", "jit", "grad",
    "value_and_grad", "evaluate", "ops",
    "Graph", "Options", "Executable", "Report", "Explanation", "GraphKernelError",
]  # fmt: skip

_ROOMS: Mapping[str, str] = {
    "trace": "frontends.trace", "spec": "frontends.trace", "load": "frontends.known_models", "save": "frontends.load",
    "load_compiled": "packages.read",
    "parse": "frontends.load", "show": "ir.text", "optimize": "driver", "explain": "driver", "compile": "recall",
    "jit": "frontends.jit", "grad": "frontends.differentiate", "value_and_grad": "frontends.differentiate",
    "evaluate": "ir.evaluate", "Graph": "ir.graph", "Options": "options",
    "Executable": "runtime.executable", "Report": "report.report", "Explanation": "report.explain",
    "GraphKernelError": "errors",
}  # fmt: skip


def __getattr__(name: str) -> Any:  # any public object
    if name == "ops":
        return import_module("graphkernel.ops")
    if name not in _ROOMS:
        raise AttributeError(f"module 'graphkernel' has no attribute {name!r}; public: {', '.join(sorted(__all__))}")
    return getattr(import_module(f"graphkernel.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
