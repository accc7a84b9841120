"""The nets of the demo at small size, with random weights: the demo itself needs a download."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import graphkernel as gk
from examples import export_minilm_onnx, minilm, resnet50
from graphkernel.frontends.onnx.importer import import_onnx
from graphkernel.report.difference import largest_difference
from tests.support.onnx_models import run_onnxruntime

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "cafe", ",", "a", "b", "the"]


def weights(layers: int) -> dict[str, np.ndarray]:
    """Random weights of the encoder."""
    generator = np.random.default_rng(0)
    width, inner = minilm.WIDTH, minilm.INNER
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (50, width),
        "embeddings.position_embeddings.weight": (16, width),
        "embeddings.token_type_embeddings.weight": (2, width),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(layers):
        name = f"encoder.layer.{layer}"
        norms += [f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm"]
        dense = [f"{name}.attention.{part}" for part in ("self.query", "self.key", "self.value", "output.dense")]
        shapes |= {f"{part}.weight": (width, width) for part in dense} | {f"{part}.bias": (width,) for part in dense}
        shapes |= {f"{name}.intermediate.dense.weight": (inner, width), f"{name}.intermediate.dense.bias": (inner,)}
        shapes |= {f"{name}.output.dense.weight": (width, inner), f"{name}.output.dense.bias": (width,)}
    shapes |= {f"{norm}.{part}": (width,) for norm in norms for part in ("weight", "bias")}
    return {name: (generator.standard_normal(shape) * 0.05).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def encoder() -> onnx.ModelProto:
    return export_minilm_onnx.encoder(weights(layers=1), layers=1)


@pytest.mark.parametrize("level", range(4))
def test_encoder_agrees_with_onnxruntime(encoder: onnx.ModelProto, level: int) -> None:
    generator = np.random.default_rng(1)
    ids = generator.integers(0, 50, (3, 9))
    mask = (np.arange(9) < np.array([[9], [4], [1]])).astype(np.int64)
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    executable = gk.compile(import_onnx(encoder), opt_level=level)
    (embedding,) = executable(*inputs.values())
    assert largest_difference(embedding, run_onnxruntime(encoder, inputs)[0]) < 1e-5
    assert executable.report.fallbacks == ()


def test_norms_softmax_and_gelu_are_kernels(encoder: onnx.ModelProto) -> None:
    kernels = [node.body for node in gk.optimize(import_onnx(encoder)).operators if node.body is not None]
    held = [[node.op.name for node in body.operators] for body in kernels]
    assert sum(names.count("Rsqrt") + names.count("ReduceSum") >= 3 for names in held) == 3  # norms: two sums, one root
    assert sum({"ReduceMax", "Exp", "ReduceSum", "RealDiv"} <= set(names) for names in held) == 1
    assert sum({"Erf", "Mul"} <= set(names) for names in held) == 1


def test_tokenizer_cuts_words_into_known_pieces(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    tokenizer = minilm.Tokenizer.of(tmp_path)
    assert tokenizer.pieces("Unaffable, the CAFÉ") == ["un", "##aff", "##able", ",", "the", "cafe"]
    assert tokenizer.pieces("unknown") == ["[UNK]"]
    ids, mask, kinds = tokenizer(["a b", "the"])
    assert ids.tolist() == [[2, 9, 10, 3], [2, 11, 3, 0]]
    assert mask.tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert not kinds.any()
    assert tokenizer(["a b a b a b"], longest=4)[0].shape == (1, 4)


def test_safetensors_are_read(tmp_path: Path) -> None:
    array, ids = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(2)
    entries = {"w": ("F32", array), "i": ("I64", ids)}
    header: dict[str, object] = {"__metadata__": {}}
    data = b""
    for name, (kind, content) in entries.items():
        header[name] = {"dtype": kind, "shape": content.shape, "data_offsets": [len(data), len(data) + content.nbytes]}
        data += content.tobytes()
    text = json.dumps(header).encode()
    (tmp_path / "m.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    found = minilm.read_safetensors(tmp_path / "m.safetensors")
    assert (found["w"] == array).all()
    assert (found["i"] == ids).all()


def test_resnet_becomes_few_kernels_and_no_fallback() -> None:
    graph = gk.load(resnet50.model_path())
    fills = [node for node in graph.operators if node.op.name == "BroadcastTo"]  # large weights of one number
    assert len(graph.operators) - len(fills) == 177
    fused = gk.optimize(graph, 1)
    rest = {node.attrs.get("op_type") or node.op.name for node in fused.operators if node.body is None}
    assert rest <= {"Conv2D", "MaxPool", "AvgPool", "MatMul", "Reshape"}
