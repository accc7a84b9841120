"""The graphs of a story as drawings: boxes with places, edges, and a drawing for every group of boxes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphkernel.ops.library.host import operator_name
from graphkernel.report.page.counted import counted
from graphkernel.report.page.layout import layered
from graphkernel.report.page.scopes import Group, grouped, path_of
from graphkernel.report.page.story import Story
from kernelgen.system.escape import line
from kernelgen.tensor.graph import Graph, Value

CHARACTER, MARGIN = 7.2, 24.0
LEAST, MOST = 84.0, 250.0
HEIGHT, PILL, ROW = 38.0, 22.0, 66.0
LONGEST = 31  # characters of a title


@dataclass(frozen=True)
class Box:
    """One operator, step, input or output. ``steps`` are those that it stands for or became."""

    title: str
    note: str
    kind: str
    path: tuple[str, ...]
    steps: tuple[int, ...] = ()
    hint: str = ""


def before_picture(story: Story) -> list[dict[str, Any]]:
    """The drawings of the graph as it came: every operator a box; the first drawing is the whole."""
    graph = story.before
    place = {value.node: number for number, value in enumerate(graph.inputs)}
    boxes = [_input(graph, number, value) for number, value in enumerate(graph.inputs)]
    for node in graph.operators:
        place[node] = len(boxes)
        steps = story.became[node]
        kind = "kernel" if any(story.steps[s].kernel for s in steps) else "host" if steps else "gone"
        origin = graph.origins.get(node.name)
        hint = f"{origin.operator} {origin.node}" if origin is not None else f"{operator_name(node)} {node.name}"
        path = path_of(node.name)
        boxes.append(Box(story.titles[node], "/".join(path[-2:]), kind, path, steps, hint))
    edges = [(place[arg.node], place[n]) for n in graph.operators for arg in n.args if arg.node in place]
    ends = [(place.get(value.node), name) for value, name in zip(graph.outputs, graph.output_names, strict=True)]
    return _drawn(graph.name, boxes, edges, ends)


def after_picture(story: Story, notes: Sequence[str]) -> list[dict[str, Any]]:
    """The drawings of what runs: every step a box with its note."""
    graph = story.after
    boxes = [_input(graph, number, value) for number, value in enumerate(graph.inputs)]
    first = len(boxes)
    for number, step in enumerate(story.steps):
        titles = [story.titles[node] for node in story.came_from[number]] or map(operator_name, step.operators)
        title = " · ".join(dict.fromkeys(titles))
        kind = "kernel" if step.kernel else "host"
        boxes.append(Box(title, notes[number], kind, path_of(step.nodes[0].name), (number,), step.kernel or step.name))
    edges = [(first + a, first + b) for a, b in story.edges]
    edges += _reads_of_inputs(story, first)
    made = {node: first + number for number, step in enumerate(story.steps) for node in step.nodes}
    ends = [(made.get(v.node), name) for v, name in zip(graph.outputs, graph.output_names, strict=True)]
    return _drawn(graph.name, boxes, edges, ends)


def _input(graph: Graph, number: int, value: Value) -> Box:
    return Box(graph.input_names[number], str(value.type), "input", ())


def _reads_of_inputs(story: Story, first: int) -> Iterable[tuple[int, int]]:
    """Pairs of an input and a step that reads it, through views."""
    place = {value.node: number for number, value in enumerate(story.after.inputs)}
    own = {node: first + number for number, step in enumerate(story.steps) for node in step.nodes}
    reach: dict[Any, frozenset[int]] = {}
    for node in story.after.nodes:
        inputs = (
            frozenset({place[node]}) if node in place else frozenset[int]().union(*(reach[a.node] for a in node.args))
        )
        if node in own:
            yield from ((number, own[node]) for number in sorted(inputs))
        reach[node] = frozenset[int]() if node in own else inputs


def _drawn(
    name: str, boxes: Sequence[Box], edges: Sequence[tuple[int, int]], ends: Sequence[tuple[int | None, str]]
) -> list[dict[str, Any]]:
    """A drawing of the whole and one of each group in it, groups behind those that hold them."""
    all_boxes = [*boxes, *(Box(title, "", "output", ()) for _, title in ends)]
    all_edges = [
        *edges,
        *((source, len(boxes) + place) for place, (source, _) in enumerate(ends) if source is not None),
    ]
    sources: list[list[int]] = [[] for _ in all_boxes]
    for a, b in all_edges:
        sources[b].append(a)
    drawings: list[dict[str, Any]] = []
    waiting: list[tuple[Group, int]] = [(grouped(name, [box.path for box in all_boxes]), -1)]
    while waiting:
        group, parent = waiting.pop(0)
        number = len(drawings) + len(waiting) + 1
        inner = [part for part in group.parts if isinstance(part, Group)]
        numbers = {part.name: number + place for place, part in enumerate(inner)}
        drawings.append(_drawing(group, parent, all_boxes, sources, numbers))
        waiting.extend((part, len(drawings) - 1) for part in inner)
    return drawings


def _drawing(
    group: Group, parent: int, boxes: Sequence[Box], sources: Sequence[Sequence[int]], numbers: Mapping[str, int]
) -> dict[str, Any]:
    """One drawing: its boxes in the order of what is in them, and beyond its border the boxes that they read."""
    inside = set(group.members())
    edges = [(a, b) for b in sorted(inside) for a in sources[b]]
    outside = {a for a, _ in edges} - inside
    shown = sorted((*group.parts, *outside), key=lambda part: _held(part)[0])
    place = {box: number for number, part in enumerate(shown) for box in _held(part)}
    drawn = [_entry(part, boxes, numbers, part in outside) for part in shown]
    own = dict.fromkeys((place[a], place[b]) for a, b in edges if place[a] != place[b])
    return {"title": line(group.name), "parent": parent, **_placed(drawn, list(own))}


def _held(part: Group | int) -> list[int]:
    """The boxes that a part stands for, in order."""
    return [part] if isinstance(part, int) else part.members()


def _entry(part: Group | int, boxes: Sequence[Box], numbers: Mapping[str, int], is_outside: bool) -> dict[str, Any]:
    held = _held(part)
    steps = sorted({step for box in held for step in boxes[box].steps})
    if isinstance(part, Group):
        note = counted(len(held), "box", "boxes")
        return _box(part.name.rsplit("/", 1)[-1], note, "group", steps, part.name) | {"open": numbers[part.name]}
    box = boxes[part]
    kind = "outside" if is_outside and box.kind != "input" else box.kind
    return _box(box.title, "" if is_outside and box.kind != "input" else box.note, kind, steps, box.hint or box.title)


def _box(title: str, note: str, kind: str, steps: Sequence[int], hint: str) -> dict[str, Any]:
    longest = max(len(_short(title)), len(_short(note)) * 0.86)
    width = min(MOST, max(LEAST, longest * CHARACTER + MARGIN))
    height = PILL if kind in ("outside", "output") else HEIGHT
    return {
        "t": _short(line(title)), "n": _short(line(note)), "k": kind, "s": list(steps), "h": line(hint), "w": round(width),
        "e": round(height),
    }  # fmt: skip


def _short(text: str) -> str:
    """The text, or its two ends: names begin and end with what tells them apart."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2 - 1]}…{text[-(LONGEST - LONGEST // 2) :]}"


def _placed(drawn: list[dict[str, Any]], edges: list[tuple[int, int]]) -> dict[str, Any]:
    """Boxes and edges with places."""
    layout = layered([box["w"] for box in drawn], edges)
    for box, layer, middle in zip(drawn, layout.layers, layout.middles, strict=True):
        box |= {"x": round(middle - box["w"] / 2, 1), "y": round(layer * ROW + (HEIGHT - box["e"]) / 2, 1)}
    lines = [[a, b, *(round(x, 1) for x in layout.routes[a, b])] for a, b in edges if (a, b) in layout.routes]
    far = [[a, b] for a, b in edges if (a, b) not in layout.routes]
    height = (max(layout.layers, default=0) + 1) * ROW
    return {"boxes": drawn, "edges": lines, "far": far, "width": round(layout.width), "height": round(height)}
