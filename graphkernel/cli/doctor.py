"""What is installed, what works without it, and the settings in force."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform

from graphkernel.cli.base import app, say, show
from graphkernel.declarations import plugins
from graphkernel.options import Environment, core_count
from graphkernel.report.page.counted import counted
from graphkernel.runtime.cuda.device import NoDevice, find_device
from graphkernel.runtime.kernel_cache import cache_folder, cached_kernels, owner_of, why_unusable
from kernelgen.options import LEAST_SECRET, shared_cache, shared_cache_url
from kernelgen.targets.cpu.runtime.llvm import detect_host

MISSING = "not installed"
NEEDS = {
    "numpy": "everything",
    "islpy": "kernels",
    "llvmlite": "kernels on the CPU",
    "onnx": "reading ONNX models",
    "onnxruntime": "operators that no kernel computes, at speed",
    "nvidia-cuda-nvrtc": "kernels on the GPU",
    "nvidia-cuda-runtime": "half types on the GPU",
    "cupy-cuda13x": "running on a CUDA device",
}
"""What doctor looks for, and what it is needed for."""

EXTRAS = {
    "gpu": ("nvidia-cuda-nvrtc", "nvidia-cuda-runtime", "cupy-cuda13x"),
}
"""Which extra of this package brings what is not always installed."""


@app.command()
def doctor() -> None:
    """What is installed, what works without it, and the settings in force."""
    versions = {name: _version(name) for name in NEEDS}
    show(("package", "version", "for"), [(name, versions[name], use) for name, use in NEEDS.items()])
    environment, device, folder = Environment.read(), find_device(), cache_folder()
    kernels, threads = cached_kernels(folder), environment.threads or core_count()
    show(("setting", "value"), [
        ("python", platform.python_version()),
        ("machine", f"{platform.machine()} {platform.system()}"),
        ("MS_DEV_GRAPH_KERNEL_FLAGS", environment.flags if environment.flags is not None else "(not set)"),
        ("threads of a kernel", f"{threads} of {core_count()} processors"),
        ("threads of onnxruntime", f"one pool of {threads} for all models of a process"),
        ("LLVM target", detect_host().cpu),
        ("kernel cache", folder or "(none)"),
        ("kernel cache, owner", owner_of(folder)),
        ("kernel cache, state", why_unusable(folder) or f"usable, {counted(len(kernels), 'kernel')}"),
        ("shared cache", shared_cache_url() or "(none)"),
        ("shared cache, state", _shared_state()),
        ("CUDA device", f"none: {device.reason}" if isinstance(device, NoDevice) else f"{device.name}, {device.arch}"),
        ("plugins", ", ".join(f"{plugin.name} ({plugin.module})" for plugin in plugins()) or "(none)"),
    ])  # fmt: skip
    for extra, packages in EXTRAS.items():
        missing = [package for package in packages if versions[package] == MISSING]
        if missing:
            say(f"for {', '.join(missing)}: pip install 'graphkernel[{extra}]'")


def _shared_state() -> str:
    if not shared_cache_url():
        return "none: GRAPHKERNEL_SHARED_CACHE is not set"
    shared = shared_cache()
    if shared is None:
        return f"not used: GRAPHKERNEL_SHARED_CACHE_KEY needs {LEAST_SECRET} characters or more"
    why = shared.why_out_of_reach()
    return f"out of reach: {why}" if why else "within reach"


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "installed" if importlib.util.find_spec(package.replace("-", "_")) is not None else MISSING
