"""The demo: a sentence encoder with its real weights, and ResNet-50, fused and compiled, against onnxruntime.

``python -m examples.demo`` (or ``make demo``) loads both nets from ONNX, optimizes them at levels 0 to 3, and shows what
became kernels, how far results are from onnxruntime's, and how long everything takes. Times are medians of rounds in
which all contestants take turns; "unfused" is every operator by itself on onnxruntime.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

import graphkernel as gk
from examples import export_minilm_onnx, minilm, resnet50
from graphkernel.ir.bind import bind_symbols
from graphkernel.ir.types import evaluate
from graphkernel.report.difference import largest_difference
from graphkernel.report.report import size_text
from graphkernel.report.table import print_table
from graphkernel.runtime.regions import OnnxRuntimeHost

LEVELS = range(4)
ROUNDS = 7
RUNS_PER_TURN = 3
AGREEMENT = 1e-5  # of the largest value

Inputs = Sequence[np.ndarray]


@dataclass(frozen=True, eq=False)
class Contest:
    """A net, its inputs, and everything that computes it."""

    graph: gk.Graph
    inputs: Inputs
    onnxruntime: Callable[..., np.ndarray]
    unfused: gk.Executable
    levels: Mapping[int, gk.Executable]


def contest(path: Path, inputs: Inputs) -> Contest:
    """Loads and compiles a net at all levels; every level is cold."""
    graph = gk.load(path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [info.name for info in session.get_inputs()]

    def reference(*arrays: np.ndarray) -> np.ndarray:
        return np.asarray(session.run(None, dict(zip(names, arrays, strict=True)))[0])

    levels = {level: _compile_cold(graph, level) for level in LEVELS}
    unfused = gk.compile(graph, opt_level=0, host=OnnxRuntimeHost(optimize=False))
    return Contest(graph, inputs, reference, unfused, levels)


def _compile_cold(graph: gk.Graph, level: int) -> gk.Executable:
    """Compiles with an empty kernel cache of its own, so that the time is that of a first run."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GRAPHKERNEL_CACHE_DIR"] = folder
        return gk.compile(graph, opt_level=level)


def show(net: Contest) -> bool:
    """Prints the tables of a net; says whether all levels agree with onnxruntime."""
    times = _times(net)
    expected = net.onnxruntime(*net.inputs)
    operators = len(net.graph.operators)
    rows: list[tuple[object, ...]] = []
    agree = True
    for level, executable in net.levels.items():
        report = executable.report
        difference = largest_difference(executable(*net.inputs)[0], expected)
        agree &= difference <= AGREEMENT
        shape = (operators, report.fused_operators, report.kernel_calls, len(report.kernels), len(report.host))
        measured = (times[f"level {level}"], times["unfused"], times["onnxruntime"])
        made = (f"{report.optimize_ms:.0f}", f"{report.compile_ms:.0f}")
        rows.append((level, *shape, f"{difference:.1e}", *measured, *made))
    columns = (
        *("level", "operators", "basic operators in kernels", "kernel calls", "distinct kernels", "host steps"),
        *("largest difference", "ours ms", "unfused ms", "onnxruntime ms", "optimize ms", "cold compile ms"),
    )
    print_table(columns, rows, title=f"{net.graph.name}: {', '.join(str(list(x.shape)) for x in net.inputs)}")
    _show_kernels(net.levels[2], net.inputs)
    return agree


def _show_kernels(executable: gk.Executable, inputs: Inputs) -> None:
    """What each kernel of a level holds, and the memory it moves and saves."""
    symbols = bind_symbols(executable.graph.inputs, inputs)
    rows = [
        (
            len(kernel.calls), ", ".join(kernel.operators), size_text(evaluate(kernel.bytes_moved, symbols)),
            size_text(evaluate(kernel.bytes_unfused, symbols)), f"{kernel.compile_ms:.1f}",
        )
        for kernel in executable.report.kernels
    ]  # fmt: skip
    print_table(("calls", "a kernel that holds", "moves", "unfused", "compile ms"), rows, title="kernels at level 2")


def _times(net: Contest) -> dict[str, str]:
    """Milliseconds of each contestant, median (least-greatest) of rounds in which they take turns.

    A turn begins with a run that is not timed: it lets the threads of the contestant before fall asleep.
    """
    contestants: dict[str, Callable[..., object]] = {f"level {level}": exe for level, exe in net.levels.items()}
    contestants |= {"unfused": net.unfused, "onnxruntime": net.onnxruntime}
    samples: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, run in contestants.items():
            run(*net.inputs)
            samples[name] += [_milliseconds(run, net.inputs) for _ in range(RUNS_PER_TURN)]
    return {name: _spread(found) for name, found in samples.items()}


def _milliseconds(run: Callable[..., object], inputs: Inputs) -> float:
    start = time.perf_counter()
    run(*inputs)
    return (time.perf_counter() - start) * 1e3


def _spread(samples: Sequence[float]) -> str:
    return f"{statistics.median(samples):.1f} ({min(samples):.1f}-{max(samples):.1f})"


def encode_sentences(folder: Path) -> bool:
    """Real sentences through the sentence encoder; prints which are alike."""
    path = export_minilm_onnx.export(folder / "minilm.onnx")
    net = contest(path, minilm.Tokenizer.of(minilm.model_folder())(minilm.SENTENCES))
    agree = show(net)
    (embeddings,) = net.levels[2](*net.inputs)
    cosines = embeddings @ embeddings.T
    columns = ("cosine similarity", *(str(number) for number in range(len(cosines))))
    rows = [(f"{i} {text}", *(f"{c:.2f}" for c in cosines[i])) for i, text in enumerate(minilm.SENTENCES)]
    print_table(columns, rows, title="embeddings at level 2")
    return agree


def classify_image(folder: Path) -> bool:
    """A random image through ResNet-50 with random weights."""
    path = folder / "resnet50.onnx"
    onnx.save(resnet50.model(), path)
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
    return show(contest(path, (image,)))


def main() -> None:
    """Runs the demo; exit code 1 when a level does not agree with onnxruntime."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        agree = [encode_sentences(Path(folder)), classify_image(Path(folder))]
    verdict = "all levels agree with onnxruntime" if all(agree) else "results differ from onnxruntime's"
    print(f"{verdict} to {AGREEMENT:g}; {time.perf_counter() - start:.0f} s")
    sys.exit(not all(agree))


if __name__ == "__main__":
    main()
