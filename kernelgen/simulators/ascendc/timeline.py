"""The pipes of a run over time: as Chrome trace events (chrome://tracing, Perfetto), and as a picture."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence

from kernelgen.ascendc.types import PIPES
from kernelgen.simulators.ascendc.report import Report
from kernelgen.simulators.ascendc.time.pipe_clock import Span
from kernelgen.system.escape import markup

WIDTH, LEFT, ROW, BAR = 960, 60, 26, 18
COLOURS = {
    "S": "#8c8c8c", "V": "#2f7d4f", "M": "#7a4fa3", "MTE1": "#b58900", "MTE2": "#2f6fb0", "MTE3": "#c0562f",
    "FIX": "#3a9a9a",
}  # fmt: skip


def chrome_trace(report: Report, cores: Collection[int] | None = None) -> str:
    """Trace events as JSON: a process for each core, a thread for each pipe, times in microseconds; of some cores or all."""
    spans = [span for span in report.spans if cores is None or span.core in cores]
    cycle = 1 / report.gigahertz / 1000
    events: list[dict[str, object]] = [
        {"name": "process_name", "ph": "M", "pid": core, "args": {"name": f"core {core}"}}
        for core in dict.fromkeys(span.core for span in spans)
    ]
    for span in spans:
        events.append(
            {
                "name": span.operation,
                "ph": "X",
                "pid": span.core,
                "tid": span.pipe,
                "ts": span.start * cycle,
                "dur": (span.stop - span.start) * cycle,
                "args": {"line": span.line, "cycles": span.stop - span.start},
            }
        )
    other = {"machine": report.machine, "bound by": report.bound_by, "note": "estimate, never measured by us"}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns", "otherData": other})


def picture(report: Report) -> str:
    """The pipes of the slowest core as an SVG: a row for each pipe that works, with the share of time that it is busy."""
    spans = [span for span in report.spans if span.core == report.slowest]
    used = [pipe for pipe in PIPES if any(span.pipe == pipe for span in spans)]
    first = min((span.start for span in spans), default=0.0)
    length = max(max((span.stop for span in spans), default=1.0) - first, 1.0)
    height = ROW * (len(used) + 2)
    body = "\n".join(_rows(report, spans, used, first, length))
    title = markup(str(report).splitlines()[0])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>\n'
        f'<text x="8" y="16">{title}</text>\n{body}\n</svg>\n'
    )


def _rows(report: Report, spans: Sequence[Span], used: Sequence[str], first: float, length: float) -> Iterator[str]:
    scale = (WIDTH - LEFT - 60) / length
    busy = report.pipe_cycles()
    for row, pipe in enumerate(used, 1):
        top = ROW * row
        yield f'<text x="8" y="{top + 13}">{pipe}</text>'
        yield f'<text x="{WIDTH - 52}" y="{top + 13}">{busy[pipe] / length:.0%}</text>'
        for span in spans:
            if span.pipe == pipe:
                left, width = LEFT + (span.start - first) * scale, max((span.stop - span.start) * scale, 0.5)
                label = markup(f"{span.operation}, line {span.line}, {span.stop - span.start:.0f} cycles")
                yield (
                    f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{BAR}" fill="{COLOURS[pipe]}" '
                    f'stroke="white" stroke-width="0.3"><title>{label}</title></rect>'
                )
    yield f'<text x="{LEFT}" y="{ROW * (len(used) + 1) + 13}">0 to {length:.0f} cycles of core {report.slowest}</text>'
