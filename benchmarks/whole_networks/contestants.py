"""Who runs a network. Each is a value that is sent to a process, where ``make`` loads the network; nothing is imported before.

A peer is in its best mode: the sessions of onnxruntime once with threads that spin between operators and once without, the
code of torch.compile with weights frozen into it and called from C++, OpenVINO for latency in float32.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

OURS = "graphkernel"
Run = Callable[..., Sequence[Any]]


@dataclass(frozen=True)
class Ours:
    """As ``graphkernel.compile`` makes it."""

    model: Path
    threads: int

    def make(self, tell: object = None) -> tuple[Run, None]:
        """Loads and compiles."""
        import graphkernel as gk

        return gk.compile(gk.load(self.model), threads=self.threads), None


@dataclass(frozen=True)
class OnnxRuntime:
    """A session. ``spins``: its threads look for work between operators instead of going to sleep."""

    model: Path
    threads: int
    spins: bool = True

    def make(self, tell: object = None) -> tuple[Run, None]:
        """Makes the session."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = self.threads, 4
        options.add_session_config_entry("session.intra_op.allow_spinning", str(int(self.spins)))
        session = onnxruntime.InferenceSession(self.model, options, providers=["CPUExecutionProvider"])
        names = [each.name for each in session.get_inputs()]
        return lambda *arrays: session.run(None, dict(zip(names, arrays, strict=True))), None


@dataclass(frozen=True)
class OpenVino:
    """A compiled model, one request at a time."""

    model: Path
    threads: int

    def make(self, tell: object = None) -> tuple[Run, None]:
        """Reads and compiles the model."""
        import openvino

        settings = {
            "INFERENCE_NUM_THREADS": self.threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"
        }  # fmt: skip
        request = openvino.Core().compile_model(str(self.model), "CPU", settings).create_infer_request()
        count = len(request.model_outputs)

        def run(*arrays: np.ndarray) -> Sequence[Any]:
            request.infer(list(arrays), share_inputs=True, share_outputs=True)
            return [request.get_output_tensor(number).data for number in range(count)]

        return run, None


@dataclass(frozen=True)
class TorchCompile:
    """The network as ``torch.export`` kept it beside the ONNX file."""

    model: Path
    threads: int

    def make(self, tell: object = None) -> tuple[Run, None]:
        """Loads the network; the first run compiles it."""
        import torch
        from torch._inductor import config

        torch.set_num_threads(self.threads)
        config.freezing = config.cpp_wrapper = True
        network = torch.compile(torch.export.load(self.model.with_suffix(".pt2")).module())

        def run(*arrays: np.ndarray) -> Sequence[Any]:
            with torch.no_grad():
                found = network(*map(torch.from_numpy, arrays))
            return [each.numpy() for each in (found if isinstance(found, tuple) else (found,))]

        return run, None


Contestant = Ours | OnnxRuntime | OpenVino | TorchCompile


def offers(model: Path, threads: int) -> Iterator[tuple[str, Contestant]]:
    """Those that can run here."""
    yield OURS, Ours(model, threads)
    yield "onnxruntime", OnnxRuntime(model, threads)
    if threads > 1:
        yield "onnxruntime, not spinning", OnnxRuntime(model, threads, spins=False)
    if find_spec("openvino") is not None:
        yield "openvino", OpenVino(model, threads)
    if model.with_suffix(".pt2").exists():
        yield "torch.compile", TorchCompile(model, threads)
