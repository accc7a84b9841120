"""``python -m tests.random_collectives --count 5000 --seed 0 --json OUT``: no pass touches what ranks do to each other.

Random graphs with collectives, some of them equal, unread, or of constants, go through all passes of every level, for each
target and with flags that make kernels of more. After every pass their collectives are the same, each once, in an order that
dependences alone give. This is seen without the rooms that keep it. Some graphs also run on two ranks in memory, which start
the same in one order and have the numbers of the graph as it came. Ends with status 1 when there was a failure.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import graphkernel as gk
from graphkernel import driver, ops
from graphkernel.communication.in_memory import run_ranks
from graphkernel.passes.base import Step
from kernelgen.tensor.graph import Graph, Node
from tests.ranks.logged import Logged

CHUNK, RUN_EVERY, ROWS, RANKS = 20, 10, 4, 2
KINDS = ("AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AllToAll", "Send", "Receive")
FLAGS = ("", "", "--enable_cluster_ops=MatMul,AllReduce", "--enable_parallel_fusion=true", "--fusion_ops_level=1")


def random_graph(seed: int, *, messages: bool = True) -> Graph:
    """Functions of tensors of one shape; without ``messages`` every rank may run it."""
    draw = np.random.default_rng(seed)

    def function(x, y, w):
        known = [x, y]
        for _ in range(int(draw.integers(3, 14))):
            made = _operator(draw, known, w) if draw.random() < 0.6 else _collective(draw, known, messages=messages)
            known += [] if made is None else [made]
        return tuple(known[-int(draw.integers(1, 4)) :])

    return gk.trace(function, gk.spec((ROWS, 4)), gk.spec((ROWS, 4)), gk.spec((4, 4)), name=f"random_{seed}")


def _pick(draw, known):
    return known[int(draw.integers(len(known)))]


def _operator(draw, known, w):
    """One that keeps the shape; some end in what passes fold or drop: x - x, 0 * x, a constant, a shape."""
    x, y = _pick(draw, known), _pick(draw, known)
    return [
        lambda: x + y, lambda: x * y, lambda: x - x, lambda: x * 0.0, lambda: ops.tanh(x), lambda: ops.relu(x),
        lambda: x @ w, lambda: ops.softmax(x), lambda: x - ops.reduce_mean(x, axis=1, keep_dims=True),
        lambda: ops.zeros_like(x), lambda: x.transpose().transpose(), lambda: x.reshape(16).reshape(ROWS, 4),
        lambda: ops.cast(ops.cast(x, "float16"), "float32"),
    ][int(draw.integers(13))]()  # fmt: skip


def _collective(draw, known, *, messages: bool):
    """Often equal to an earlier one, and on the same operand; its group tells it from others or not."""
    x = _pick(draw, known)
    group: dict[str, Any] = {"group": str(draw.choice(["world", "other"])), "rank_size": RANKS}
    tag = int(draw.integers(3))
    choices: list[Callable[[], Any]] = [
        lambda: ops.all_reduce(x, **group), lambda: ops.all_reduce(x, op="max", **group),
        lambda: ops.all_gather(x, **group)[:ROWS], lambda: ops.concat([ops.reduce_scatter(x, **group)] * RANKS),
        lambda: ops.broadcast(x, tag % RANKS, **group), lambda: ops.all_to_all(x, **group),
    ]  # fmt: skip
    if messages:
        choices += [lambda: ops.send(x, 1, tag, **group), lambda: ops.receive(x, 1, tag, **group)]
    return choices[int(draw.integers(len(choices)))]()


def order_of(graph: Graph) -> list[str]:
    """What a graph does to other ranks, in the order that dependences give; ValueError where they give none."""
    told = {node: _told(node) for node in graph.nodes}
    before: dict[Node, frozenset[Node]] = {}
    for node in graph.nodes:
        read = dict.fromkeys(arg.node for arg in node.args)
        before[node] = frozenset[Node]().union(*(before[one] | {one} if told[one] else before[one] for one in read))
    acting = sorted((node for node in graph.nodes if told[node]), key=lambda node: len(before[node]))
    if [len(before[node]) for node in acting] != list(range(len(acting))):
        raise ValueError(f"{len(acting)} collectives in no order")
    return [line for node in acting for line in told[node]]


def _told(node: Node) -> list[str]:
    if node.body is not None:
        return order_of(node.body)
    name = node.op.name.removeprefix("MatMul") if node.op.name == "MatMulAllReduce" else node.op.name
    names = ("group", "op", "root_rank", "dest_rank", "src_rank", "sr_tag")
    return [f"{name} {[node.attrs.get(key) for key in names]}"] if name in KINDS else []


def check(seed: int) -> str | None:
    """What is wrong with one graph after some pass, None where nothing is."""
    graph = random_graph(seed)
    wanted = order_of(graph)
    draw = np.random.default_rng([seed, 1])
    target, flags = str(draw.choice(["gpu", "ascend"])), str(draw.choice(FLAGS))

    def watch(step: Step, before: Graph, after: Graph) -> None:
        if order_of(after) != wanted:
            raise ValueError(f"{step.name}: {order_of(after)}, not {wanted}")

    for level in range(4):
        for where, told in {"cpu": "", target: flags}.items():
            try:
                found = driver.optimize(graph, level, where, told, hooks=(watch,))
                assert order_of(found) == wanted
            except Exception as error:
                return f"level {level}, {where}, {told}: {type(error).__name__}: {error}"
    return run(seed) if seed % RUN_EVERY == 0 else None


def run(seed: int) -> str | None:
    """What two ranks do differently from the graph as it came, at some level."""
    graph = random_graph(seed, messages=False)
    draw = np.random.default_rng(seed)
    arrays = draw.standard_normal((RANKS, 2, ROWS, 4)).astype(np.float32)
    weight = draw.standard_normal((4, 4)).astype(np.float32) / 2

    def ranks(level: int, host: str) -> list[tuple[Any, list[str]]]:
        def program(communicator):
            logged = Logged(communicator)
            executable = gk.compile(graph, level, flags="--enable_debug_mode=true", host=host, communicator=logged)
            return executable(*arrays[communicator.rank], weight), logged.log

        return run_ranks(RANKS, program)

    wanted = ranks(0, "numpy")
    for level in (2, 3):
        for found, reference in zip(ranks(level, "auto"), wanted, strict=True):
            if [line.split()[0] for line in found[1]] != [line.split()[0] for line in reference[1]]:
                return f"level {level} starts {found[1]}, not {reference[1]}"
            for one, other in zip(found[0], reference[0], strict=True):
                if not np.allclose(one, other, rtol=1e-3, atol=1e-3, equal_nan=True):
                    return f"level {level} has other numbers"
    return None


def chunk(first: int, count: int) -> tuple[list[tuple[int, str]], Counter[str]]:
    """The failures among some seeds, and how many collectives of each kind there were."""
    found = [(seed, why) for seed in range(first, first + count) if (why := check(seed)) is not None]
    kinds = Counter(line.split()[0] for seed in range(first, first + count) for line in order_of(random_graph(seed)))
    return found, kinds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.random_collectives", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed; the others follow")
    parser.add_argument("--json", metavar="OUT", help="where the record goes")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    start, done, failures, kinds = time.perf_counter(), 0, [], Counter[str]()
    starts = range(arguments.seed, arguments.seed + arguments.count, CHUNK)
    sizes = [min(CHUNK, arguments.seed + arguments.count - first) for first in starts]
    with ProcessPoolExecutor(arguments.processes) as pool:
        for size, (found, counted) in zip(sizes, pool.map(chunk, starts, sizes), strict=True):
            done, failures, kinds = done + size, [*failures, *found], kinds + counted
            print(f"\r{done} of {arguments.count}, {len(failures)} failures", end="", file=sys.stderr, flush=True)
            record = {
                "seed": arguments.seed, "graphs": done, "collectives": dict(sorted(kinds.items())), "failures": failures,
                "run_on_two_ranks": -(-done // RUN_EVERY), "levels": [0, 1, 2, 3], "targets": ["cpu", "gpu", "ascend"],
                "seconds": round(time.perf_counter() - start), "date": str(datetime.datetime.now(datetime.UTC).date()),
            }  # fmt: skip
            if arguments.json:
                Path(arguments.json).write_text(json.dumps(record, indent=1) + "\n")
    for seed, why in failures[:20]:
        print(f"seed {seed}: {why}")
    print(f"{done} graphs, {sum(kinds.values())} collectives, {len(failures)} failures")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
