"""Networks of torchvision and transformers, exported as their users do: ``python -m benchmarks.peers.architectures FOLDER``.

Runs with an interpreter that has torch, torchvision, transformers, onnx and onnxscript; nothing of ours is imported. Vision
networks at the sizes that torchvision gives them, text and audio networks in small configurations, all with random weights;
with open extents and without. A network that cannot be exported is left out, and said so. Then what onnxruntime's quantizer
makes of some: dynamic int8, static int8 as QDQ, float16.
"""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownParameterType=false

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

VISION = (
    "resnet18", "mobilenet_v2", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5", "mnasnet0_5", "efficientnet_b0",
    "regnet_y_400mf", "densenet121", "googlenet", "convnext_tiny", "swin_t", "vit_b_32",
)  # fmt: skip
SIZES: Mapping[str, Any] = {
    "vocab_size": 200, "num_hidden_layers": 2, "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 4
}  # fmt: skip
TEXT: Mapping[str, Callable[[], Any]] = {
    "bert": lambda: transformers.BertModel(transformers.BertConfig(**SIZES)),
    "distilbert": lambda: transformers.DistilBertModel(
        transformers.DistilBertConfig(vocab_size=200, dim=64, n_layers=2, n_heads=4, hidden_dim=128)
    ),
    "roberta": lambda: transformers.RobertaModel(transformers.RobertaConfig(**SIZES)),
    "albert": lambda: transformers.AlbertModel(transformers.AlbertConfig(**SIZES, embedding_size=32)),
    "electra": lambda: transformers.ElectraModel(transformers.ElectraConfig(**SIZES, embedding_size=32)),
    "mpnet": lambda: transformers.MPNetModel(transformers.MPNetConfig(**SIZES)),
    "qwen2": lambda: transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(**SIZES, num_key_value_heads=2, use_cache=False)
    ),
    "phi": lambda: transformers.PhiForCausalLM(transformers.PhiConfig(**SIZES, use_cache=False)),
}
AUDIO: Mapping[str, Callable[[], Any]] = {
    "wav2vec2": lambda: transformers.Wav2Vec2ForCTC(
        transformers.Wav2Vec2Config(**SIZES, conv_dim=(32,) * 7, num_conv_pos_embeddings=16)
    ),
    "whisper_encoder": lambda: transformers.WhisperModel(
        transformers.WhisperConfig(
            vocab_size=200, d_model=64, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128, max_source_positions=100,
            pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        )
    ).encoder,
    "ast": lambda: transformers.ASTForAudioClassification(
        transformers.ASTConfig(**{k: v for k, v in SIZES.items() if k != "vocab_size"}, max_length=128, num_mel_bins=64)
    ),
}  # fmt: skip
QUANTIZED = ("resnet18-static", "mobilenet_v2-static", "bert-open", "squeezenet1_1-open", "wav2vec2-static")


class First(torch.nn.Module):
    """A network whose operands have an order, and whose result is its first."""

    def __init__(self, network: Any, names: tuple[str, ...]) -> None:
        super().__init__()
        self.network, self.names = network, names

    def forward(self, *operands: Any) -> Any:
        """The first result, be it of a tuple or of named ones."""
        found = (
            self.network(**dict(zip(self.names, operands, strict=True)))
            if self.names[0] != "x"
            else self.network(*operands)
        )
        return found if isinstance(found, torch.Tensor) else found[0]


Example = tuple[dict[str, torch.Tensor], dict[str, dict[int, str]]]


