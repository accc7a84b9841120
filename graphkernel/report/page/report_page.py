"""A report as a page: what was gained in words, the graph before and after, and tables sorted by cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from graphkernel.decisions import REASONS, Decision
from graphkernel.ops.library.host import operator_name
from graphkernel.report.page.counted import counted, size_text
from graphkernel.report.page.html import Figure, facts, sortable
from graphkernel.report.page.pictures import HEIGHT, ROW, after_picture, before_picture
from graphkernel.report.page.shell import page
from graphkernel.report.page.story import Story
from kernelgen.system.cached_property import cached_property
from kernelgen.system.escape import line, markup
from kernelgen.tensor.graph import Value
from kernelgen.tensor.types import Dim, evaluate, symbols_of

if TYPE_CHECKING:
    from graphkernel.report.report import KernelEntry, Report

BINS = (0.01, 0.03, 0.1, 0.25)
"""Shares of the measured time at which boxes get a stronger colour."""
MOST_SOURCE = 120_000  # characters of one kernel's source that a page holds
MOST_STOPS, MOST_JOINS = 12, 5  # decisions told of one step
CLUSTERED = ("fused-cluster",)  # said of every operator, and no answer to anything

HELP = """<h3>Choose a box</h3>
<p>A box on the right is a step of a run: solid ones are kernels of ours, dashed ones are run by the library. Choose one to see
which operators it holds, what it reads and writes, why it ends where it ends, its proof and its source. Boxes on the left are
the operators of the model.</p><p class="soft">Keys: arrows move, Enter chooses.</p>"""


@dataclass(frozen=True)
class Telling:
    """All that a page is made of. ``seconds`` has the time of each step by name, ``extents`` the symbols they were taken at."""

    report: Report
    story: Story | None
    seconds: Mapping[str, float]
    extents: Mapping[str, int]

    @cached_property
    def total(self) -> float:
        """The seconds of all steps together."""
        return sum(self.seconds.values())

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The place of each step by name."""
        return {step.name: number for number, step in enumerate(self.story.steps)} if self.story is not None else {}

    def share(self, name: str) -> float:
        """The share of a step in the time of all."""
        return self.seconds.get(name, 0.0) / self.total if self.total else 0.0

    def size(self, size: Dim) -> Figure:
        """Bytes; a number where the extents are known."""
        known = set(symbols_of((size,))) <= set(self.extents)
        found = evaluate(size, self.extents) if known else size
        return Figure(size_text(found), float(found) if isinstance(found, int) else 0.0)


def report_page(telling: Telling) -> str:
    """The page of a report."""
    report = telling.report
    parts = [f"<header><h1>{markup(report.graph)}</h1>{''.join(f'<p>{markup(text)}</p>' for text in _words(telling))}"]
    parts += [facts(_facts(telling)), "</header><main>"]
    parts += [_graphs(telling)] if telling.story is not None else []
    parts += [_tables(telling), "</main>", _foot(telling)]
    return page(f"{report.graph}: what was fused", "".join(parts), None if telling.story is None else _data(telling))


# ---------------------------------------------------------------- in words


def _words(telling: Telling) -> Iterable[str]:
    """What was done and what it brings, for somebody who knows neither us nor the model."""
    report, story = telling.report, telling.story
    came = counted(report.operators, "operator")
    held = counted(report.kernel_calls, "kernel call")
    yield line(
        f"{came} became {held} ({len(report.kernels)} different) on {report.target}"
        f" and {counted(len(report.host), 'step')} of {report.library if report.host else 'a library'}."
    )
    moved, unfused = _bytes(telling)
    if moved and unfused > moved:
        more = f"{size_text(unfused)}, {unfused / moved:.1f} times as much"
        yield f"Kernels move {size_text(moved)}; their operators one by one would move {more}."
    if telling.total:
        inside = sum(telling.share(call) for kernel in report.kernels for call in kernel.calls)
        at = f" at {_extents(telling)}" if telling.extents else ""
        yield f"One run takes {1e3 * telling.total:.3g} ms{at}: {inside:.0%} in kernels, {1 - inside:.0%} in the library."
    if story is None:
        yield "The graphs are not drawn: only what runs was kept and loaded. The report of the model itself shows them."
    if report.fallbacks:
        yield f"{counted(len(report.fallbacks), 'operator')} could not be compiled; the table below says why."


def _extents(telling: Telling) -> str:
    return ", ".join(f"{name} = {extent}" for name, extent in sorted(telling.extents.items()))


def _bytes(telling: Telling) -> tuple[int, int]:
    """What all calls move, and would move unfused; 0 where extents are not known."""
    sums: list[int] = []
    for of in ("bytes_moved", "bytes_unfused"):
        total: Dim = 0
        for kernel in telling.report.kernels:
            total = total + getattr(kernel, of) * len(kernel.calls)
        sums.append(int(telling.size(total).value))
    return sums[0], sums[1]


