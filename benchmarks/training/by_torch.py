"""The same training steps in torch: eager, compiled as users do it, and compiled as one whole.

Weights of dense layers lie as ``torch.nn.Linear`` keeps them. An attention is torch's own.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch.nn import functional as F

from benchmarks.training.programs import FIRST, SECOND, Array, Arrays, Program
from examples.networks.bert import MASKED, Bert
from examples.networks.resnet import EPSILON, Bottleneck
from examples.networks.training import BETA1, BETA2, DECAY, RATE, STATISTICS
from examples.networks.training import EPSILON as DIVISOR

Tensors = Mapping[str, Any]
Loss = Callable[[Tensors, Tensors], Any]


def bert_loss(network: Bert, inputs: Tensors, weights: Tensors) -> Any:
    """As :meth:`examples.networks.bert.Bert.loss`."""
    batch, tokens = inputs["ids"].shape

    def dense(x: Any, name: str) -> Any:
        return F.linear(x, weights[f"{name}_weight"], weights[f"{name}_bias"])

    def norm(x: Any, name: str) -> Any:
        return F.layer_norm(x, x.shape[-1:], weights[f"{name}_gamma"], weights[f"{name}_beta"], network.epsilon)

    def heads(x: Any, name: str) -> Any:
        return dense(x, name).view(batch, tokens, network.heads, -1).transpose(1, 2)

    words = F.embedding(inputs["ids"], weights["word_table"])
    x = norm(words + weights["position_table"][:tokens], "embedding")
    penalty = ((1.0 - inputs["mask"].to(x.dtype)) * MASKED).view(batch, 1, 1, tokens)
    for layer in (f"layer{number}" for number in range(network.layers)):
        parts = (heads(x, f"{layer}_{part}") for part in ("query", "key", "value"))
        mixed = F.scaled_dot_product_attention(*parts, attn_mask=penalty.expand(batch, 1, tokens, tokens))
        mixed = mixed.transpose(1, 2).reshape(batch, tokens, -1)
        x = norm(dense(mixed, f"{layer}_output") + x, f"{layer}_attention")
        inner = F.gelu(dense(x, f"{layer}_up"), approximate="tanh")
        x = norm(dense(inner, f"{layer}_down") + x, f"{layer}_block")
    pooled = torch.tanh(dense(x[:, 0], "pooler"))
    return F.cross_entropy(dense(pooled, "classifier"), inputs["labels"])


def bottleneck_loss(network: Bottleneck, inputs: Tensors, weights: Tensors) -> Any:
    """As :meth:`examples.networks.resnet.Bottleneck.loss`; running statistics are written in place."""

    def convolved(x: Any, part: str, pad: int = 0) -> Any:
        mine = {key.rpartition("_")[2]: value for key, value in weights.items() if key.startswith(f"block_{part}_")}
        y = F.conv2d(x, mine["weight"], padding=pad)
        return F.batch_norm(y, mine["mean"], mine["variance"], mine["gamma"], mine["beta"], training=True, eps=EPSILON)

    x = inputs["x"]
    y = F.relu(convolved(x, "a"))
    y = F.relu(convolved(y, "b", 1))
    y = F.relu(convolved(y, "c") + x)
    return F.cross_entropy(F.linear(y.mean((2, 3)), weights["head_weight"], weights["head_bias"]), inputs["labels"])


@dataclass(frozen=True)
class TorchStep:
    """A training step over tensors of its own. ``last``: channels of images lie side by side."""

    program: Program
    start: Arrays
    last: bool = False

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """The batch."""
        made = {name: self._laid(torch.from_numpy(array.copy())) for name, array in self.start.inputs.items()}
        return {name: each if each.is_floating_point() else each.long() for name, each in made.items()}

    @cached_property
    def weights(self) -> dict[str, Any]:
        """The weights, which a step writes into."""
        return {name: self._tensor(name, array) for name, array in self.start.weights.items()}

    @cached_property
    def moments(self) -> dict[str, Any]:
        """The moments, which a step writes into."""
        return {name: self._tensor(name, array) for name, array in self.start.moments.items()}

    def _tensor(self, name: str, array: Array) -> Any:
        return self._laid(torch.from_numpy(array.T.copy() if is_turned(name, array) else array.copy()))

    def _laid(self, tensor: Any) -> Any:
        return tensor.to(memory_format=torch.channels_last) if self.last and tensor.ndim == 4 else tensor

    @property
    def trained(self) -> dict[str, Any]:
        """The weights that have gradients."""
        return {name: weight for name, weight in self.weights.items() if not name.endswith(STATISTICS)}

    @property
    def loss(self) -> Loss:
        """``loss(inputs, weights)``."""
        network = self.program.network
        return partial(bert_loss if isinstance(network, Bert) else bottleneck_loss, network)

    def in_parts(self, compiled: Callable[[Any], Any]) -> Callable[[], Any]:
        """Loss, backward and update one after the other; ``compiled`` is given the loss and the update."""
        trained, loss, update = self.trained, compiled(self.loss), compiled(self.update)
        for weight in trained.values():
            weight.requires_grad_()

        def run() -> Any:
            value = loss(self.inputs, self.weights)
            value.backward()
            with torch.no_grad():
                update({name: weight.grad for name, weight in trained.items()})
            for weight in trained.values():
                weight.grad = None
            return value.detach()

        return run

    def as_one(self) -> Callable[[], Any]:
        """The step as one compiled function."""
        rest = {name: self.weights[name] for name in self.weights if name not in self.trained}

        def whole(trained: Tensors) -> Any:
            found, value = torch.func.grad_and_value(lambda given: self.loss(self.inputs, {**rest, **given}))(trained)
            self.update(found)
            return value

        compiled = torch.compile(whole)

        def run() -> Any:
            with torch.no_grad():
                return compiled(self.trained)

        return run

    def update(self, gradients: Tensors) -> None:
        """AdamWeightDecay of every weight."""
        for name, gradient in gradients.items():
            weight, first, second = self.weights[name], self.moments[name + FIRST], self.moments[name + SECOND]
            first.mul_(BETA1).add_(gradient, alpha=1 - BETA1)
            second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
            weight.sub_(RATE * (first / (second.sqrt() + DIVISOR) + DECAY * weight))

    def array(self, name: str) -> Array:
        """A weight or a moment as it is now, laid out as ours."""
        found = (self.weights | self.moments)[name].detach().contiguous().numpy()
        return found.T if is_turned(name, found) else found


def is_turned(name: str, array: Array) -> bool:
    """Whether it belongs to a dense layer's matrix."""
    return array.ndim == 2 and "_weight" in name


def steps(program: Program, start: Arrays) -> Iterator[tuple[str, TorchStep, Callable[[], Any]]]:
    """Each way of running the step: its name, what it writes into, and the call."""
    eager = TorchStep(program, start)
    yield "torch eager", eager, eager.in_parts(lambda function: function)
    for last in (False, True) if isinstance(program.network, Bottleneck) else (False,):
        layout = ", channels last" if last else ""
        parts, whole = TorchStep(program, start, last), TorchStep(program, start, last)
        yield f"torch.compile{layout}", parts, parts.in_parts(torch.compile)
        yield f"torch.compile as one{layout}", whole, whole.as_one()
