"""Who runs a case: ours, torch.compile, torch eager, and the machine that only moves the bytes.

Ours and torch.compile run twice: into a given output (the quality of the code), and with a fresh output for every call
(what a user sees). torch writes into the given output inside its compiled function, so that it is one kernel there too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

import graphkernel as gk
from benchmarks.case import Problem
from benchmarks.machine import Copy, Read, aligned

OURS, TORCH, LIMIT = "ours", "torch.compile", "limit"
WRITE_SHARE = 0.1  # below this share of written bytes the limit is a read


@dataclass(frozen=True)
class Contestant:
    """A name, a call to be timed, and where the answer of the last call lies (None: it computes nothing)."""

    name: str
    run: Callable[[], object]
    answer: Callable[[], np.ndarray] | None = None


def ours(problem: Problem) -> Iterator[Contestant]:
    """Our kernels, compiled at opt_level 2."""
    specs = [gk.spec(shape, "float32") for shape in problem.shapes.values()]
    executable = gk.compile(gk.trace(problem.case.ours, *specs, name=problem.case.name), opt_level=2)
    out, inputs = output(problem), problem.inputs
    yield Contestant(OURS, lambda: executable(*inputs, out=(out,)), lambda: out)
    yield Contestant(f"{OURS} (fresh output)", lambda: executable(*inputs))


def peers(problem: Problem) -> Iterator[Contestant]:
    """torch.compile and eager torch, on one thread, over the same input memory."""
    torch = import_module("torch")
    torch.set_num_threads(1)
    torch.compiler.reset()  # else the cases count as recompilations of one function, and late ones would run eagerly
    function = problem.case.torch(torch)
    inputs = [torch.from_numpy(values) for values in problem.inputs]
    out = torch.from_numpy(output(problem))

    def into(out: Any, *inputs: Any) -> None:  # torch is not installed where types are checked
        out.copy_(function(*inputs))

    compiled_into, compiled = (torch.compile(one, dynamic=False, fullgraph=True) for one in (into, function))
    inference = torch.inference_mode
    yield Contestant(TORCH, inference()(lambda: compiled_into(out, *inputs)), lambda: out.numpy())
    yield Contestant(f"{TORCH} (fresh output)", inference()(lambda: compiled(*inputs)))
    yield Contestant("torch eager", inference()(lambda: function(*inputs)))


def limit(problem: Problem) -> Iterator[Contestant]:
    """The machine's own time for the bytes of the case."""
    written = problem.truth.size * 4 / problem.bytes
    yield Contestant(LIMIT, Copy(problem.bytes) if written > WRITE_SHARE else Read(problem.bytes))


OFFERS: Mapping[str, Callable[[Problem], Iterator[Contestant]]] = {"ours": ours, "torch": peers, "limit": limit}


def output(problem: Problem) -> np.ndarray:
    """A page-aligned array for the answer."""
    shape = problem.truth.shape
    return aligned(problem.truth.size).reshape(shape)
