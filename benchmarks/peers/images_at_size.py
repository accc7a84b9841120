"""Twelve networks of images at their usual sizes: ``python -m benchmarks.peers.images_at_size FOLDER``.

Runs with an interpreter that has torch, torchvision and onnx; nothing of ours is imported. Weights are random: what a
network takes does not depend on them. The files are those of
:mod:`benchmarks.peers.transformers_at_size`.
"""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
import torchvision

from benchmarks.peers.exports import Made, write_all

SIDE = 224
CLASSIFIERS = (
    "resnet18", "resnet50", "mobilenet_v2", "mobilenet_v3_small", "mnasnet0_5", "squeezenet1_1", "shufflenet_v2_x0_5",
    "densenet121", "efficientnet_b0", "regnet_y_400mf", "convnext_tiny",
)  # fmt: skip


def image(side: int) -> dict[str, torch.Tensor]:
    """One image of three planes."""
    return {"image": torch.randn(1, 3, side, side)}


def classifier(name: str) -> Made:
    """A network of torchvision that tells a thousand classes."""
    return torchvision.models.get_model(name, weights=None), image(SIDE)


def googlenet() -> Made:
    """Without its auxiliary heads, which only training needs."""
    return torchvision.models.googlenet(weights=None, aux_logits=False, init_weights=False), image(SIDE)


NETWORKS: Mapping[str, Callable[[], Made]] = {
    **{name: partial(classifier, name) for name in CLASSIFIERS},
    "googlenet": googlenet,
}

if __name__ == "__main__":
    write_all(NETWORKS, __doc__ or "")
