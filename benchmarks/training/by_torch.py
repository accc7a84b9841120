"""The same training steps in torch: eager, compiled as users do it, and compiled as one whole.

Weights of dense layers lie as ``torch.nn.Linear`` keeps them. An attention is torch's own.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
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


def update(weights: Tensors, moments: Tensors, gradients: Tensors) -> None:
    """AdamWeightDecay of every weight that has a gradient."""
    for name, gradient in gradients.items():
        weight, first, second = weights[name], moments[name + FIRST], moments[name + SECOND]
        first.mul_(BETA1).add_(gradient, alpha=1 - BETA1)
        second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        weight.sub_(RATE * (first / (second.sqrt() + DIVISOR) + DECAY * weight))


@dataclass(frozen=True)
class TorchStep:
    """A training step: its batch, and the weights and moments that it writes into."""

    program: Program
    inputs: Tensors
    weights: Tensors
    moments: Tensors

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
        trained, loss, updated = self.trained, compiled(self.loss), compiled(update)
        for weight in trained.values():
            weight.requires_grad_()

        def run() -> Any:
            value = loss(self.inputs, self.weights)
            value.backward()
            with torch.no_grad():
                updated(trained, self.moments, {name: weight.grad for name, weight in trained.items()})
            for weight in trained.values():
                weight.grad = None
            return value.detach()

        return run

    def as_one(self) -> Callable[[], Any]:
        """The step as one compiled function."""
        loss = self.loss

        def whole(inputs: Tensors, trained: Tensors, rest: Tensors, moments: Tensors) -> Any:
            found, value = torch.func.grad_and_value(lambda given: loss(inputs, {**rest, **given}))(trained)
            update(trained, moments, found)
            return value

        compiled, trained = torch.compile(whole), self.trained
        rest = {name: weight for name, weight in self.weights.items() if name not in trained}

        def run() -> Any:
            with torch.no_grad():
                return compiled(self.inputs, trained, rest, self.moments)

        return run

    def array(self, name: str) -> Array:
        """A weight or a moment as it is now, laid out as ours."""
        found = {**self.weights, **self.moments}[name].detach().contiguous().numpy()
        return found.T if is_turned(name, found) else found


def is_turned(name: str, array: Array) -> bool:
    """Whether it belongs to a dense layer's matrix."""
    return array.ndim == 2 and "_weight" in name


def torch_step(program: Program, start: Arrays, *, last: bool = False, wide: bool = False) -> TorchStep:
    """The step over tensors of its own. ``last``: channels of images lie side by side; ``wide``: in float64."""

    def tensor(name: str, array: Array) -> Any:
        made = torch.from_numpy(array.T.copy() if is_turned(name, array) else array.copy())
        made = made.long() if not made.is_floating_point() else made.double() if wide else made
        return made.to(memory_format=torch.channels_last) if last and made.ndim == 4 else made

    return TorchStep(program, *({name: tensor(name, array) for name, array in part.items()} for part in start.parts))


def steps(program: Program, start: Arrays) -> Iterator[tuple[str, TorchStep, Callable[[], Any]]]:
    """Each way of running the step: its name, what it writes into, and the call."""
    eager = torch_step(program, start)
    yield "torch eager", eager, eager.in_parts(lambda function: function)
    for last in (False, True) if isinstance(program.network, Bottleneck) else (False,):
        layout = ", channels last" if last else ""
        parts, whole = (torch_step(program, start, last=last) for _ in range(2))
        yield f"torch.compile{layout}", parts, parts.in_parts(torch.compile)
        yield f"torch.compile as one{layout}", whole, whole.as_one()


def truth(program: Program, start: Arrays) -> tuple[float, dict[str, Array]]:
    """The loss, and weights and moments after one step, in float64."""
    step = torch_step(program, start, wide=True)
    loss = float(step.in_parts(lambda function: function)())
    return loss, {name: step.array(name) for name in (*step.trained, *step.moments)}
