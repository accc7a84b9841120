"""Tuning of one kernel as a function of bytes to bytes, for a farm: the description in, a finding out."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import kernelgen
from kernelgen import options
from kernelgen.composite.read import load_desc
from kernelgen.composite.specialize import specialize
from kernelgen.driver import compile
from kernelgen.errors import UnsupportedError
from kernelgen.farm.sandbox import TaskError, call
from kernelgen.kernel import Kernel
from kernelgen.samples.inputs import bind_symbols, draw
from kernelgen.strict_json import to_json
from kernelgen.system.answering import Limit
from kernelgen.tuning.comparison import Ratio, compared
from kernelgen.tuning.database import Bounds, Finding, Subject, digest_of, machine_here
from kernelgen.tuning.tune import tune
from kernelgen.verify.compare import compare

VERSION = kernelgen.__version__
FINAL_TURNS, FINAL_PRECISION, FINAL_SECONDS = 151, 0.02, 2.0
USUAL_SECONDS = 20.0
"""For the search of one kernel; compiling it and the last measurement come on top."""
LIMIT = Limit(600.0)


def request(subject: Subject, target: str = "cpu", most: int = 40, seconds: float = USUAL_SECONDS) -> bytes:
    """What asks for the tuning of a ``subject`` for a ``target`` on a machine like this one, by at most so many plans and
    ``seconds``."""
    limits = {"most": most, "seconds": seconds}
    here = {"machine": machine_here(), "threads": options.thread_count(), "version": VERSION}
    asked = {**subject._asdict(), "target": target, **limits, **here}
    return json.dumps(asked, sort_keys=True).encode()


def tuned(request: bytes) -> bytes:
    """The reply to a request, a :class:`Finding`. Raises what keeps this machine from giving one: another may."""
    return call("kernelgen.tuning.task:tuned_here", request, LIMIT)


def tuned_here(request: bytes) -> bytes:
    """The finding for a request, as JSON, measured in this process, with as many threads as whoever asked would use: workers
    of dask are told to use one. Raises TaskError on a machine of another kind."""
    asked = json.loads(request)
    if asked["threads"] != options.thread_count():
        options.use_threads(asked["threads"])
    if asked["machine"] != machine_here():
        raise TaskError(f"asked for {asked['machine']}, this is {machine_here()}")
    subject = Subject(asked["description"], tuple(asked["constants"]))
    return json.dumps(to_json(finding(subject, asked["target"], asked["most"], asked["seconds"]))).encode()


def finding(subject: Subject, target: str, most: int, seconds: float = USUAL_SECONDS) -> Finding:
    """Tunes a ``subject`` for a ``target`` by trying at most so many plans, for at most about so many ``seconds``.

    A plan is kept only if the kernel is faster with it by more than the noise, and its results are the same but for
    rounding. A kernel that cannot be compiled has a finding without a plan.
    """
    desc = load_desc(subject.description)
    desc = specialize(desc, bind_symbols(desc))
    versions = tuple(f"{name} {value}" for name, value in sorted(versions_here().items()))
    known = (subject.key, target, machine_here(), versions)
    try:
        kernel = compile(desc, target, constants=subject.constants)
    except UnsupportedError:
        return Finding(*known, "", Bounds(1.0, 1.0, 1.0), 0.0, 0.0, (), 0, "")
    inputs = [np.array(array) for array in draw(desc)]
    found = tune(kernel, inputs, most, seconds=seconds)
    same = _final(kernel, compile(desc, target, kernel.plan, subject.constants), inputs)
    noise = max(same.high - 1, 1 - same.low, 0.0)
    final = same if found.kernel is kernel else _final(kernel, found.kernel, inputs)
    is_kept = found.kernel is not kernel and is_gain(final, noise) and not _differ(kernel, found.kernel, inputs)
    plan = json.dumps({**found.kernel.plan.to_json(), "subject": ""}, sort_keys=True) if is_kept else ""
    bounds = Bounds(round(final.low, 4), round(final.median, 4), round(final.high, 4))
    followed = found.kernel if is_kept else kernel
    measured = sum(trial.ratio is not None for trial in found.trials)
    return Finding(
        *known, plan, bounds, round(noise, 4), _seconds(kernel, inputs), found.path if is_kept else (), measured,
        digest_of(followed.source),
    )  # fmt: skip


def is_gain(ratio: Ratio, noise: float) -> bool:
    """Whether a kernel is faster by more than the noise, wherever between its bounds the ratio lies."""
    return ratio.high < 1 - noise


def versions_here() -> dict[str, str]:
    """What times depend on besides the machine."""
    from importlib.metadata import version  # slow, and only where something is measured

    return {"kernelgen": VERSION, "llvmlite": version("llvmlite"), "threads": str(options.thread_count())}


def _final(kernel: Kernel, other: Kernel, inputs: Sequence[Any]) -> Ratio:
    return compared(kernel, other, inputs, FINAL_TURNS, precision=FINAL_PRECISION, seconds=FINAL_SECONDS)


def _differ(kernel: Kernel, other: Kernel, inputs: Sequence[Any]) -> bool:
    """Whether results differ by more than rounding."""
    given = ([array.copy() for array in inputs] for _ in range(2))
    expected, found = (each(*each.call_inputs(arrays)) for each, arrays in zip((kernel, other), given, strict=True))
    names = [tensor.name for tensor in kernel.desc.outputs]
    return bool(compare(kernel.desc, names, found, expected).fault)


def _seconds(kernel: Kernel, inputs: Sequence[Any]) -> float:
    spent, inputs = list[float](), kernel.call_inputs(inputs)
    for _ in range(5):
        start = time.perf_counter()
        kernel(*inputs)
        spent.append(time.perf_counter() - start)
    return min(spent)
