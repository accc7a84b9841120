"""Three networks in int8 at their usual sizes: ``python -m benchmarks.peers.quantized_at_size FOLDER``.

Runs with an interpreter that has torch, transformers, torchvision and onnxruntime; nothing of ours is imported. Each is
quantized in three ways by onnxruntime's tools as they come: pairs of QuantizeLinear and DequantizeLinear (``qdq``), operators
on integers (``qoperator``), both with scales from a few random inputs, and rows quantized at run time (``dynamic``).
The files are those that :mod:`benchmarks.whole_networks` reads.
"""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownParameterType=false
# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from benchmarks.peers.exports import Inputs, Made, asked_for, written

CALIBRATIONS = 4
"""Random inputs that scales are taken from."""


def bert_base() -> Made:
    """The base size: 12 layers of 768, one text of 128 tokens.

    Biases are drawn too: equal ones would be one constant, which cannot have two scales.
    """
    from benchmarks.peers.transformers_at_size import encoder

    network, inputs = encoder(768, 12, 12, 3072)
    for name, weights in network.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(weights, std=0.02)
    return network, inputs


def resnet50() -> Made:
    """One image."""
    from benchmarks.peers.images_at_size import classifier

    return classifier("resnet50")


def mobilenet_v2() -> Made:
    """One image: windows of single channels between products."""
    from benchmarks.peers.images_at_size import classifier

    return classifier("mobilenet_v2")


NETWORKS: Mapping[str, Callable[[], Made]] = {
    "bert_base": bert_base,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet_v2,
}


class Drawn(CalibrationDataReader):
    """A few random inputs like the given ones: numbers of a normal distribution, indices in another order."""

    def __init__(self, inputs: Inputs) -> None:
        self.left = iter(range(CALIBRATIONS))
        self.inputs = inputs

    def get_next(self) -> dict[str, np.ndarray[Any, Any]] | None:
        """The next one; None behind the last."""
        seed = next(self.left, None)
        random = np.random.default_rng(seed)
        drawn = {name: _like(value.numpy(), random) for name, value in self.inputs.items()}
        return None if seed is None else drawn


def _like(given: np.ndarray[Any, Any], random: np.random.Generator) -> np.ndarray[Any, Any]:
    if given.dtype.kind == "f":
        return random.standard_normal(given.shape, np.float32)
    return random.permuted(given, axis=-1)


def quantized(name: str, folder: Path) -> None:
    """The files of one network."""
    with torch.no_grad():
        written(name, NETWORKS[name], folder)
    (folder / f"{name}.pt2").unlink()
    floats, ready = folder / f"{name}.onnx", folder / f"{name}.ready"
    with np.load(floats.with_suffix(".npz")) as file:
        inputs = {key: torch.from_numpy(file[key]) for key in file.files}
    quant_pre_process(floats, ready, skip_symbolic_shape=True)
    for form, quant_format in (("qdq", QuantFormat.QDQ), ("qoperator", QuantFormat.QOperator)):
        quantize_static(ready, folder / f"{name}_{form}.onnx", Drawn(inputs), quant_format)
    quantize_dynamic(ready, folder / f"{name}_dynamic.onnx")
    for form in ("qdq", "qoperator", "dynamic"):
        copyfile(floats.with_suffix(".npz"), folder / f"{name}_{form}.npz")
    for made_of in (floats, ready, floats.with_suffix(".npz")):
        made_of.unlink()


def main() -> None:
    """Those that the command line asks for."""
    names, folder = asked_for(NETWORKS, __doc__ or "")
    for name in names:
        quantized(name, folder)
        print(name, "written", flush=True)


if __name__ == "__main__":
    main()
