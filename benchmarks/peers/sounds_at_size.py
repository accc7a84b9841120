"""Networks of sound, text and signals with convolutions along one axis: ``python -m benchmarks.peers.sounds_at_size FOLDER``.

Runs with an interpreter that has torch, transformers and onnx; nothing of ours is imported. Weights are random: what a network
takes does not depend on them. The files are those of :mod:`benchmarks.peers.transformers_at_size`.
"""
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
import transformers
from torch import nn
from torch.nn import functional

from benchmarks.peers.exports import Made, write_all

SLOPE = 0.1


def line(*shape: int) -> dict[str, torch.Tensor]:
    """Numbers along an axis."""
    return {"line": torch.randn(*shape)}


class Wav2Vec(nn.Module):
    """The features of a second of speech, and two of the twelve layers above them."""

    def __init__(self) -> None:
        super().__init__()
        self.network = transformers.Wav2Vec2Model(transformers.Wav2Vec2Config(num_hidden_layers=2))

    def forward(self, line: torch.Tensor) -> torch.Tensor:
        """The last layer's rows."""
        return self.network(line)[0]


class Conformer(nn.Module):
    """A block's convolutions and one of its feed-forward parts (Gulati et al., 2020)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before, self.gate = nn.LayerNorm(width), nn.Conv1d(width, 2 * width, 1)
        self.along = nn.Conv1d(width, width, 15, padding=7, groups=width)
        self.norm, self.out = nn.BatchNorm1d(width), nn.Conv1d(width, width, 1)
        self.forth = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width)
        )

    def forward(self, line: torch.Tensor) -> torch.Tensor:
        """Rows of as many numbers."""
        along = functional.glu(self.gate(self.before(line).transpose(1, 2)), 1)
        line = line + self.out(functional.silu(self.norm(self.along(along)))).transpose(1, 2)
        return line + 0.5 * self.forth(line)


class Residual(nn.Module):
    """A dilated window and a point, beside what comes in."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        self.window = nn.Conv1d(width, width, 3, padding=dilation, dilation=dilation)
        self.point = nn.Conv1d(width, width, 1)

    def forward(self, line: torch.Tensor) -> torch.Tensor:
        """A line of as many channels."""
        inner = self.window(functional.leaky_relu(line, SLOPE))
        return line + self.point(functional.leaky_relu(inner, SLOPE))


class Causal(nn.Module):
    """Windows that read the past alone, twice as far in each layer (Bai et al., 2018)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(width if k else 6, width, 3, dilation=2**k) for k in range(5)])
        self.classes = nn.Linear(width, 10)

    def forward(self, line: torch.Tensor) -> torch.Tensor:
        """The scores of ten classes."""
        for level, layer in enumerate(self.layers):
            line = functional.relu(layer(functional.pad(line, (2 * 2**level, 0))))
        return self.classes(line.mean(2))


class Unet(nn.Module):
    """Half the length and back, with what was there before."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = nn.Conv1d(2, 32, 5, padding=2), nn.Conv1d(32, 64, 5, stride=2, padding=2)
        self.inner, self.up = nn.Conv1d(64, 64, 5, padding=2), nn.Conv1d(96, 32, 5, padding=2)
        self.last = nn.Conv1d(32, 2, 1)

    def forward(self, line: torch.Tensor) -> torch.Tensor:
        """Two channels of the same length."""
        before = self.first(line).relu()
        inner = self.inner(self.down(before).relu()).relu()
        wide = functional.interpolate(inner, scale_factor=2)
        return self.last(self.up(torch.cat([before, wide], 1)).relu())


def vocoder() -> nn.Module:
    """A small generator of HiFi-GAN's kind (Kong et al., 2020): transposed convolutions and dilated residuals."""
    stages: list[nn.Module] = [nn.Conv1d(80, 128, 7, padding=3)]
    for wide, step in ((128, 8), (64, 4)):
        narrow = wide // 2
        stages += [nn.LeakyReLU(SLOPE), nn.ConvTranspose1d(wide, narrow, 2 * step, stride=step, padding=step // 2)]
        stages += [Residual(narrow, dilation) for dilation in (1, 3, 5)]
    return nn.Sequential(*stages, nn.Conv1d(32, 1, 7, padding=3), nn.Tanh())


def encoder() -> nn.Module:
    """Half a second of sound as rows, by steps of EnCodec's kind (Défossez et al., 2022)."""
    stages: list[nn.Module] = [nn.Conv1d(1, 32, 7, padding=3)]
    for width, step in ((32, 2), (64, 4)):
        window = nn.Conv1d(width, 2 * width, 2 * step, stride=step, padding=step // 2)
        stages += [Residual(width, 1), nn.ELU(), window]
    return nn.Sequential(*stages, nn.ELU(), nn.Conv1d(128, 128, 7, padding=3))


def text() -> nn.Module:
    """Classes of texts by windows of words (Kim, 2014)."""
    windows = (nn.Conv1d(128, 256, 5), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(256, 256, 3), nn.ReLU())
    return nn.Sequential(*windows, nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(256, 4))


NETWORKS: Mapping[str, Callable[[], Made]] = {
    "wav2vec2": lambda: (Wav2Vec(), line(1, 16000)),
    "conformer": lambda: (nn.Sequential(*(Conformer(256) for _ in range(3))), line(1, 300, 256)),
    "vocoder": lambda: (vocoder(), line(1, 80, 100)),
    "sound_encoder": lambda: (encoder(), line(1, 1, 12000)),
    "causal": lambda: (Causal(64), line(4, 6, 256)),
    "text_windows": lambda: (text(), line(8, 128, 200)),
    "unet_along_one_axis": lambda: (Unet(), line(1, 2, 4000)),
}

if __name__ == "__main__":
    write_all(NETWORKS, __doc__ or "")
