"""Commands that measure: bench compares a fused model with others that run it, profile tells where its time goes."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from graphkernel.cli.base import Dims, Flags, Inputs, Json, Level, Model, Seed, Target, app, say, show
from graphkernel.cli.contest import Contestant, Fused, OnnxRuntime, Outcome, Unfused, contest
from graphkernel.cli.model import arrays_for, extents, graph_of
from graphkernel.cli.progress import progress
from graphkernel.driver import compile
from graphkernel.options import Environment, core_count
from graphkernel.report.page.counted import counted, size_text
from graphkernel.report.report import Report
from graphkernel.report.table import Amount
from graphkernel.runtime.measure import Spread, StepTime
from graphkernel.runtime.measure import profile as profile_steps

Rounds = Annotated[int, typer.Option(min=1, help="how often everything is measured; the middle one counts")]
MOST_ROWS = 20


@app.command()
def bench(
    model: Model,
    inputs: Inputs = None,
    dims: Dims = None,
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
    rounds: Rounds = 15,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Time a model: on onnxruntime as it comes, unfused, and fused.

    Each runs alone in a process of its own, in turns; memory is the peak of that process, "ready" the time from the file
    to the first result. Speed compares the least times, which other work on the machine disturbs least: 2x is half the
    time of the first row.
    """
    sizes = extents(dims or ())
    contestants: dict[str, Contestant] = {"onnxruntime": OnnxRuntime(model)} if model.suffix == ".onnx" else {}
    contestants |= {"unfused": Unfused(model, sizes), "fused": Fused(model, opt_level, target, flags, sizes)}
    warning = busy_now()
    with progress("bench") as tell:
        arrays = arrays_for(graph_of(model, dims, tell), inputs, seed)
        found = contest(contestants, arrays, rounds, tell)
    say(f"{threads_told()}; the middle of {counted(rounds, 'round')}", err=True)
    report = found["fused"].report
    if report is not None:
        say(report.summary, err=True)
    show(("contestant", "ms", "least", "greatest", "speed", "ready", "peak memory"), bench_rows(found), as_json)
    first = next(iter(found))
    told = compared("fused", found["fused"].seconds, first, found[first].seconds)
    say(f"{told}; {warning}" if warning else told, err=True)


def threads_told() -> str:
    """How many threads a kernel may use."""
    return f"{counted(Environment.read().threads or core_count(), 'thread')} of {counted(core_count(), 'processor')}"


def busy(load: float, processors: int) -> str:
    """A warning where other work leaves no processor free before anything is measured; else nothing."""
    if load < processors:
        return ""
    return f"this machine is busy (load {load:.1f} on {counted(processors, 'processor')}): these times say little"


def busy_now() -> str:
    """The same for this machine now, where the system tells its load."""
    return busy(os.getloadavg()[0], core_count()) if hasattr(os, "getloadavg") else ""


def bench_rows(found: Mapping[str, Outcome]) -> list[tuple[object, ...]]:
    """A row for each contestant; the speed is the least time of the first over its own."""
    first = next(iter(found.values())).seconds.least
    return [
        (
            name,
            *_milliseconds(each.seconds),
            Amount(first / each.seconds.least, f"{first / each.seconds.least:.2f}x"),
            Amount(each.ready, f"{each.ready:.1f} s"),
            Amount(each.peak, size_text(each.peak)),
        )
        for name, each in found.items()
    ]


def compared(name: str, seconds: Spread, other: str, others: Spread) -> str:
    """``fused is 1.35 times as fast as onnxruntime``, where ``name`` took so many ``seconds`` and ``other`` took
    ``others``.
    """
    return f"{name} is {others.least / seconds.least:.2f} times as fast as {other}"


@app.command()
def profile(
    model: Model,
    inputs: Inputs = None,
    dims: Dims = None,
    opt_level: Level = 2,
    flags: Flags = "",
    target: Target = "cpu",
    rounds: Rounds = 15,
    seed: Seed = 0,
    full: Annotated[bool, typer.Option("--all", help=f"every row, not only the {MOST_ROWS} dearest")] = False,
    as_json: Json = False,
) -> None:
    """Tell where the time of a fused model goes: the dearest first, by the names that `report` gives."""
    with progress("profile") as tell:
        graph = graph_of(model, dims, tell)
        arrays = arrays_for(graph, inputs, seed)
        executable = compile(graph, opt_level, target, flags or None, progress=tell)
        tell("measuring", 0, 0)
        times = profile_steps(executable, arrays, rounds)
    rows = profile_rows(times, executable.report)
    say(f"{threads_told()}; the middle of {counted(rounds, 'round')}", err=True)
    show(("what runs", "kind", "calls", "ms", "share"), rows if full or as_json else rows[:MOST_ROWS], as_json)
    if not as_json:
        left = rows[MOST_ROWS:] if not full else []
        rest = f"and {len(left)} more (--all), {_sum(left)}; " if left else ""
        say(f"{rest}{totals(times)}")


def profile_rows(times: Sequence[StepTime], report: Report) -> list[tuple[object, ...]]:
    """A row for each kernel and each other step, the dearest first."""
    names = {call: kernel.name for kernel in report.kernels for call in kernel.calls}
    names |= {entry.name: str(entry) for entry in report.host}
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for step in times:
        found[names.get(step.name, step.name), step.kind].append(step.seconds.median)
    total = sum(map(sum, found.values())) or 1.0
    dearest = sorted(found.items(), key=lambda entry: -sum(entry[1]))
    return [
        (name, kind, len(spent), _in_ms(sum(spent)), Amount(sum(spent) / total, f"{sum(spent) / total:.1%}"))
        for (name, kind), spent in dearest
    ]


def totals(times: Sequence[StepTime]) -> str:
    """``kernel 1.20 ms (40.0%), host 1.80 ms (60.0%); 3.00 ms in all``: the steps of each kind, and all of them."""
    total = sum(step.seconds.median for step in times)
    kinds = {step.kind: sum(each.seconds.median for each in times if each.kind == step.kind) for step in times}
    parts = [f"{kind} {_in_ms(spent)} ms ({spent / (total or 1.0):.1%})" for kind, spent in kinds.items()]
    return f"{', '.join(parts)}; {_in_ms(total)} ms in all"


def _sum(rows: Sequence[Sequence[object]]) -> str:
    spent = sum(cell.value for row in rows for cell in row[3:4] if isinstance(cell, Amount))
    return f"{spent:.3g} ms"


def _in_ms(seconds: float) -> Amount:
    return Amount(1e3 * seconds, f"{1e3 * seconds:.4g}")


def _milliseconds(seconds: Spread) -> list[Amount]:
    return [_in_ms(each) for each in (seconds.median, seconds.least, seconds.greatest)]
