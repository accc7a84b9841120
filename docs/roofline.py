"""A roofline: how fast steps compute over how much they compute for each byte, beneath what the machine can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from docs.measured import HEIGHT, MARGIN, WIDTH, Axis, text

RIGHT = WIDTH - 150  # the names stand behind


class Point(NamedTuple):
    """A step of a network: operations per byte, and GFLOP/s."""

    network: str
    intensity: float
    rate: float


def roofline(points: Sequence[Point], compute: float, bandwidth: float) -> str:
    """The points as an SVG, beneath a peak in GFLOP/s and a ``bandwidth`` in GB/s; both axes are logarithmic."""
    across = Axis.around([point.intensity for point in points], MARGIN, RIGHT)
    up = Axis.around([compute, *(point.rate for point in points)], HEIGHT - MARGIN, 20)
    networks = list(dict.fromkeys(point.network for point in points))
    colours = {name: f"hsl({360 * number / len(networks):.0f} 65% 42%)" for number, name in enumerate(networks)}
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        *(f'<path d="M{across.at(x):.1f} 20V{HEIGHT - MARGIN}" stroke="#ddd"/>' for x in across.decades),
        *(f'<path d="M{MARGIN} {up.at(y):.1f}H{RIGHT}" stroke="#ddd"/>' for y in up.decades),
        *(text(across.at(x), HEIGHT - MARGIN + 18, f"{x:g}", "middle") for x in across.decades),
        *(text(MARGIN - 8, up.at(y) + 4, f"{y:g}", "end") for y in up.decades),
        text((MARGIN + RIGHT) / 2, HEIGHT - 15, "operations per byte", "middle"),
        text(MARGIN, 14, "GFLOP/s", "middle"),
        _roof(across, up, compute, bandwidth),
        *(
            f'<circle cx="{across.at(x):.1f}" cy="{up.at(y):.1f}" r="4" fill="{colours[name]}" fill-opacity="0.8">'
            f"<title>{name}: {y:.0f} GFLOP/s</title></circle>"
            for name, x, y in points
        ),
        *(text(RIGHT + 14, 36 + 16 * number, name, "start", colours[name]) for number, name in enumerate(networks)),
        "</svg>",
        "",
    ])  # fmt: skip


def _roof(across: Axis, up: Axis, compute: float, bandwidth: float) -> str:
    """The bandwidth's slope up to the peak, as far as the plot goes."""
    first, last = across.decades[0], across.decades[-1]
    lowest = max(first, up.decades[0] / bandwidth)
    bend = min(max(compute / bandwidth, first), last)
    corners = [
        (lowest, lowest * bandwidth),
        (bend, min(compute, bend * bandwidth)),
        (last, min(compute, last * bandwidth)),
    ]
    way = " ".join(f"{across.at(x):.1f},{up.at(y):.1f}" for x, y in corners)
    return f'<polyline points="{way}" fill="none" stroke="#333" stroke-width="1.5"/>'
