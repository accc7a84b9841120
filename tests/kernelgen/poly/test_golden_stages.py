"""The loops of typical kernels as text: ``pytest --update-golden`` writes them, the difference is read like code."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_examples import column_sum, crossed_reshape, layer_norm, momentum, softmax, split_reshape, transpose_add

from kernelgen.composite.description import KernelDesc
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.tensor.dims import sym

FOLDER = Path(__file__).parents[2] / "golden" / "kernels"
CASES = {
    "softmax": softmax(64, 128),
    "softmax_symbolic": softmax(sym("M"), sym("N")),
    "layer_norm": layer_norm(64, 128),
    "column_sum": column_sum(),
    "transpose_add": transpose_add(100, 200),
    "split_reshape": split_reshape(),
    "crossed_reshape": crossed_reshape(),
    "momentum": momentum(),
}


@pytest.mark.parametrize("name", CASES)
def test_loops_are_as_stored(name: str, request: pytest.FixtureRequest) -> None:
    path, text = FOLDER / f"{name}.txt", stages_text(CASES[name])
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert path.read_text() == text


def stages_text(desc: KernelDesc) -> str:
    """The grouped statements, the proof and the final loops."""
    texts = lower(desc, Plan()).trail.texts
    return "\n".join(texts[stage]().strip() + "\n" for stage in ("group", "proof", "hoist"))
