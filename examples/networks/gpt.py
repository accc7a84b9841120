"""A decoder block of GPT-2: norms before attention and feed-forward, residual branches. GPT-2 small is the default.

Source: "Language Models are Unsupervised Multitask Learners" (Radford et al., 2019).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from examples.networks.weights import Weights, causal_mask, dense, norm
from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import TensorType


@dataclass(frozen=True)
class Gpt:
    """The sizes of a block; the feed-forward part is four times as wide."""

    hidden: int = 768
    heads: int = 12
    epsilon: float = 1e-5
    dtype: str = "float32"

    def block(self, batch: int, tokens: int) -> Graph:
        """``(x, weights) -> y`` [batch * tokens, hidden]."""
        x = spec((batch * tokens, self.hidden), self.dtype)
        return trace(lambda x, weights: self.decode(x, weights, batch), x, self.weights(), name="gpt_block")

    def weights(self) -> dict[str, TensorType]:
        """The specs of the weights."""
        parts = {"joint": 3 * self.hidden, "output": self.hidden, "up": 4 * self.hidden}
        specs = dense("down", 4 * self.hidden, self.hidden, dtype=self.dtype)
        for name, outputs in parts.items():
            specs |= dense(name, self.hidden, outputs, dtype=self.dtype)
        return specs | norm("attention", self.hidden, self.dtype) | norm("block", self.hidden, self.dtype)

    def decode(self, x: Tensor, weights: Weights, batch: int) -> Tensor:
        """The block: attention, then feed-forward."""
        x = x + _dense(self._attention(self._norm(x, weights, "attention"), weights, batch), weights, "output")
        inner = ops.gelu(_dense(self._norm(x, weights, "block"), weights, "up"), approximate="tanh")
        return x + _dense(inner, weights, "down")

    def _attention(self, x: Tensor, weights: Weights, batch: int) -> Tensor:
        size, tokens = self.hidden // self.heads, int(str(x.shape[0])) // batch
        joint = _dense(x, weights, "joint")

        def heads(part: int) -> Tensor:
            own = joint[:, part * self.hidden : (part + 1) * self.hidden]
            return ops.transpose(ops.reshape(own, (batch, tokens, self.heads, size)), (0, 2, 1, 3))

        scores = ops.matmul(heads(0), heads(1), transpose_b=True) * float(1 / np.sqrt(size))
        mixed = ops.matmul(ops.softmax(scores + causal_mask(tokens, self.dtype)), heads(2))
        return ops.reshape(ops.transpose(mixed, (0, 2, 1, 3)), x.shape)

    def _norm(self, x: Tensor, weights: Weights, name: str) -> Tensor:
        y, _, _ = ops.layer_norm(x, weights[f"{name}_gamma"], weights[f"{name}_beta"], epsilon=self.epsilon)
        return y


def _dense(x: Tensor, weights: Weights, name: str) -> Tensor:
    return ops.bias_add(ops.matmul(x, weights[f"{name}_weight"]), weights[f"{name}_bias"])
