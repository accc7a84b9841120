"""Twelve transformers at their usual sizes: ``python -m benchmarks.peers.transformers_at_size FOLDER``.

Runs with an interpreter that has torch, transformers, onnx and onnxscript; nothing of ours is imported. Weights are random:
what a network takes does not depend on them. Each is an ONNX file by torch's exporter of scripts, which is what most published
files come from, an ``.npz`` of its inputs, and the same network as ``torch.export`` keeps it, for torch.compile.
"""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import transformers

from benchmarks.peers.architectures import First
from benchmarks.peers.exports import Made, write_all

TOKENS, LEFT, PAST = 128, 64, 128
"""Of a text for encoders, of one for decoders, and what lies in the cache where one token is decoded."""


class Decoding(torch.nn.Module):
    """One step of a decoder: a token and what the layers keep of those before; logits and what they keep then."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, token: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """``past``: keys and values of each layer in turn."""
        cache = transformers.DynamicCache(list(zip(past[::2], past[1::2], strict=True)))
        found = self.network(input_ids=token, past_key_values=cache, use_cache=True)
        return (found.logits, *(each for layer in cache.layers for each in (layer.keys, layer.values)))


def texts(network: Any, tokens: int = TOKENS) -> Made:
    """A network that reads one text, with its mask."""
    ids = torch.randint(5, network.config.vocab_size, (1, tokens))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return First(network, tuple(inputs)), inputs


def decoding(network: Any, heads: int, width: int) -> Made:
    """A decoder with a filled cache."""
    layers = network.config.num_hidden_layers
    names = [f"past_{layer}_{what}" for layer in range(layers) for what in ("key", "value")]
    past = {name: torch.randn(1, heads, PAST, width) for name in names}
    return Decoding(network), {"input_ids": torch.randint(5, network.config.vocab_size, (1, 1)), **past}


def encoder(width: int, layers: int, heads: int, inner: int) -> Made:
    sizes = {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": inner,
    }
    return texts(transformers.BertModel(transformers.BertConfig(**sizes), add_pooling_layer=False))


def electra() -> Made:
    return texts(transformers.ElectraModel(transformers.ElectraConfig()))


def distilbert() -> Made:
    return texts(transformers.DistilBertModel(transformers.DistilBertConfig()))


def gpt2() -> Any:
    return transformers.GPT2LMHeadModel(transformers.GPT2Config())


def llama() -> Any:
    config = transformers.LlamaConfig(
        vocab_size=32000, hidden_size=512, num_hidden_layers=8, num_attention_heads=8, num_key_value_heads=4,
        intermediate_size=1408, max_position_embeddings=1024,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def vit(width: int, heads: int) -> Made:
    sizes = {"hidden_size": width, "num_attention_heads": heads, "intermediate_size": 4 * width}
    network = transformers.ViTModel(transformers.ViTConfig(**sizes), add_pooling_layer=False)
    return First(network, ("pixel_values",)), {"pixel_values": torch.randn(1, 3, 224, 224)}


def whisper() -> Made:
    sizes = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536}
    network = transformers.WhisperModel(transformers.WhisperConfig(**sizes, decoder_layers=1)).encoder
    return First(network, ("input_features",)), {"input_features": torch.randn(1, 80, 3000)}


def t5() -> Made:
    network = transformers.T5ForConditionalGeneration(transformers.T5Config(use_cache=False))
    inputs = {"input_ids": torch.randint(5, 32000, (1, TOKENS)), "decoder_input_ids": torch.randint(5, 32000, (1, 32))}
    return First(network, tuple(inputs)), inputs


NETWORKS: Mapping[str, Callable[[], Made]] = {
    "bert_base": lambda: encoder(768, 12, 12, 3072),
    "minilm": lambda: encoder(384, 6, 12, 1536),
    "distilbert": distilbert,
    "electra_small": electra,
    "gpt2": lambda: texts(gpt2(), LEFT),
    "gpt2_decoding": lambda: decoding(gpt2(), 12, 64),
    "llama": lambda: texts(llama(), LEFT),
    "llama_decoding": lambda: decoding(llama(), 4, 64),
    "t5_small": t5,
    "vit_base": lambda: vit(768, 12),
    "vit_small": lambda: vit(384, 6),
    "whisper_tiny": whisper,
}


if __name__ == "__main__":
    write_all(NETWORKS, __doc__ or "")
