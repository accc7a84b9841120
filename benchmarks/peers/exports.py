"""Networks of torch written for :mod:`benchmarks.whole_networks`: an ONNX file, its inputs, and what torch.compile reads."""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownParameterType=false

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import torch

Inputs = dict[str, torch.Tensor]
Made = tuple[torch.nn.Module, Inputs]


def written(name: str, make: Callable[[], Made], folder: Path) -> None:
    """The three files of one network."""
    torch.manual_seed(0)
    network, inputs = make()
    network.eval()
    np.savez(folder / f"{name}.npz", **{key: value.numpy() for key, value in inputs.items()})
    given = tuple(inputs.values())
    torch.onnx.export(network, given, folder / f"{name}.onnx", dynamo=False, input_names=list(inputs), opset_version=17)
    torch.export.save(torch.export.export(network, given), folder / f"{name}.pt2")


def asked_for(names: Iterable[str], description: str) -> tuple[list[str], Path]:
    """The names that the command line asks for, and the folder that it gives, which is made."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="those whose name has this in it")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    return [each for each in names if arguments.only in each], arguments.folder


def write_all(networks: Mapping[str, Callable[[], Made]], description: str) -> None:
    """Every network; one that cannot be exported is said so, and those that can are there."""
    names, folder = asked_for(networks, description)
    for name in names:
        try:
            with torch.no_grad():
                written(name, networks[name], folder)
            print(name, "written", flush=True)
        except Exception as error:  # whatever an exporter raises
            print(f"{name}: {type(error).__name__}: {str(error)[:300]!r}", flush=True)
