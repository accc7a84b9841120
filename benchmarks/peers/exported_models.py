"""Networks of transformers as its users export them: ``python -m benchmarks.peers.exported_models FOLDER``.

Runs with an interpreter that has torch, transformers, onnx, onnxscript and onnxruntime; nothing of ours is imported. Small
configurations with random weights, in float32 and float16, by both exporters of torch, with known and with open extents: an
ONNX file each, and an ``.npz`` of inputs and of what onnxruntime computes for them. A model that onnxruntime refuses is left
out, and said so.
"""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownParameterType=false

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
import transformers

LAYERS, WIDTH, HEADS, GROUPS, INNER, WORDS, PLACES = 2, 64, 4, 2, 128, 200, 64
TEXTS, TOKENS = 2, 12
EXPORTERS, EXTENTS, TYPES = ("dynamo", "script"), ("static", "open"), ("float32", "float16")

COMMON = {"vocab_size": WORDS, "num_hidden_layers": LAYERS, "hidden_size": WIDTH, "intermediate_size": INNER}
NAMES = {"num_attention_heads": HEADS, "max_position_embeddings": PLACES}


def bert() -> Any:
    return transformers.BertModel(transformers.BertConfig(**COMMON, **NAMES), add_pooling_layer=False)


def gpt2() -> Any:
    sizes = {"vocab_size": WORDS, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": PLACES}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, use_cache=False))


def llama() -> Any:
    config = transformers.LlamaConfig(**COMMON, **NAMES, num_key_value_heads=GROUPS, use_cache=False)
    return transformers.LlamaForCausalLM(config)


def t5() -> Any:
    sizes = {"vocab_size": WORDS, "d_model": WIDTH, "d_kv": WIDTH // HEADS, "d_ff": INNER, "num_layers": LAYERS}
    config = transformers.T5Config(**sizes, num_heads=HEADS, use_cache=False, feed_forward_proj="gated-gelu")
    config._attn_implementation = "eager"  # the other one has no export by dynamo
    return transformers.T5EncoderModel(config)


def vit() -> Any:
    sizes = {name: COMMON[name] for name in COMMON if name != "vocab_size"}
    config = transformers.ViTConfig(**sizes, num_attention_heads=HEADS, image_size=32, patch_size=8)
    return transformers.ViTModel(config, add_pooling_layer=False)


MODELS: Mapping[str, Callable[[], Any]] = {"bert": bert, "gpt2": gpt2, "llama": llama, "t5": t5, "vit": vit}


class Positional(torch.nn.Module):
    """A model whose operands have an order, and whose result is its first."""

    def __init__(self, model: Any, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *operands: Any) -> Any:
        """The last hidden state, or the logits."""
        return self.model(**dict(zip(self.names, operands, strict=True)))[0]


def inputs_for(name: str, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    """Images, or texts of which the second is shorter."""
    if name == "vit":
        return {"pixel_values": torch.randn(TEXTS, 3, 32, 32, dtype=dtype)}
    mask = torch.ones(TEXTS, TOKENS, dtype=torch.int64)
    mask[1, TOKENS - 3 :] = 0
    return {"input_ids": torch.randint(0, WORDS, (TEXTS, TOKENS)), "attention_mask": mask}


def exported(model: Any, inputs: dict[str, torch.Tensor], path: Path, exporter: str, extents: str) -> None:
    """Writes the ONNX file."""
    operands = tuple(inputs.values())
    names = [("batch", "tokens") if operand.ndim == 2 else ("batch",) for operand in operands]
    more: dict[str, Any] = {}
    if exporter == "dynamo":
        dims = {"batch": torch.export.Dim("batch"), "tokens": torch.export.Dim("tokens", max=PLACES)}
        open_dims = tuple({axis: dims[label] for axis, label in enumerate(labels)} for labels in names)
        more = {"dynamic_shapes": {"operands": open_dims}} if extents == "open" else {}
        torch.onnx.export(model, operands, path, dynamo=True, external_data=False, verbose=False, **more)
    else:
        axes = {name: dict(enumerate(labels)) for name, labels in zip(inputs, names, strict=True)}
        more = {"dynamic_axes": axes} if extents == "open" else {}
        torch.onnx.export(model, operands, path, dynamo=False, input_names=list(inputs), opset_version=17, **more)


def written(name: str, dtype: str, exporter: str, extents: str, folder: Path) -> str:
    """One model, its inputs and results; the word for what became of it."""
    torch.manual_seed(0)
    inputs = inputs_for(name, getattr(torch, dtype))
    model = Positional(MODELS[name]().eval().to(getattr(torch, dtype)), tuple(inputs))
    path = folder / f"{name}-{dtype}-{exporter}-{extents}.onnx"
    try:
        exported(model, inputs, path, exporter, extents)
        session = onnxruntime.InferenceSession(path)
    except Exception as error:  # whatever an exporter raises
        path.unlink(missing_ok=True)
        return f"{type(error).__name__}: {str(error)[:80]!r}"
    arrays = [operand.numpy() for operand in inputs.values()]
    feed = {entry.name: array for entry, array in zip(session.get_inputs(), arrays, strict=True)}
    (found,) = session.run(None, feed)
    np.savez(path.with_suffix(".npz"), *arrays, expected=np.asarray(found))
    return "written"


def main() -> None:
    """Every model in every form."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for form in product(MODELS, TYPES, EXPORTERS, EXTENTS):
        print(*form, written(*form, folder), flush=True)


if __name__ == "__main__":
    main()
