"""What is installed, what works without it, and the settings in force."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform

from graphkernel.cli.base import app
from graphkernel.declarations import plugins
from graphkernel.options import Environment
from graphkernel.report.table import print_table

NEEDS = {
    "numpy": "everything",
    "islpy": "kernels",
    "llvmlite": "kernels on the CPU",
    "onnx": "reading ONNX models",
    "onnxruntime": "operators that no kernel computes, at speed",
}
"""What doctor looks for, and what it is needed for."""


@app.command()
def doctor() -> None:
    """What is installed, what works without it, and the settings in force."""
    print_table(("package", "version", "for"), [(name, _version(name), use) for name, use in NEEDS.items()])
    environment = Environment.read()
    print_table(("setting", "value"), [
        ("python", platform.python_version()),
        ("machine", f"{platform.machine()} {platform.system()}"),
        ("MS_DEV_GRAPH_KERNEL_FLAGS", environment.flags if environment.flags is not None else "(not set)"),
        ("OMP_NUM_THREADS", environment.threads or "(not set)"),
        ("plugins", ", ".join(f"{plugin.name} ({plugin.module})" for plugin in plugins()) or "(none)"),
    ])  # fmt: skip


def _version(package: str) -> str:
    if importlib.util.find_spec(package) is None:
        return "not installed"
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "installed"
