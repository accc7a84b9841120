"""Peak memory of load, compile and first run beside onnxruntime's: ``python -m benchmarks.memory MODEL... [--json OUT]``.

Each contestant has a process of its own for each model, imports included: ours with an empty cache, ours again with the cache
that it left, and onnxruntime. Inputs are ones; an extent without a number is 1 where it comes first, else ``EXTENT``.
What a step takes is the growth of the peak (VmHWM) while it runs.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.child import ChildError, told_by

EXTENT = 64
MOST = 1.2  # of onnxruntime's peak
OURS, AGAIN, THEIRS = "ours", "ours, again", "onnxruntime"
Step = tuple[str, float]  # its name, and the MiB of the peak behind it


def peak() -> float:
    """MiB that this process held at most so far."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def ours(model: str) -> Iterator[Step]:
    """graphkernel's steps."""
    import numpy as np

    yield "numpy", peak()
    import graphkernel as gk

    graph = gk.load(model)
    yield "load", peak()
    exe = gk.compile(graph)
    yield "compile", peak()
    exe(*[np.ones(_shape(of.shape), of.dtype.numpy) for of in (value.type for value in graph.inputs)])
    yield "run", peak()


def theirs(model: str) -> Iterator[Step]:
    """onnxruntime's steps, as it comes."""
    import numpy as np

    yield "numpy", peak()
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    yield "import", peak()
    session: Any = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    yield "session", peak()
    types = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(float16)": "float16"}
    feeds = {
        each.name: np.ones(
            _shape(each.shape), types.get(each.type, each.type.removeprefix("tensor(").removesuffix(")"))
        )
        for each in session.get_inputs()
    }
    session.run(None, feeds)
    yield "run", peak()


CONTESTANTS: dict[str, Callable[[str], Iterator[Step]]] = {OURS: ours, AGAIN: ours, THEIRS: theirs}


def _shape(extents: Sequence[object]) -> tuple[int, ...]:
    return tuple(n if isinstance(n, int) and n > 0 else EXTENT if axis else 1 for axis, n in enumerate(extents))


def measured(model: str) -> dict[str, Any]:
    """The steps of each contestant, or the last line of its error."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in CONTESTANTS:
            command = ["-m", "benchmarks.memory", "--contestant", name, model]
            try:
                found[name] = told_by(command, {"GRAPHKERNEL_CACHE_DIR": cache})
            except ChildError as error:
                found[name] = str(error)
    return found


def lines(model: str, found: dict[str, Any]) -> Iterator[str]:
    """What a person reads: peaks, how many times onnxruntime's, and where they come from."""
    yield Path(model).name
    bases = [steps[-1][1] for steps in (found[THEIRS],) if not isinstance(steps, str)]
    for name, steps in found.items():
        if isinstance(steps, str):
            yield f"  {name:12} {steps[:60]}"
            continue
        last = steps[-1][1]
        growth = [
            (step, after - before) for (step, after), (_, before) in zip(steps, [("", 0.0), *steps], strict=False)
        ]
        times = f"{last / bases[0]:.2f}{'' if last <= MOST * bases[0] else ' *'}" if bases else ""
        yield f"  {name:12} {last:6.0f} MiB {times:7} " + ", ".join(f"{step} {more:.0f}" for step, more in growth)


def main() -> None:
    """Measures the models, each contestant in a fresh process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--json", type=Path, help="where the peaks go")
    parser.add_argument("--contestant", choices=list(CONTESTANTS), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.contestant:
        print(json.dumps(list(CONTESTANTS[given.contestant](given.models[0]))))
        return
    record: dict[str, Any] = {}
    for model in given.models:
        record[model] = measured(model)
        print(*lines(model, record[model]), sep="\n", flush=True)
    if given.json:
        given.json.write_text(json.dumps({Path(m).name: each for m, each in record.items()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
