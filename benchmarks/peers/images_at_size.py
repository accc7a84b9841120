"""Networks of images at their usual sizes: ``python -m benchmarks.peers.images_at_size FOLDER``.

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
INCEPTION_SIDE, DETECTOR_SIDE = 299, 320
CLASSIFIERS = (
    "resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2", "mobilenet_v2", "mobilenet_v3_small", "mnasnet0_5",
    "squeezenet1_1", "shufflenet_v2_x0_5", "densenet121", "efficientnet_b0", "regnet_y_400mf", "convnext_tiny",
)  # fmt: skip


def image(side: int) -> dict[str, torch.Tensor]:
    """One image of three planes."""
    return {"image": torch.randn(1, 3, side, side)}


def classifier(name: str) -> Made:
    """A network of torchvision that tells a thousand classes."""
    return torchvision.models.get_model(name, weights=None), image(SIDE)


def without_auxiliary_heads(name: str, side: int) -> Made:
    """One of those that have heads which only training needs."""
    network = torchvision.models.get_model(name, weights=None, aux_logits=False, init_weights=False)
    return network, image(side)


class Segmenter(torch.nn.Module):
    """A class for each pixel."""

    def __init__(self) -> None:
        super().__init__()
        self.network = torchvision.models.segmentation.fcn_resnet50(weights=None, weights_backbone=None)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """The scores of all classes, at the size of the image."""
        return self.network(image)["out"]


class Detector(torch.nn.Module):
    """A single-shot detector up to its head: what chooses among boxes depends on trained weights."""

    def __init__(self) -> None:
        super().__init__()
        network = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)
        self.backbone, self.head = network.backbone, network.head

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The scores of all classes and the offsets of each box."""
        found = self.head(list(self.backbone(image).values()))
        return found["cls_logits"], found["bbox_regression"]


NETWORKS: Mapping[str, Callable[[], Made]] = {
    **{name: partial(classifier, name) for name in CLASSIFIERS},
    "googlenet": partial(without_auxiliary_heads, "googlenet", SIDE),
    "inception_v3": partial(without_auxiliary_heads, "inception_v3", INCEPTION_SIDE),
    "fcn_resnet50": lambda: (Segmenter(), image(SIDE)),
    "ssdlite_mobilenet_v3": lambda: (Detector(), image(DETECTOR_SIDE)),
}

if __name__ == "__main__":
    write_all(NETWORKS, __doc__ or "")