def _facts(telling: Telling) -> Iterable[tuple[str, str]]:
    report = telling.report
    yield "operators before", f"{report.operators:,}"
    yield "kernel calls", f"{report.kernel_calls:,}"
    yield "different kernels", f"{len(report.kernels):,}"
    yield "library steps", f"{len(report.host):,}"
    if telling.total:
        yield "ms per run", f"{1e3 * telling.total:.3g}"
    moved, _ = _bytes(telling)
    if moved:
        yield "moved by kernels", size_text(moved)
    yield "s to optimize and compile", f"{(report.optimize_ms + report.compile_ms) / 1e3:.2g}"
    if report.fallbacks:
        yield "fallbacks", f"{len(report.fallbacks):,}"


# ---------------------------------------------------------------- graphs


def _graphs(telling: Telling) -> str:
    legend = _legend() if telling.total else ""
    views = "".join(
        f'<button type="button" data-view="{name}" aria-pressed="{"true" if name == "both" else "false"}">{text}</button>'
        for name, text in (("both", "Side by side"), ("before", "Before"), ("after", "After"))
    )
    panes = "".join(_pane(side, title) for side, title in (("before", "Before"), ("after", "After")))
    return (
        '<h2>The graph</h2><div class="tools">'
        f'<div class="choice" role="group" aria-label="what is shown">{views}</div>'
        '<label>Find <input type="search" id="find" placeholder="operator or name, Enter"></label>'
        f' <span id="found" class="soft" role="status"></span>{legend}</div><div class="work" data-show="both">{panes}'
        f'<aside class="details" aria-live="polite" aria-label="what was chosen">{HELP}</aside></div>'
    )


def _pane(side: str, title: str) -> str:
    zooms = "".join(
        f'<button type="button" class="zoom" data-zoom="{way}" aria-label="{name}">{text}</button>'
        for way, name, text in (("out", "smaller", "−"), ("fit", "fit the width", "Fit"), ("in", "larger", "+"))
    )
    return (
        f'<section class="pane" data-side="{side}" aria-label="{title}"><div class="bar"><strong>{title}</strong>'
        f'<span class="trail"></span>{zooms}</div><div class="canvas"></div></section>'
    )


def _legend() -> str:
    texts = [
        f"below {BINS[0]:.0%}",
        *(f"{a:.0%} to {b:.0%}" for a, b in pairwise(BINS)),
        f"above {BINS[-1]:.0%}",
    ]
    colours = "".join(f'<span><i style="background:var(--h{at})"></i>{text}</span>' for at, text in enumerate(texts))
    return f'<p class="legend"><span>share of the time:</span>{colours}</p>'


def _data(telling: Telling) -> dict[str, Any]:
    """What the script draws and tells."""
    story = telling.story
    assert story is not None, "only a story has graphs"
    kernels = {kernel.name: place for place, kernel in enumerate(telling.report.kernels)}
    own = {call: kernels[kernel.name] for kernel in telling.report.kernels for call in kernel.calls}
    notes = [_note(telling, step.name) for step in story.steps]
    return {
        "measured": telling.total > 0, "bins": BINS, "row": ROW, "half": HEIGHT / 2,
        "before": before_picture(story), "after": after_picture(story, notes),
        "steps": [_step(telling, story, number, own.get(step.name, -1)) for number, step in enumerate(story.steps)],
        "kernels": [_kernel(telling, story, kernel) for kernel in telling.report.kernels],
    }  # fmt: skip


def _note(telling: Telling, name: str) -> str:
    if not telling.total:
        return name
    return f"{1e3 * telling.seconds.get(name, 0.0):.3g} ms · {telling.share(name):.1%}"


def _step(telling: Telling, story: Story, number: int, kernel: int) -> dict[str, Any]:
    step = story.steps[number]
    inside = set(step.nodes)
    titles = [story.titles[node] for node in story.came_from[number]] or map(operator_name, step.operators)
    reads = dict.fromkeys(arg for node in step.nodes for arg in node.args if arg.node not in inside)
    stops = [found for found in story.reasons[number] if found.code.startswith("not-")]
    joins = [found for found in story.reasons[number] if found.code not in CLUSTERED and found not in stops]
    return {
        "n": line(step.name), "k": kernel, "l": line(step.runner), "o": _counted(titles),
        "t": round(1e3 * telling.seconds.get(step.name, 0.0), 6), "p": round(telling.share(step.name), 6),
        "b": [line(f"{story.titles[node]} {node.name}") for node in story.came_from[number]],
        "r": [_value(value) for value in reads], "w": [_value(value) for value in story.written[number]],
        "y": _told(stops, MOST_STOPS), "j": _told(joins, MOST_JOINS),
    }  # fmt: skip


def _kernel(telling: Telling, story: Story, kernel: KernelEntry) -> dict[str, Any]:
    source = story.sources.get(kernel.name, "")
    cut = f"\n... {len(source) - MOST_SOURCE} more characters" if len(source) > MOST_SOURCE else ""
    return {
        "n": line(kernel.name), "s": [telling.numbers[call] for call in kernel.calls if call in telling.numbers],
        "m": telling.size(kernel.bytes_moved).text, "u": telling.size(kernel.bytes_unfused).text,
        "c": "taken from the cache" if kernel.cached else f"{kernel.compile_ms:.1f} ms", "o": _counted(kernel.operators),
        "p": kernel.proof, "x": source[:MOST_SOURCE] + cut,
    }  # fmt: skip