def networks() -> Iterator[tuple[str, Callable[[], Any], Example]]:
    """Each network, how it is made, an example of its inputs and the names of the axes that may be open."""
    image = ({"x": torch.randn(2, 3, 224, 224)}, {"x": {0: "batch"}})
    for name in VISION:
        yield name, lambda name=name: torchvision_models().get_model(name, weights=None), image
    yield "fcn_resnet50", lambda: torchvision_models().get_model("fcn_resnet50", weights=None, weights_backbone=None), (
        {"x": torch.randn(1, 3, 96, 128)}, {"x": {0: "batch", 2: "height", 3: "width"}}
    )  # fmt: skip
    tokens = {"input_ids": torch.randint(5, 200, (2, 12)), "attention_mask": torch.ones(2, 12, dtype=torch.int64)}
    for name, make in TEXT.items():
        yield name, make, (tokens, {each: {0: "batch", 1: "tokens"} for each in tokens})
    for name, make in AUDIO.items():
        inputs = {
            "wav2vec2": {"input_values": torch.randn(1, 4000)},
            "whisper_encoder": {"input_features": torch.randn(1, 80, 200)},
            "ast": {"input_values": torch.randn(1, 128, 64)},
        }[name]
        axes = {0: "batch", 1: "samples"} if name == "wav2vec2" else {0: "batch"}
        yield name, make, (inputs, dict.fromkeys(inputs, axes))


def torchvision_models() -> Any:
    """torchvision's networks; where its own operators were built for another torch, declarations stand in for them."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for _ in range(50):
        try:
            from torchvision import models
        except RuntimeError as error:
            missing = re.search(r"operator torchvision::(\w+) does not exist", str(error))
            if missing is None:
                raise
            library.define(f"{missing[1]}(Tensor x) -> Tensor")
        else:
            return models
    raise RuntimeError("torchvision does not load")


def export(network: Any, example: Example, path: Path, *, is_open: bool) -> None:
    """Writes the ONNX file by torch's exporter of scripts, which is what most published files come from."""
    inputs, axes = example
    model = First(network.eval(), tuple(inputs))
    torch.onnx.export(
        model, tuple(inputs.values()), path, dynamo=False, input_names=list(inputs), opset_version=17,
        dynamic_axes=axes if is_open else None,
    )  # fmt: skip


def quantize(path: Path) -> Iterator[str]:
    """What onnxruntime's tools make of a model."""
    import onnx
    import onnxruntime
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_dynamic, quantize_static
    from onnxruntime.transformers.float16 import convert_float_to_float16

    class Reader(CalibrationDataReader):
        """Three random inputs."""

        def __init__(self) -> None:
            session = onnxruntime.InferenceSession(path)
            self.sets = iter([{each.name: drawn(each) for each in session.get_inputs()} for _ in range(3)])

        def get_next(self) -> Any:
            """The next one."""
            return next(self.sets, None)

    quantize_dynamic(path, path.with_name(f"{path.stem}-int8.onnx"))
    yield "int8"
    quantize_static(path, path.with_name(f"{path.stem}-qdq.onnx"), Reader(), quant_format=QuantFormat.QDQ)
    yield "qdq"
    onnx.save(convert_float_to_float16(onnx.load(path), keep_io_types=True), path.with_name(f"{path.stem}-half.onnx"))
    yield "half"


def drawn(each: Any) -> np.ndarray:
    """An array for an input of a session."""
    shape = [extent if isinstance(extent, int) else 8 for extent in each.shape]
    if each.type == "tensor(int64)":
        return np.random.default_rng(0).integers(0, 2, shape)
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def main() -> None:
    """Every network with open and with static extents, then the quantized ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for (name, make, example), extents in product(networks(), ("static", "open")):
        path = folder / f"{name}-{extents}.onnx"
        torch.manual_seed(0)
        try:
            export(make(), example, path, is_open=extents == "open")
        except Exception as error:  # whatever an exporter raises
            path.unlink(missing_ok=True)
            print(f"{path.name}: {type(error).__name__}: {str(error)[:100]!r}", flush=True)
    for name in QUANTIZED:
        try:
            print(name, *quantize(folder / f"{name}.onnx"), flush=True)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:100]!r}", flush=True)


if __name__ == "__main__":
    main()
