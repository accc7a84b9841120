"""A decoder block of Llama: RMS norm, rotary embedding, grouped-query attention, SwiGLU. Llama 3 8B is the default.

Sources: "LLaMA" (Touvron et al., 2023); rotary embedding, "RoFormer" (Su et al., 2021); "GQA" (Ainslie et al., 2023);
"GLU Variants Improve Transformer" (Shazeer, 2020).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from examples.networks.weights import Weights, causal_mask, dense
from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import TensorType


@dataclass(frozen=True)
class Llama:
    """The sizes of a block."""

    hidden: int = 4096
    heads: int = 32
    key_heads: int = 8
    inner: int = 14336
    base: float = 500000.0
    epsilon: float = 1e-5
    dtype: str = "float32"

    @property
    def size(self) -> int:
        """The size of a head."""
        return self.hidden // self.heads

    def block(self, batch: int, tokens: int) -> Graph:
        """``(x, weights) -> y`` [batch, tokens, hidden]."""
        return trace(self.decode, spec((batch, tokens, self.hidden), self.dtype), self.weights(), name="llama_block")

    def weights(self) -> dict[str, TensorType]:
        """The specs of the weights."""
        narrow = self.key_heads * self.size
        shapes = {
            "query": (self.hidden, self.hidden), "key": (self.hidden, narrow), "value": (self.hidden, narrow),
            "output": (self.hidden, self.hidden), "gate": (self.hidden, self.inner), "up": (self.hidden, self.inner),
            "down": (self.inner, self.hidden),
        }  # fmt: skip
        specs = {"attention_gamma": spec(self.hidden, self.dtype), "block_gamma": spec(self.hidden, self.dtype)}
        for name, (inputs, outputs) in shapes.items():
            specs |= dense(name, inputs, outputs, bias=False, dtype=self.dtype)
        return specs

    def decode(self, x: Tensor, weights: Weights) -> Tensor:
        """The block: attention and feed-forward, each behind a norm and beside a residual branch."""
        x = x + self._attention(self._norm(x, weights["attention_gamma"]), weights)
        y = self._norm(x, weights["block_gamma"])
        gate = ops.silu(ops.matmul(y, weights["gate_weight"]))
        return x + ops.matmul(gate * ops.matmul(y, weights["up_weight"]), weights["down_weight"])

    def _norm(self, x: Tensor, gamma: Tensor) -> Tensor:
        y, _ = ops.rms_norm(x, gamma, epsilon=self.epsilon)
        return y

    def _attention(self, x: Tensor, weights: Weights) -> Tensor:
        batch, tokens, _ = (int(str(extent)) for extent in x.shape)
        group = self.heads // self.key_heads

        def heads(name: str, count: int) -> Tensor:
            whole = ops.reshape(ops.matmul(x, weights[f"{name}_weight"]), (batch, tokens, count, self.size))
            return ops.transpose(whole, (0, 2, 1, 3))

        def repeated(part: Tensor) -> Tensor:
            """Each head of keys and values serves a group of query heads."""
            apart = ops.reshape(part, (batch, self.key_heads, 1, tokens, self.size))
            spread = ops.broadcast_to(apart, (batch, self.key_heads, group, tokens, self.size))
            return ops.reshape(spread, (batch, self.heads, tokens, self.size))

        query, key = self._rotated(heads("query", self.heads)), self._rotated(heads("key", self.key_heads))
        scores = ops.matmul(query, repeated(key), transpose_b=True) * float(1 / np.sqrt(self.size))
        causal = causal_mask(tokens, self.dtype)
        mixed = ops.matmul(ops.softmax(scores + causal), repeated(heads("value", self.key_heads)))
        joined = ops.reshape(ops.transpose(mixed, (0, 2, 1, 3)), (batch, tokens, self.hidden))
        return ops.matmul(joined, weights["output_weight"])

    def _rotated(self, x: Tensor) -> Tensor:
        """Rotary embedding: pairs (i, i + size / 2) turned by an angle that grows with the position."""
        tokens, half = int(str(x.shape[2])), self.size // 2
        speeds = self.base ** (-np.arange(half) / half)
        angles = np.tile(np.arange(tokens)[:, None] * speeds[None, :], 2)
        turned = ops.concat((-x[..., half:], x[..., :half]), axis=-1)
        return x * np.cos(angles).astype(self.dtype) + turned * np.sin(angles).astype(self.dtype)