def _value(value: Value) -> str:
    kind = "constant " if value.is_known else "input " if value.is_parameter else ""
    return line(f"{value.type} {kind}{value.node.name}")


def _told(found: Sequence[Decision], most: int) -> list[tuple[str, str]]:
    """Decisions as code and text, those that say the same once."""
    texts: Counter[tuple[str, str]] = Counter()
    for decision in found:
        ends = f"{decision.subject} → {decision.other}" if decision.other else decision.subject
        texts[decision.code, line(f"{ends}: {decision.message or REASONS[decision.code]}")] += 1
    told = list(texts)
    more = [("", f"and {len(told) - most} more")] if len(told) > most else []
    return [*told[:most], *more]


def _counted(names: Iterable[str]) -> str:
    return ", ".join(name if count == 1 else f"{name} ×{count}" for name, count in Counter(names).items())


# ---------------------------------------------------------------- tables


def _tables(telling: Telling) -> str:
    titled = (
        ("Kernels", _kernels(telling)),
        ("Steps of the library", _hosts(telling)),
        ("What could not be compiled", _fallbacks(telling)),
        ("Decisions of the optimizer", _decisions(telling)),
    )
    return "".join(f"<h2>{title}</h2>{table}" for title, table in titled if table)


def _mark(telling: Telling, name: str) -> str:
    number = telling.numbers.get(name)
    return "" if number is None else f' data-step="{number}" tabindex="0"'


def _kernels(telling: Telling) -> str:
    entries = sorted(telling.report.kernels, key=lambda kernel: -_cost(telling, kernel))
    columns = [
        "kernel",
        "calls",
        "operators",
        *(["ms", "share"] if telling.total else []),
        "moves",
        "unfused",
        "compile ms",
    ]
    rows: list[list[object]] = []
    for kernel in entries:
        timed = _timed(telling, kernel.calls) if telling.total else []
        compiled = Figure(
            "cached" if kernel.cached else f"{kernel.compile_ms:.1f}", 0.0 if kernel.cached else kernel.compile_ms
        )
        sizes = [telling.size(kernel.bytes_moved), telling.size(kernel.bytes_unfused)]
        rows.append(
            [
                kernel.name,
                Figure(str(len(kernel.calls)), len(kernel.calls)),
                _counted(kernel.operators),
                *timed,
                *sizes,
                compiled,
            ]
        )
    return sortable(columns, rows, [_mark(telling, kernel.calls[0]) for kernel in entries])


def _cost(telling: Telling, kernel: KernelEntry) -> float:
    if telling.total:
        return sum(telling.share(call) for call in kernel.calls)
    return telling.size(kernel.bytes_moved).value * len(kernel.calls)


def _timed(telling: Telling, names: Sequence[str]) -> list[Figure]:
    seconds, share = (sum(map(of, names)) for of in (lambda name: telling.seconds.get(name, 0.0), telling.share))
    return [Figure(f"{1e3 * seconds:.4g}", seconds), Figure(f"{share:.1%}", share, share)]


def _hosts(telling: Telling) -> str:
    entries = sorted(telling.report.host, key=lambda entry: -telling.share(entry.name))
    columns = ["step", "library", "operators", *(["ms", "share"] if telling.total else [])]
    rows = [
        [
            entry.name,
            entry.library,
            _counted(entry.operators),
            *(_timed(telling, [entry.name]) if telling.total else []),
        ]
        for entry in entries
    ]
    return sortable(columns, rows, [_mark(telling, entry.name) for entry in entries])


def _fallbacks(telling: Telling) -> str:
    rows = [(entry.node, entry.operator, entry.code, entry.reason, entry.advice) for entry in telling.report.fallbacks]
    faults = "".join(
        f"<details><summary>the fault at {markup(entry.node)}</summary><pre>{markup(entry.trace)}</pre></details>"
        for entry in telling.report.fallbacks
        if entry.trace
    )
    return sortable(("node", "operator", "code", "reason", "what to do"), rows) + faults


def _decisions(telling: Telling) -> str:
    counts = (
        Counter(decision.code for decision in telling.story.decisions) if telling.story is not None else Counter[str]()
    )
    rows = [(code, Figure(str(count), count), REASONS[code]) for code, count in counts.most_common()]
    return sortable(("code", "how often", "what it means"), rows)


def _foot(telling: Telling) -> str:
    level = "" if telling.report.opt_level is None else f" at level {telling.report.opt_level}"
    return (
        f"<footer><p>Optimized{level} in {telling.report.optimize_ms:.0f} ms, compiled in {telling.report.compile_ms:.0f} ms. "
        "Times are medians of runs of every step by itself. This page needs no network.</p></footer>"
    )
