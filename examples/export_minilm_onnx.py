"""Writes the sentence encoder as an ONNX file: ``python -m examples.export_minilm_onnx minilm.onnx``.

The graph is what PyTorch's exporter makes of BERT (layer norm and softmax as operators, gelu spelled out through erf),
with mean pooling and normalisation behind it. Batch and sentence length are symbols.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from examples.minilm import EPSILON, HEADS, LAYERS, WIDTH, model_folder, read_safetensors

OPSET = 17
FAR_BELOW = float(np.finfo(np.float32).min)


@dataclass
class Network:
    """Nodes and constants so far. Each method appends a node and gives the name of its result."""

    nodes: list[Any] = field(default_factory=list[Any])
    constants: dict[str, np.ndarray] = field(default_factory=dict[str, np.ndarray])

    def emit(self, op_type: str, *operands: str, name: str = "", **attributes: Any) -> str:  # as onnx takes them
        """Appends a node."""
        result = name or f"{op_type.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, operands, [result], name=result, **attributes))
        return result

    def constant(self, value: object, name: str = "", of: str = "float32") -> str:
        """A constant."""
        key = name or f"constant_{len(self.constants)}"
        self.constants[key] = np.asarray(value, of)
        return key

    def dense(self, x: str, weights: Mapping[str, np.ndarray], name: str) -> str:
        """x @ weight.T + bias."""
        weight = self.constant(weights[f"{name}.weight"].T, f"{name}.weight")
        product = self.emit("MatMul", x, weight, name=f"{name}.matmul")
        return self.emit("Add", self.constant(weights[f"{name}.bias"], f"{name}.bias"), product, name=f"{name}.add")

    def norm(self, x: str, weights: Mapping[str, np.ndarray], name: str) -> str:
        """Layer normalisation over the last axis."""
        scale, bias = (self.constant(weights[f"{name}.{part}"], f"{name}.{part}") for part in ("weight", "bias"))
        return self.emit("LayerNormalization", x, scale, bias, name=name, axis=-1, epsilon=EPSILON)

    def gelu(self, x: str, name: str) -> str:
        """x * Phi(x) through erf."""
        erf = self.emit("Erf", self.emit("Div", x, self.constant(np.sqrt(2.0))), name=f"{name}.erf")
        doubled = self.emit("Mul", x, self.emit("Add", erf, self.constant(1.0)))
        return self.emit("Mul", doubled, self.constant(0.5), name=name)

    def heads(self, x: str, weights: Mapping[str, np.ndarray], name: str, perm: tuple[int, ...]) -> str:
        """A projection, cut into heads."""
        shape = self.constant((0, 0, HEADS, WIDTH // HEADS), of="int64")
        return self.emit("Transpose", self.emit("Reshape", self.dense(x, weights, name), shape), perm=perm)

    def attention(self, x: str, mask: str, weights: Mapping[str, np.ndarray], name: str) -> str:
        """Self-attention of all heads, projected."""
        query = self.heads(x, weights, f"{name}.self.query", (0, 2, 1, 3))
        key = self.heads(x, weights, f"{name}.self.key", (0, 2, 3, 1))
        value = self.heads(x, weights, f"{name}.self.value", (0, 2, 1, 3))
        scores = self.emit("Div", self.emit("MatMul", query, key), self.constant(np.sqrt(WIDTH // HEADS)))
        shares = self.emit("Softmax", self.emit("Add", scores, mask), axis=-1, name=f"{name}.softmax")
        mixed = self.emit("Transpose", self.emit("MatMul", shares, value), perm=(0, 2, 1, 3))
        joined = self.emit("Reshape", mixed, self.constant((0, 0, WIDTH), of="int64"))
        return self.dense(joined, weights, f"{name}.output.dense")

    def layer(self, x: str, mask: str, weights: Mapping[str, np.ndarray], name: str) -> str:
        """One layer of the encoder."""
        attended = self.emit("Add", self.attention(x, mask, weights, f"{name}.attention"), x)
        middle = self.norm(attended, weights, f"{name}.attention.output.LayerNorm")
        inner = self.gelu(self.dense(middle, weights, f"{name}.intermediate.dense"), f"{name}.intermediate.gelu")
        result = self.emit("Add", self.dense(inner, weights, f"{name}.output.dense"), middle)
        return self.norm(result, weights, f"{name}.output.LayerNorm")

    def embeddings(self, weights: Mapping[str, np.ndarray]) -> str:
        """Words, positions and token types."""
        length = self.emit("Gather", self.emit("Shape", "input_ids"), self.constant((1,), of="int64"), axis=0)
        zero, one = self.constant((0,), of="int64"), self.constant((1,), of="int64")
        word_table, place_table, kind_table = (
            self.constant(weights[f"embeddings.{name}_embeddings.weight"], f"{name}_embeddings")
            for name in ("word", "position", "token_type")
        )
        words = self.emit("Gather", word_table, "input_ids", axis=0)
        kinds = self.emit("Gather", kind_table, "token_type_ids", axis=0)
        places = self.emit("Slice", place_table, zero, length, zero, one)
        return self.norm(self.emit("Add", self.emit("Add", words, kinds), places), weights, "embeddings.LayerNorm")

    def score_mask(self) -> str:
        """0 where there is a token, far below 0 where there is none: [sentences, 1, 1, tokens]."""
        axes = self.constant((1, 2), of="int64")
        mask = self.emit("Cast", self.emit("Unsqueeze", "attention_mask", axes), to=TensorProto.FLOAT)
        return self.emit("Mul", self.emit("Sub", self.constant(1.0), mask), self.constant(FAR_BELOW))

    def sentence(self, x: str) -> str:
        """The mean of the tokens that are there, at length 1."""
        axis = self.constant((1,), of="int64")
        mask = self.emit(
            "Cast", self.emit("Unsqueeze", "attention_mask", self.constant((2,), of="int64")), to=TensorProto.FLOAT
        )
        total = self.emit("ReduceSum", self.emit("Mul", x, mask), axis, keepdims=0)
        count = self.emit("Clip", self.emit("ReduceSum", mask, axis, keepdims=0), self.constant(1e-9))
        mean = self.emit("Div", total, count)
        squares = self.emit("ReduceSum", self.emit("Mul", mean, mean), axis, keepdims=1)
        length = self.emit("Clip", self.emit("Sqrt", squares), self.constant(1e-12))
        return self.emit("Div", mean, length, name="sentence_embedding")


def encoder(weights: Mapping[str, np.ndarray], layers: int = LAYERS) -> onnx.ModelProto:
    """The model: int64 input_ids, attention_mask, token_type_ids [N, S] to float32 sentence_embedding [N, 384]."""
    network = Network()
    x, mask = network.embeddings(weights), network.score_mask()
    for number in range(layers):
        x = network.layer(x, mask, weights, f"encoder.layer.{number}")
    network.sentence(x)
    names = ("input_ids", "attention_mask", "token_type_ids")
    graph = helper.make_graph(
        network.nodes,
        "minilm",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["N", "S"]) for name in names],
        [helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, ["N", WIDTH])],
        [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in network.constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def export(path: Path) -> Path:
    """Writes the model to a file."""
    onnx.save(encoder(read_safetensors(model_folder() / "model.safetensors")), path)
    return path


if __name__ == "__main__":
    print(export(Path(sys.argv[1] if len(sys.argv) > 1 else "minilm.onnx")))
