"""Attention as an operator, and what else onnxruntime's optimizer of transformers writes, computes what it does there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper, numpy_helper

import graphkernel as gk
from graphkernel.frontends.onnx.importer import import_onnx

pytestmark = pytest.mark.usefixtures("shared_kernels")

RNG = np.random.default_rng(0)
BATCH, ROWS, HEADS, SIZE = 2, 7, 4, 16
WIDTH = HEADS * SIZE


def real(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@dataclass(frozen=True)
class Case:
    """A node of ``com.microsoft`` with operands by name, ``""`` for none; those of ``open`` have open batches and rows."""

    operator: str
    operands: Mapping[str, np.ndarray]
    order: Sequence[str]
    results: int = 1
    constants: Sequence[str] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    domain: str = "com.microsoft"

    def model(self, is_open: bool) -> ModelProto:
        """The model; open ones name the extents of the batch and of rows."""
        names = {BATCH: "B", ROWS: "S", ROWS + 5: "S + 5"} if is_open else {}
        infos = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(x.dtype), [names.get(n, n) for n in x.shape]
            )
            for name, x in self.operands.items()
            if name not in self.constants
        ]
        constants = [numpy_helper.from_array(self.operands[name], name) for name in self.constants]
        outputs = [f"y{k}" for k in range(self.results)]
        if self.results == 4:
            outputs[1:3] = "", ""
        node = helper.make_node(self.operator, self.order, outputs, domain=self.domain, **self.attributes)
        infos_out = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
        graph = helper.make_graph([node], "net", infos, infos_out, constants)
        opsets = [helper.make_opsetid("", 23 if self.domain == "" else 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def case(operator: str, results: int = 1, constants: str = "", domain: str = "com.microsoft", **operands: Any) -> Case:
    """Keywords that are arrays are operands, None operands left out, others attributes."""
    arrays = {name: value for name, value in operands.items() if isinstance(value, np.ndarray)}
    order = [name if value is not None else "" for name, value in operands.items() if name in arrays or value is None]
    rest = {name: value for name, value in operands.items() if name not in arrays and value is not None}
    return Case(operator, arrays, order, results, [name for name in constants.split() if name in arrays], rest, domain)


X, SKIP = real(BATCH, ROWS, WIDTH), real(BATCH, ROWS, WIDTH)
SCALE, SHIFT, BIAS = real(WIDTH), real(WIDTH), real(WIDTH)
KEPT = real(BATCH, HEADS, 5, SIZE)
LEFT = np.array([3, 7], np.int32)
MASK = np.array([[1] * 7, [0, 1, 1, 0, 1, 1, 0]], np.int32)
TABLES: dict[str, Any] = {"cosines": real(20, SIZE // 2), "sines": real(20, SIZE // 2)}
WEIGHTS, BIASES = real(WIDTH, 3 * WIDTH) / 8, real(3 * WIDTH)
ATTENDED: dict[str, Any] = {"constants": "w b", "num_heads": HEADS, "x": X, "w": WEIGHTS, "b": BIASES}
THREE: dict[str, Any] = {"q": X, "k": SKIP, "v": real(BATCH, ROWS, WIDTH), "num_heads": HEADS}
FOUR: dict[str, Any] = {name: real(BATCH, HEADS, ROWS, SIZE) for name in "qkv"} | {"domain": ""}
WORDS, PLACES, KINDS = real(30, WIDTH), real(12, WIDTH), real(2, WIDTH)
EMBEDDED: dict[str, Any] = {
    "constants": "words places kinds g b",
    "ids": RNG.integers(0, 30, (BATCH, ROWS)).astype(np.int32),
    "segments": RNG.integers(0, 2, (BATCH, ROWS)).astype(np.int32),
    "words": WORDS, "places": PLACES, "kinds": KINDS, "g": SCALE, "b": SHIFT,
}  # fmt: skip
ONE_SEGMENT: dict[str, Any] = {**EMBEDDED, "segments": None, "kinds": None}

CASES = {
    "skip": case("SkipLayerNormalization", constants="g b", x=X, skip=SKIP, g=SCALE, b=SHIFT, epsilon=1e-5),
    "skip, bias, sum": case("SkipLayerNormalization", 4, "g b c", x=X, skip=SKIP, g=SCALE, b=SHIFT, c=BIAS),
    "skip without shift": case("SkipLayerNormalization", constants="g", x=X, skip=SKIP, g=SCALE),
    "skip by mean square": case("SkipSimplifiedLayerNormalization", 4, "g c", x=X, skip=SKIP, g=SCALE, c=BIAS),
    "mean square": case("SimplifiedLayerNormalization", constants="g", domain="", x=X, g=SCALE, epsilon=1e-6),
    "fast gelu": case("FastGelu", constants="c", x=X, c=BIAS),
    "fast gelu alone": case("FastGelu", x=X),
    "bias gelu": case("BiasGelu", constants="c", x=X, c=BIAS),
    "gelu": case("Gelu", x=X),
    "quick gelu": case("QuickGelu", x=X, alpha=1.5),
    "product": case("FusedMatMul", x=X, y=SKIP, transB=1, alpha=0.5),
    "embeddings": case("EmbedLayerNormalization", 3, **EMBEDDED, mask=MASK),
    "embeddings of one segment": case("EmbedLayerNormalization", 2, **ONE_SEGMENT),
    "attention": case("Attention", **ATTENDED),
    "attention, mask of keys": case("Attention", **ATTENDED, m=MASK),
    "attention, lengths": case("Attention", **ATTENDED, m=LEFT, mask_filter_value=-50.0),
    "attention, mask of pairs": case("Attention", **ATTENDED, m=RNG.integers(0, 2, (BATCH, ROWS, ROWS)).astype(np.int32)),
    "attention, causal": case("Attention", **ATTENDED, unidirectional=1),
    "attention, all": case(
        "Attention", 2, **ATTENDED, m=np.concatenate([MASK[:, :5], MASK], 1), past=np.stack([KEPT, KEPT + 1]),
        unidirectional=1, scale=0.3,
    ),
    "attention, added": case("Attention", **ATTENDED, m=None, past=None, added=real(1, HEADS, ROWS, ROWS)),
    "heads": case("MultiHeadAttention", **THREE),
    "heads, bias, mask": case("MultiHeadAttention", constants="b", **THREE, b=BIASES, m=MASK),
    "heads, lengths, added": case("MultiHeadAttention", **THREE, b=None, m=LEFT, added=real(1, 1, ROWS, ROWS)),
    "heads, kept": case(
        "MultiHeadAttention", 3, **THREE, b=None, m=None, added=None, past_k=KEPT, past_v=KEPT + 1, unidirectional=1,
    ),
    "heads, keys of another": case(
        "MultiHeadAttention", q=X, k=real(BATCH, HEADS, 9, SIZE), v=real(BATCH, HEADS, 9, SIZE), num_heads=HEADS,
    ),
    "onnx": case("Attention", **FOUR),
    "onnx, mask of numbers": case("Attention", **FOUR, m=real(ROWS, ROWS)),
    "onnx, mask": case("Attention", **FOUR, m=np.tri(ROWS) > 0, scale=0.5),
    "onnx, kept": case("Attention", 3, **FOUR, m=None, past_k=KEPT, past_v=KEPT + 1),
    "onnx, shared, causal": case(
        "Attention", domain="", q=X, k=real(BATCH, ROWS, 2 * SIZE), v=real(BATCH, ROWS, 2 * SIZE), q_num_heads=HEADS,
        kv_num_heads=2, is_causal=1,
    ),
    "rotary": case("RotaryEmbedding", constants="cosines sines", x=X, n=RNG.integers(0, 20, (BATCH, ROWS)), **TABLES),
    "onnx, rotary": case(
        "RotaryEmbedding", domain="", x=FOUR["q"], **TABLES, n=RNG.integers(0, 20, (BATCH, ROWS)), interleaved=1,
    ),
    "onnx, rotary of rows": case(
        "RotaryEmbedding", domain="", x=X, c=real(BATCH, ROWS, SIZE // 2), s=real(BATCH, ROWS, SIZE // 2), num_heads=HEADS,
    ),
    "rotary from a place": case("RotaryEmbedding", x=X, n=np.array([4]), **TABLES, interleaved=1),
    "rotary of a part": case(
        "RotaryEmbedding", x=real(BATCH, HEADS, ROWS, SIZE + 6), n=np.array([0]), **TABLES, num_heads=HEADS,
        rotary_embedding_dim=SIZE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("is_open", [False, True], ids=["static", "open"])
@pytest.mark.parametrize("name", CASES)
def test_what_the_optimizer_writes(name: str, is_open: bool) -> None:
    of = CASES[name]
    model = of.model(is_open)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    arrays = {name: array for name, array in of.operands.items() if name not in of.constants}
    exe = gk.compile(import_onnx(model))
    assert not any(node.op.name == "Onnx" for node in exe.graph.operators)
    wanted = [np.asarray(each) for each in session.run(None, arrays)]
    for found, each in zip(exe(*(arrays[name] for name in exe.graph.input_names)), wanted, strict=True):
        assert (found.shape, found.dtype) == (each.shape, each.dtype)
        np.testing.assert_allclose(found, each, rtol=2e-5, atol=2e-5)
