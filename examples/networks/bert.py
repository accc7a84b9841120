"""BERT: the encoder, and its training step as a sentence classifier. The sizes of BERT-base are the defaults.

Source: "BERT: Pre-training of Deep Bidirectional Transformers" (Devlin et al., 2018). Dropout is left out, so that the
numbers of two runs can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from examples.networks.training import mean_cross_entropy, training_step
from examples.networks.weights import Weights, dense, norm
from graphkernel import ops
from graphkernel.frontends.trace import spec, trace
from graphkernel.ops import Tensor
from kernelgen.tensor.graph import Graph
from kernelgen.tensor.types import TensorType

MASKED = -10000.0  # added to the scores of what must not be attended to


@dataclass(frozen=True)
class Bert:
    """The sizes of an encoder."""

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    inner: int = 3072
    vocabulary: int = 30522
    positions: int = 512
    classes: int = 2
    epsilon: float = 1e-12
    dtype: str = "float32"

    def encoder(self, batch: int, tokens: int) -> Graph:
        """``(ids, mask, weights) -> states`` [batch * tokens, hidden]."""
        return trace(self.encode, *_inputs(batch, tokens), self.weights(), name="bert_encoder")

    def training(self, batch: int, tokens: int) -> Graph:
        """``(inputs, weights, moments) -> loss``; weights and moments are updated in place."""
        ids, mask = _inputs(batch, tokens)
        inputs = {"ids": ids, "mask": mask, "labels": spec(batch, "int32")}
        return training_step("bert_training", self.loss, inputs, self.trained())

    def trained(self) -> dict[str, TensorType]:
        """The specs of the weights of the encoder and of the classifier."""
        head = dense("pooler", self.hidden, self.hidden, dtype=self.dtype) | dense(
            "classifier", self.hidden, self.classes, dtype=self.dtype
        )
        return self.weights() | head

    def loss(self, inputs: Weights, weights: Weights) -> Tensor:
        """The mean cross entropy of ``labels`` for a classifier on the first token's state."""
        batch, tokens = inputs["ids"].shape
        states = ops.reshape(self.encode(inputs["ids"], inputs["mask"], weights), (batch, tokens, self.hidden))
        first = ops.reshape(states[:, 0:1, :], (batch, self.hidden))
        pooled = ops.tanh(_dense(first, weights, "pooler"))
        return mean_cross_entropy(_dense(pooled, weights, "classifier"), inputs["labels"])

    def weights(self) -> dict[str, TensorType]:
        """The specs of the encoder's weights."""
        tables = {"word": self.vocabulary, "position": self.positions}
        specs = {f"{name}_table": spec((rows, self.hidden), self.dtype) for name, rows in tables.items()}
        specs |= norm("embedding", self.hidden, self.dtype)
        for layer in (f"layer{number}" for number in range(self.layers)):
            for part in ("query", "key", "value", "output"):
                specs |= dense(f"{layer}_{part}", self.hidden, self.hidden, dtype=self.dtype)
            specs |= dense(f"{layer}_up", self.hidden, self.inner, dtype=self.dtype)
            specs |= dense(f"{layer}_down", self.inner, self.hidden, dtype=self.dtype)
            specs |= norm(f"{layer}_attention", self.hidden, self.dtype) | norm(
                f"{layer}_block", self.hidden, self.dtype
            )
        return specs

    def encode(self, ids: Tensor, mask: Tensor, weights: Weights) -> Tensor:
        """The states of all tokens [batch * tokens, hidden]; ``mask`` [batch, tokens] is 1 where a token counts."""
        batch, tokens = (int(str(extent)) for extent in ids.shape)
        words = ops.gather(weights["word_table"], ops.reshape(ids, (batch * tokens,)))
        places = ops.gather(weights["position_table"], np.arange(tokens, dtype=np.int32))
        embedded = ops.reshape(words, (batch, tokens, self.hidden)) + places
        x = self._norm(ops.reshape(embedded, (batch * tokens, self.hidden)), weights, "embedding")
        penalty = (1.0 - ops.reshape(ops.cast(mask, x.dtype), (batch, 1, 1, tokens))) * MASKED
        for number in range(self.layers):
            x = self._layer(x, penalty, weights, f"layer{number}")
        return x

    def _layer(self, x: Tensor, penalty: Tensor, weights: Weights, layer: str) -> Tensor:
        context = self._attention(x, penalty, weights, layer)
        x = self._norm(_dense(context, weights, f"{layer}_output") + x, weights, f"{layer}_attention")
        inner = ops.gelu(_dense(x, weights, f"{layer}_up"), approximate="tanh")
        return self._norm(_dense(inner, weights, f"{layer}_down") + x, weights, f"{layer}_block")

    def _attention(self, x: Tensor, penalty: Tensor, weights: Weights, layer: str) -> Tensor:
        batch, tokens, size = penalty.shape[0], penalty.shape[3], self.hidden // self.heads

        def heads(part: str) -> Tensor:
            whole = ops.reshape(_dense(x, weights, f"{layer}_{part}"), (batch, tokens, self.heads, size))
            return ops.transpose(whole, (0, 2, 1, 3))

        scores = ops.matmul(heads("query"), heads("key"), transpose_b=True) * float(1 / np.sqrt(size))
        mixed = ops.matmul(ops.softmax(scores + penalty), heads("value"))
        return ops.reshape(ops.transpose(mixed, (0, 2, 1, 3)), x.shape)

    def _norm(self, x: Tensor, weights: Weights, name: str) -> Tensor:
        y, _, _ = ops.layer_norm(x, weights[f"{name}_gamma"], weights[f"{name}_beta"], epsilon=self.epsilon)
        return y


def _inputs(batch: int, tokens: int) -> tuple[TensorType, TensorType]:
    return spec((batch, tokens), "int32"), spec((batch, tokens), "int32")


def _dense(x: Tensor, weights: Weights, name: str) -> Tensor:
    return ops.bias_add(ops.matmul(x, weights[f"{name}_weight"]), weights[f"{name}_bias"])
