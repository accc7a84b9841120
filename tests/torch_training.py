"""``python tests/torch_training.py OUT``: the losses of ``examples/training_step.py`` as torch has them, in float64.

Needs torch and nothing of ours: the network, its start and its update are written once more. What it writes is
``tests/facts/torch_training.json``.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

torch: Any = import_module("torch")  # not among our dependencies
F: Any = import_module("torch.nn.functional")  # torch's own name for it

SHAPES = ((32, 48), (48,), (48,), (48,), (48, 10), (10,))


def wave(shape: tuple[int, ...], phase: int) -> Any:
    at = np.arange(int(np.prod(shape)))
    return torch.tensor(np.sin(at * 1.7 + (at % 13) ** 2 + phase).astype(np.float32).reshape(shape)).double()


def main() -> None:
    weights = [
        torch.ones(48).double() if place == 2 else wave(shape, place) * 0.3 for place, shape in enumerate(SHAPES)
    ]
    weights = [weight.requires_grad_() for weight in weights]
    x, labels = wave((64, 32), 9), torch.arange(64) * 7 % 10
    optimizer = torch.optim.SGD(weights, lr=0.05, momentum=0.9)
    losses: list[float] = []
    for _ in range(20):
        w1, b1, gamma, beta, w2, b2 = weights
        hidden = F.layer_norm(x @ w1 + b1, (48,), gamma, beta, 1e-5)
        loss = F.cross_entropy(F.gelu(hidden, approximate="tanh") @ w2 + b2, labels)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    Path(sys.argv[1]).write_text(json.dumps({"torch": torch.__version__, "losses": losses}, indent=1) + "\n")


main()
