"""``python -m benchmarks compile --json OUT``: how long kernels take to compile, stage by stage.

Every file of the AKG corpus, and generated kernels of growing length. Libraries are loaded and one kernel is compiled before
the clock starts; the cache of objects is empty for every kernel. Kernels run through a process of their own, one after the
other; one that takes more than a minute, or kills the process, is recorded as lost.
"""

from __future__ import annotations

import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelgen.composite.description import KernelDesc, Tensor
from kernelgen.composite.document import Document, Operation
from kernelgen.composite.link import linked
from kernelgen.errors import KernelgenError
from kernelgen.tensor.attrs import Attrs
from kernelgen.tensor.dtypes import FLOAT32

CORPUS = Path(__file__).parents[2] / "shared" / "akg_corpus"
SUFFIXES = (".info", ".json", ".info_failed", ".failed")
LIMIT_SECONDS = 60
SIZES: Mapping[str, Sequence[int]] = {"chain": (25, 50, 100, 200, 400, 800), "softmaxes": (5, 10, 20, 40)}
TINY_SIZES: Mapping[str, Sequence[int]] = {"chain": (5, 10), "softmaxes": (1, 2)}
TINY_FILES = 3
SHAPE = (64, 64)
Row = dict[str, Any]


def run(names: Sequence[str] = (), *, tiny: bool = False) -> dict[str, Any]:
    """The corpus and the growing kernels, or those of these names: ``corpus``, ``chain``, ``softmaxes``."""
    cases: dict[str, Any] = {}
    if not names or "corpus" in names:
        cases["corpus"] = _corpus(tiny)
    for kind, sizes in (TINY_SIZES if tiny else SIZES).items():
        if not names or kind in names:
            cases[kind] = _growth([row for row in _measured([f"{kind} {size}" for size in sizes])])
    return cases


def _corpus(tiny: bool) -> Row:
    files = sorted(str(path) for path in CORPUS.rglob("*") if path.name.endswith(SUFFIXES))
    rows = list(_measured(files[:TINY_FILES] if tiny else files))
    done = [row for row in rows if "total" in row]
    stages = {name: None for row in done for name in row["stages"]}
    slowest = sorted(done, key=lambda row: -row["total"])[:10]
    record = {
        "files": len(rows),
        "refused": sum("refused" in row for row in rows),
        "lost": [Path(row["name"]).name for row in rows if "lost" in row],
        "milliseconds": _spread([row["total"] for row in done]),
        "stages": {name: _spread([row["stages"].get(name, 0.0) for row in done]) for name in stages},
        "slowest": [{"name": Path(row["name"]).name[:80], "operators": row["operators"], "milliseconds": round(row["total"], 1)}
                    for row in slowest],
    }  # fmt: skip
    print("corpus", {key: record[key] for key in ("files", "refused", "lost", "milliseconds")}, flush=True)
    return record


def _spread(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    ordered = sorted(values)
    last = ordered[min(len(ordered) - 1, math.ceil(0.95 * len(ordered)) - 1)]
    return {"median": round(statistics.median(ordered), 2), "p95": round(last, 2), "max": round(ordered[-1], 2)}


def _growth(rows: Sequence[Row]) -> list[Row]:
    """A row a size, with the exponent of growth from the size before (1 is linear)."""
    found: list[Row] = []
    for row in rows:
        if "total" not in row:
            found.append(row)
            continue
        stages = {
            name: round(spent, 1) for name, spent in sorted(row["stages"].items(), key=lambda e: -e[1]) if spent >= 1
        }
        entry = {"operators": row["operators"], "milliseconds": round(row["total"], 1), "stages": stages}
        if found and "milliseconds" in found[-1]:
            last = found[-1]
            times = math.log(entry["milliseconds"] / last["milliseconds"])
            entry["exponent"] = round(times / math.log(entry["operators"] / last["operators"]), 2)
        found.append(entry)
        print(row["name"], {key: entry[key] for key in entry if key != "stages"}, flush=True)
    return found


# ---------------------------------------------------------------- the measuring process


def _measured(names: Sequence[str]) -> Iterator[Row]:
    """A row for each name; a process that ends early has lost the kernel that it was at."""
    position = 0
    while position < len(names):
        command = [sys.executable, "-c", "from benchmarks import compile_time; compile_time.main()"]
        text = "\n".join(names[position:])
        done = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=False)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        yield from rows
        position += len(rows)
        if position < len(names):
            yield {"name": names[position], "lost": f"the process ended with code {done.returncode}"}
            position += 1


def main() -> None:
    """Compiles the kernels named on standard input and prints a row for each."""
    _compiled(_chain(2))
    for name in sys.stdin.read().splitlines():
        signal.alarm(LIMIT_SECONDS)  # nobody handles it: the process ends
        print(json.dumps(_row(name)), flush=True)


def _row(name: str) -> Row:
    from kernelgen.composite.read import load_desc

    kind, _, size = name.partition(" ")
    try:
        desc = GENERATED[kind](int(size)) if kind in GENERATED else load_desc(Path(name))
        return {"name": name, "operators": len(desc.operators), **_compiled(desc)}
    except KernelgenError as error:
        return {"name": name, "refused": str(error)}


def _compiled(desc: KernelDesc) -> Row:
    from kernelgen.driver import compile

    with tempfile.TemporaryDirectory() as folder:
        os.environ["GRAPHKERNEL_CACHE_DIR"] = folder
        start = time.perf_counter()
        stages = compile(desc, target="cpu").resources.milliseconds
        return {"total": (time.perf_counter() - start) * 1e3, "stages": dict(stages)}


# ---------------------------------------------------------------- generated kernels


def _chain(operators: int) -> KernelDesc:
    """One element-wise operator behind the other."""
    ops: list[Operation] = []
    x = value = Tensor("x", SHAPE, FLOAT32)
    for position in range(operators):
        name = ("Tanh", "Neg", "Abs", "Mul", "Add")[position % 5]
        value = _append(ops, name, (value, x) if name in ("Mul", "Add") else (value,), SHAPE)
    return linked(Document("chain", (x,), (value,), tuple(ops)))


def _softmaxes(count: int) -> KernelDesc:
    """One softmax behind the other: four operators with two reductions each."""
    ops: list[Operation] = []
    x = value = Tensor("x", SHAPE, FLOAT32)
    for _ in range(count):
        top = _append(ops, "ReduceMax", (value,), (SHAPE[0], 1))
        e = _append(ops, "Exp", (_append(ops, "Sub", (value, top), SHAPE),), SHAPE)
        value = _append(ops, "RealDiv", (e, _append(ops, "ReduceSum", (e,), (SHAPE[0], 1))), SHAPE)
    return linked(Document("softmaxes", (x,), (value,), tuple(ops)))


def _append(ops: list[Operation], name: str, inputs: tuple[Tensor, ...], shape: tuple[int, ...]) -> Tensor:
    result = Tensor(f"t{len(ops)}", shape, FLOAT32)
    attrs = Attrs.of({"axis": (1,), "keep_dims": True}) if name.startswith("Reduce") else Attrs()
    ops.append(Operation(name, inputs, (result,), attrs))
    return result


GENERATED = {"chain": _chain, "softmaxes": _softmaxes}
