"""What one thread of typical kernels does, as text: ``pytest --update-golden`` writes it, the difference is read like code."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_examples import Writer, column_sum, constant, layer_norm, momentum, softmax, tensor, transpose_add

from kernelgen.composite.description import KernelDesc
from kernelgen.nest.text import show
from kernelgen.nest.verify import verify
from kernelgen.plan import Plan
from kernelgen.stages import lower
from kernelgen.targets.gpu import TARGET
from kernelgen.tensor.dims import sym

FOLDER = Path(__file__).parents[3] / "golden" / "gpu"


def doubled_and_halved() -> KernelDesc:
    """Two arrays that have nothing to do with each other."""
    w, x, y = Writer(), tensor("x", 1000), tensor("y", 300)
    double, half = (w.op("Mul", each, constant(by), shape=each.shape) for each, by in ((x, 2.0), (y, 0.5)))
    return w.desc("doubled_and_halved", (x, y), double, half)


CASES = {
    "softmax_short": softmax(64, 128),
    "softmax_long": softmax(8, 1000),
    "softmax_symbolic": softmax(sym("M"), sym("N")),
    "layer_norm": layer_norm(64, 1024),
    "column_sum": column_sum(),
    "transpose_add": transpose_add(100, 200),
    "momentum": momentum(),
    "side_by_side": doubled_and_halved(),
}


@pytest.mark.parametrize("name", CASES)
def test_nests_are_as_stored(name: str, request: pytest.FixtureRequest) -> None:
    path, text = FOLDER / f"{name}.txt", stages_text(CASES[name])
    if request.config.getoption("--update-golden"):
        path.write_text(text)
    assert path.read_text() == text


def stages_text(desc: KernelDesc) -> str:
    """The plan, the thread's program, and the printed one."""
    lowered = lower(desc, Plan(), "gpu")
    verify(lowered.nest)
    plan = lowered.trail.texts["plan"]()
    return f"{plan.strip()}\n\n{show(lowered.nest)}\n{TARGET.emit(lowered.nest)}"
