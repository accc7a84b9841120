"""``python -m benchmarks.exported FOLDER --json OUT``: which named fusions reach exported models, and what is launched then.

The folder is one that ``benchmarks.peers.exported_models`` wrote: ONNX files of transformers' networks, with inputs and with
what onnxruntime computes for them. For each model: the named fusions of Ascend that fire, how many of their operators have a
kernel, launches on every target and level, and how far the results are from onnxruntime's: on the cpu in native code, on
Ascend in the simulator where that is asked for.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import graphkernel as gk
import kernelgen
from benchmarks.networks import NO_LAUNCH, TARGETS
from graphkernel.expanders.lists import NATIVE_ON_ASCEND
from graphkernel.handoff import to_desc
from graphkernel.report.difference import largest_difference
from kernelgen.composite.description import KernelDesc
from kernelgen.errors import KernelgenError
from kernelgen.tensor.graph import Graph, Node

LEVELS = (0, 2, 3)
KERNEL_CODES = ("expanded-named", "named-kernel")


def measured(path: Path, *, simulate: bool) -> dict[str, Any]:
    """The record of one model."""
    graph = gk.load(path)
    with np.load(path.with_suffix(".npz")) as file:
        arrays = [file[name] for name in file.files if name != "expected"]
        expected = [file["expected"]]
    explained = gk.explain(graph, target="ascend")
    fired = Counter(decision.pass_name for decision in explained.decisions if decision.code == "fused-named")
    codes = Counter(decision.code for decision in explained.decisions)
    errors = {"cpu": error(graph, "cpu", arrays, expected)}
    errors |= {"ascend": error(graph, "ascend", arrays, expected)} if simulate else {}
    return {
        "operators": len(graph.operators),
        "named_fusions": dict(sorted(fired.items())),
        "named_operators_in_kernels": sum(codes[code] for code in KERNEL_CODES),
        "named_operators_without": named_outside(explained.after),
        "launches": {
            target: [launches(gk.optimize(graph, level, target), target) for level in LEVELS] for target in TARGETS
        },
        "kernels_on_ascend": sum(node.body is not None for node in explained.after.operators),
        "largest_error": errors,
    }


def named_outside(graph: Graph) -> int:
    """Operators that Ascend has by name and that no kernel holds."""
    return sum(node.op.name in NATIVE_ON_ASCEND for node in graph.operators)


def launches(graph: Graph, target: str) -> int:
    """Kernels, in as many launches as they take, and operators outside of kernels; views launch nothing."""
    launched = [node for node in graph.operators if node.body is not None or node.op.kind not in NO_LAUNCH]
    return sum(of_kernel(node, target) if node.body is not None else 1 for node in launched)


def of_kernel(kernel: Node, target: str) -> int:
    """The launches of a kernel; of one that the generator declines those of its operators."""
    found = 1 if target != "gpu" else of_description(to_desc(kernel, target).renamed("kernel"), target)
    inside = kernel.body.operators if kernel.body is not None else ()
    return sum(node.op.kind not in NO_LAUNCH for node in inside) if found is None else found


@cache
def of_description(desc: KernelDesc, target: str) -> int | None:
    """The launches of a kernel, or None where there is none; equal kernels are made once."""
    try:
        return kernelgen.compile(desc, target).launches
    except KernelgenError as failure:
        print(f"no kernel on {target}: {failure}", flush=True)
        return None


def error(graph: Graph, target: str, arrays: Sequence[np.ndarray[Any, Any]], expected: Sequence[Any]) -> float:
    """The largest difference from onnxruntime's results, relative to their largest magnitude."""
    executable = gk.compile(graph, opt_level=2, target=target)
    return max(largest_difference(got, want) for got, want in zip(executable(*arrays), expected, strict=True))


def main() -> None:
    """Every model of the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", required=True, type=Path, metavar="OUT")
    parser.add_argument("--simulate", default="", metavar="WORD", help="also on Ascend, where the name has the word")
    arguments = parser.parse_args()
    cases: dict[str, Any] = {}
    for path in sorted(arguments.folder.glob("*.onnx")):
        simulate = bool(arguments.simulate) and arguments.simulate in path.stem
        cases[path.stem] = measured(path, simulate=simulate)
        print(path.stem, cases[path.stem], flush=True)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    arguments.json.write_text(json.dumps({"date": date, "cases": cases}, indent=1) + "\n")


if __name__ == "__main__":
    main()
