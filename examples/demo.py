"""The demo: a sentence encoder with its real weights, and ResNet-50, fused and compiled, against onnxruntime.

``python -m examples.demo`` (or ``make demo``) loads both nets from ONNX and compiles them at levels 1 to 3, each with an
empty cache. Everybody runs alone in a process of its own, in turns. onnxruntime runs as it comes, without spinning, and
with one thread: what counts as its time is the best of these. "unfused" is every operator on onnxruntime, called by us.
"""

from __future__ import annotations

import os
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from examples import export_minilm_onnx, minilm, resnet50
from graphkernel.cli.contest import Contestant, Fused, Made, OnnxRuntime, Outcome, Unfused, contest
from graphkernel.cli.measuring import bench_rows, busy_now, threads_told
from graphkernel.cli.progress import progress, within
from graphkernel.frontends.load import load
from graphkernel.report.difference import largest_difference
from graphkernel.report.page.counted import counted
from graphkernel.report.report import Report, size_text
from graphkernel.report.table import Amount, drawn
from graphkernel.step_hooks import Progress
from kernelgen.tensor.bind import bind_symbols
from kernelgen.tensor.types import evaluate

WIDTH = 60  # characters of a line, so that it fits any terminal
LEVELS = (1, 2, 3)
SHOWN = 2  # the level whose kernels are shown, and of which the last line speaks
MOST_KERNELS = 6
ROUNDS = 7
AGREEMENT = 1e-5  # of the largest value
SETTINGS: Mapping[str, Mapping[str, object]] = {
    "onnxruntime": {},
    "- no spinning": {"session.intra_op.allow_spinning": "0"},
    "- one thread": {"intra_op_num_threads": 1},
}

Inputs = Sequence[np.ndarray]


@dataclass(frozen=True)
class Cold:
    """A level, compiled with an empty cache of kernels."""

    fused: Fused

    def make(self, tell: Progress) -> Made:
        """Compiles."""
        with tempfile.TemporaryDirectory() as folder:
            os.environ["GRAPHKERNEL_CACHE_DIR"] = folder
            return self.fused.make(tell)


@dataclass(frozen=True)
class Result:
    """What came out for a net: everybody's outcome, and how far each is from onnxruntime."""

    name: str
    operators: int
    outcomes: Mapping[str, Outcome]
    apart: Mapping[str, float]

    @property
    def report(self) -> Report:
        """What the shown level consists of."""
        found = self.outcomes[f"level {SHOWN}"].report
        assert found is not None, "compiled models have one"
        return found

    @property
    def speed(self) -> float:
        """How many times as fast the shown level is as onnxruntime at its best, by the least times."""
        best = min(self.outcomes[name].seconds.least for name in SETTINGS)
        return best / self.outcomes[f"level {SHOWN}"].seconds.least

    @property
    def agrees(self) -> bool:
        """Whether every level gives what onnxruntime gives."""
        return all(each <= AGREEMENT for each in self.apart.values())


def measure(name: str, path: Path, inputs: Inputs, tell: Progress) -> Result:
    """Runs a net in all ways."""
    rivals: dict[str, Contestant] = {who: OnnxRuntime(path, settings) for who, settings in SETTINGS.items()}
    rivals |= {"unfused": Unfused(path)} | {f"level {level}": Cold(Fused(path, level)) for level in LEVELS}
    outcomes = contest(rivals, inputs, ROUNDS, within(tell, name))
    expected = outcomes["onnxruntime"].results[0]
    apart = {who: largest_difference(outcome.results[0], expected) for who, outcome in outcomes.items()}
    return Result(name, len(load(path).operators), outcomes, apart)


def show(result: Result, inputs: Inputs) -> None:
    """Prints how long everybody takes."""
    sizes = ", ".join(dict.fromkeys(str(list(each.shape)) for each in inputs))
    rows = [
        (row[0], *row[1:3], *row[4:], Amount(apart, f"{apart:.0e}"))
        for row, apart in zip(bench_rows(result.outcomes), result.apart.values(), strict=True)
    ]
    columns = ("", "ms", "least", "speed", "ready", "memory", "apart")
    print(drawn(columns, rows, f"\n{result.name} on {sizes}, {threads_told()}", WIDTH))


def show_kernels(result: Result, path: Path, inputs: Inputs) -> None:
    """Prints what each kernel holds, and the memory traffic that it saves."""
    symbols = bind_symbols(load(path).inputs, inputs)
    rows: list[tuple[int, tuple[object, ...]]] = []
    for kernel in result.report.kernels:
        calls, moved, before = (
            len(kernel.calls),
            *(int(evaluate(size, symbols)) for size in (kernel.bytes_moved, kernel.bytes_unfused)),
        )
        holds = ", ".join(f"{often} {name}" if often > 1 else name for name, often in Counter(kernel.operators).items())
        rows.append((calls * (moved - before), (calls, size_text(moved), size_text(before), holds)))
    dearest = [row for _, row in sorted(rows, key=lambda entry: entry[0])][:MOST_KERNELS]
    title = f"\nlevel {SHOWN}: the {len(dearest)} of {len(rows)} kernels that save most memory traffic"
    print(drawn(("calls", "moves", "unfused", "holds"), dearest, title, WIDTH))


def show_sentences(embeddings: np.ndarray) -> None:
    """Prints for each sentence the one that is most like it."""
    cosines = embeddings @ embeddings.T - 2 * np.eye(len(embeddings))
    rows = [
        (text, f"{cosine:.2f}", minilm.SENTENCES[other])
        for text, other, cosine in zip(minilm.SENTENCES, cosines.argmax(1), cosines.max(1), strict=True)
    ]
    print(drawn(("sentence", "cosine", "the one most like it"), rows, "\nwhat the sentence encoder says", WIDTH))


def conclusion(results: Sequence[Result], seconds: float, warning: str = "") -> str:
    """What was gained, in words."""
    told = [
        f"{result.name}: {counted(result.operators, 'operator')} became {counted(result.report.kernel_calls, 'kernel call')}"
        f" and {counted(len(result.report.host), 'call')} of onnxruntime; {result.speed:.2f} times as fast as onnxruntime "
        f"at its best"
        for result in results
    ]
    agree = all(result.agrees for result in results)
    verdict = "all levels agree with onnxruntime" if agree else "results differ from onnxruntime's"
    told.append(f"{verdict} to {AGREEMENT:g} of the largest value; {seconds:.0f} s")
    return "\n".join(["", *(textwrap.fill(line, WIDTH) for line in [warning, *told] if line)])


def main() -> None:
    """Runs the demo; exit code 1 when a level does not agree with onnxruntime."""
    start, warning = time.perf_counter(), busy_now()
    with tempfile.TemporaryDirectory() as folder, progress("writing both nets as ONNX") as tell:
        encoder = export_minilm_onnx.export(Path(folder) / "minilm.onnx")
        network = Path(folder) / "resnet50.onnx"
        onnx.save(resnet50.model(), network)
        sentences = minilm.Tokenizer.of(minilm.model_folder())(minilm.SENTENCES)
        image = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype(np.float32)
        nets = (("sentence encoder", encoder, sentences), ("ResNet-50", network, (image,)))
        results: list[Result] = []
        for name, path, inputs in nets:
            results.append(measure(name, path, inputs, tell))
            show(results[-1], inputs)
            show_kernels(results[-1], path, inputs)
    show_sentences(results[0].outcomes[f"level {SHOWN}"].results[0])
    print(conclusion(results, time.perf_counter() - start, warning))
    sys.exit(not all(result.agrees for result in results))


if __name__ == "__main__":
    main()
