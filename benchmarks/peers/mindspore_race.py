"""Our networks beside MindSpore's: ``python -m benchmarks.peers.mindspore_race --json OUT``.

Runs with an interpreter that has ``mindspore==2.10.0``, ``decorator`` and what we depend on. MindSpore reads no ONNX files:
the networks are those of ``examples.networks`` and of :mod:`benchmarks.peers.mindspore_nets`, which builds them from its
layers. Each side draws its own weights, so results are not compared. MindSpore runs in graph mode, once with its graph
kernels and once without; threads are measured as :mod:`benchmarks.whole_networks.race` measures them.
"""
# pyright: reportMissingImports=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import datetime
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import graphkernel as gk
from benchmarks.machine import describe
from benchmarks.networks import NETWORKS
from benchmarks.whole_networks.contestants import OURS, Run
from benchmarks.whole_networks.race import Undisturbed
from examples.networks.bert import Bert
from examples.networks.llama import Llama
from examples.networks.resnet import ResNet
from examples.networks.weights import Specs, draw
from graphkernel.cli.contest import Contestant, contest
from graphkernel.errors import RuntimeFailure
from kernelgen.tensor.graph import Graph

THREADS = (1, 2)
INFERENCE: Mapping[str, tuple[Callable[..., Any], Specs]] = {
    "bert_encoder": (Bert().encode, Bert().weights()),
    "resnet_inference": (ResNet().classify, ResNet().weights()),
    "llama_block": (Llama().decode, Llama().weights()),
}
"""Networks whose weights are known when they are compiled; all others write theirs in place."""


@dataclass(frozen=True)
class Ours:
    """A network of ``examples.networks`` as ``graphkernel.compile`` makes it, on inputs of its own."""

    name: str
    threads: int

    def make(self, tell: object = None) -> tuple[Run, None]:
        """Traces and compiles."""
        graph, arrays = _drawn(self.name)
        executable = gk.compile(graph, threads=self.threads)
        return lambda: executable(*arrays), None


def _drawn(name: str) -> tuple[Graph, Sequence[np.ndarray[Any, Any]]]:
    """A network, its weights as constants where it does not write them, and arrays for its inputs."""
    graph = NETWORKS[name].real()
    arrays = draw(graph)
    if name not in INFERENCE:
        return graph, arrays
    function, weights = INFERENCE[name]
    count = len(arrays) - len(weights)
    inputs = [value.type for value in graph.inputs[:count]]
    constants = dict(zip(weights, arrays[count:], strict=True))
    return gk.trace(lambda *given: function(*given, constants), *inputs, name=name), arrays[:count]


@dataclass(frozen=True)
class MindSpore:
    """The network of MindSpore's layers, compiled whole. ``fused``: with its graph kernels."""

    name: str
    threads: int
    fused: bool

    def make(self, tell: object = None) -> tuple[Run, None]:
        """Builds the network; the first run compiles it."""
        import mindspore

        from benchmarks.peers.mindspore_nets import NETWORKS as NETS

        mindspore.set_context(mode=mindspore.GRAPH_MODE, device_target="CPU", enable_graph_kernel=self.fused)
        mindspore.set_context(runtime_num_threads=self.threads)
        network, inputs = NETS[self.name]()

        def run() -> Sequence[Any]:
            found = network(*inputs)
            return [each.asnumpy() for each in (found if isinstance(found, tuple) else (found,))]

        return run, None


def race(name: str, threads: int, rounds: int) -> dict[str, Any]:
    """What each contestant took, in milliseconds; or why it failed."""
    os.environ |= {"OMP_NUM_THREADS": str(threads), "GLOG_v": "3"}
    clock = time.process_time if threads == 1 else time.perf_counter
    offers: dict[str, Contestant] = {
        OURS: Ours(name, threads),
        "MindSpore": MindSpore(name, threads, fused=False),
        "MindSpore, graph kernels": MindSpore(name, threads, fused=True),
    }
    entered = {key: each if threads == 1 else Undisturbed(each) for key, each in offers.items()}
    failed: dict[str, Any] = {}
    while True:
        try:
            found = contest(entered, [], rounds, lambda *_: None, clock)
        except RuntimeFailure as error:
            key = next(key for key in entered if str(error).startswith(f"{key}: "))
            failed[key] = str(error).splitlines()[0][:200]
            del entered[key]
        else:
            times = {key: (each.seconds.median, each.seconds.least) for key, each in found.items()}
            return failed | {
                key: {"median": round(1e3 * median, 4), "least": round(1e3 * least, 4)}
                for key, (median, least) in times.items()
            }


def main() -> None:
    """Every network that is asked for, on all numbers of threads; the record grows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, required=True, metavar="OUT")
    parser.add_argument("--net", action="append", default=[], help="only this one; may repeat")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    record: dict[str, Any] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {"networks": {}}
    for name in arguments.net or [*INFERENCE, "bert_training", "bottleneck_training"]:
        load = round(os.getloadavg()[0], 1)
        races = {str(threads): race(name, threads, arguments.rounds) for threads in THREADS}
        record["networks"][name] = {"races": races, "load": load}
        print(name, races, flush=True)
        record |= {"date": datetime.datetime.now(datetime.UTC).date().isoformat(), "machine": describe()}
        arguments.json.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
