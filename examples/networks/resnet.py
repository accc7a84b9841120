"""ResNet-50: inference, and the training step of a bottleneck block with a classifier.

Source: "Deep Residual Learning for Image Recognition" (He et al., 2015), with the stride in the 3 x 3 convolution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from examples.networks.training import mean_cross_entropy, training_step
from examples.networks.weights import Weights, dense
from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import TensorType

Norm = Callable[[Tensor, Weights, str], Tensor]
EXPANSION = 4  # a block's output has four times the channels of its middle
EPSILON = 1e-5


@dataclass(frozen=True)
class ResNet:
    """The sizes of a network: blocks per stage, channels of the first stage, classes."""

    blocks: tuple[int, ...] = (3, 4, 6, 3)
    channels: int = 64
    classes: int = 1000

    def inference(self, batch: int, size: int) -> Graph:
        """``(image, weights) -> logits`` for images [batch, 3, size, size]."""
        return trace(self.classify, spec((batch, 3, size, size)), self.weights(), name="resnet_inference")

    def weights(self) -> dict[str, TensorType]:
        """The specs of all weights."""
        specs = _convolution("stem", 3, self.channels, 7)
        inputs = self.channels
        for block in self._plan():
            specs |= block.weights(inputs)
            inputs = block.outputs
        return specs | dense("head", inputs, self.classes)

    def classify(self, image: Tensor, weights: Weights) -> Tensor:
        """The logits."""
        x = ops.relu(_known_statistics(ops.conv2d(image, weights["stem_weight"], stride=2, pad=3), weights, "stem"))
        x = ops.max_pool(x, 3, stride=2, pad=1)
        for block in self._plan():
            x = block.apply(x, weights, _known_statistics)
        return _head(x, weights)

    def _plan(self) -> tuple[Bottleneck, ...]:
        return tuple(
            Bottleneck(f"stage{stage}block{index}", self.channels << stage, 2 if stage and not index else 1, not index)
            for stage, count in enumerate(self.blocks)
            for index in range(count)
        )


@dataclass(frozen=True)
class Bottleneck:
    """A block: 1 x 1, 3 x 3 and 1 x 1 convolutions beside a shortcut, which has a convolution when ``projected``."""

    name: str = "block"
    channels: int = 64
    stride: int = 1
    projected: bool = False

    @property
    def outputs(self) -> int:
        """The channels of the result."""
        return self.channels * EXPANSION

    def training(self, batch: int, size: int, classes: int = 10) -> Graph:
        """``(x, labels, weights, moments) -> loss`` of the block and a classifier on its pooled result."""

        inputs = {"x": spec((batch, self.outputs, size, size)), "labels": spec(batch, "int32")}
        return training_step("bottleneck_training", self.loss, inputs, self.trained(classes))

    def trained(self, classes: int) -> dict[str, TensorType]:
        """The specs of the weights of the block and of the classifier."""
        return self.weights(self.outputs) | dense("head", self.outputs, classes)

    def loss(self, inputs: Weights, weights: Weights) -> Tensor:
        """The mean cross entropy of ``labels`` for ``x``."""
        y = self.apply(inputs["x"], weights, _batch_statistics)
        return mean_cross_entropy(_head(y, weights), inputs["labels"])

    def weights(self, inputs: int) -> dict[str, TensorType]:
        """The specs for a number of input channels."""
        parts = {"a": (inputs, self.channels, 1), "b": (self.channels, self.channels, 3)}
        parts["c"] = (self.channels, self.outputs, 1)
        if self.projected:
            parts["shortcut"] = (inputs, self.outputs, 1)
        specs: dict[str, TensorType] = {}
        for part, (from_, to, kernel) in parts.items():
            specs |= _convolution(f"{self.name}_{part}", from_, to, kernel)
        return specs

    def apply(self, x: Tensor, weights: Weights, norm: Norm) -> Tensor:
        """The block on a tensor, with batch normalisation as given."""

        def convolved(y: Tensor, part: str, stride: int = 1, pad: int = 0) -> Tensor:
            name = f"{self.name}_{part}"
            return norm(ops.conv2d(y, weights[f"{name}_weight"], stride=stride, pad=pad), weights, name)

        y = ops.relu(convolved(x, "a"))
        y = ops.relu(convolved(y, "b", self.stride, 1))
        shortcut = convolved(x, "shortcut", self.stride) if self.projected else x
        return ops.relu(convolved(y, "c") + shortcut)


def _known_statistics(x: Tensor, weights: Weights, name: str) -> Tensor:
    parts = (weights[f"{name}_{part}"] for part in ("gamma", "beta", "mean", "variance"))
    return ops.batch_norm(x, *parts, epsilon=EPSILON)


def _batch_statistics(x: Tensor, weights: Weights, name: str) -> Tensor:
    """Normalises by the batch and writes the new running statistics in place."""
    parts = (weights[f"{name}_{part}"] for part in ("gamma", "beta", "mean", "variance"))
    y, mean, variance, _, _ = ops.batch_norm(x, *parts, epsilon=EPSILON, is_training=True)
    ops.assign(weights[f"{name}_mean"], mean)
    ops.assign(weights[f"{name}_variance"], variance)
    return y


def _head(x: Tensor, weights: Weights) -> Tensor:
    pooled = ops.reduce_mean(x, axis=(2, 3))
    return ops.bias_add(ops.matmul(pooled, weights["head_weight"]), weights["head_bias"])


def _convolution(name: str, inputs: int, outputs: int, kernel: int) -> dict[str, TensorType]:
    """The specs of a convolution and of the normalisation behind it, running statistics included."""
    specs = {f"{name}_weight": spec((outputs, inputs, kernel, kernel))}
    return specs | {f"{name}_{part}": spec(outputs) for part in ("gamma", "beta", "mean", "variance")}
