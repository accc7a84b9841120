"""The page of a report, without a browser: one file, nothing fetched, everything that came and runs is in it, escaped."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import pytest

import graphkernel as gk
from graphkernel import ops
from graphkernel.report.page.layout import layered
from graphkernel.report.page.scopes import MOST_BOXES, Group, grouped, path_of
from graphkernel.report.page.shell import page
from graphkernel.runtime.inputs.samples import random_inputs
from graphkernel.runtime.measure import profile

VOID = {"meta", "input", "img", "br", "hr", "link"}


def net(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = ops.softmax(ops.matmul(ops.add(ops.mul(ops.tanh(x), 2.0), 1.0), w), axis=(-1,))
    return x


@pytest.fixture(scope="module")
def exe() -> gk.Executable:
    return gk.compile(gk.trace(net, gk.spec(("N", 8), "float32"), gk.spec((8, 8), "float32")))


@pytest.fixture(scope="module")
def measured(exe: gk.Executable) -> str:
    return exe.report.to_html(profile(exe, random_inputs(exe.graph, seed=0), 1), {"N": 4})


class Parsed(HTMLParser):
    """Tags in order, each closed where it has to be; attributes; the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)


def data_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_it_is_one_page_that_fetches_nothing(measured: str) -> None:
    assert measured.startswith('<!DOCTYPE html>\n<html lang="en">')
    parsed = Parsed(measured)
    names = [tag for tag, _ in parsed.tags]
    assert [names.count(tag) for tag in ("title", "style", "h1", "main")] == [1, 1, 1, 1]
    assert {"charset": "utf-8"} in [attrs for tag, attrs in parsed.tags if tag == "meta"]
    assert not any(attrs.get("src") or attrs.get("href") for _, attrs in parsed.tags)
    assert "prefers-color-scheme: dark" in measured
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(", measured)


def test_every_operator_and_every_step_is_a_box(exe: gk.Executable, measured: str) -> None:
    data = data_of(measured)
    before = [box for drawing in data["before"] for box in drawing["boxes"] if box["k"] in ("kernel", "host", "gone")]
    assert [box["t"] for box in before].count("Softmax") == 3
    after = [box for drawing in data["after"] for box in drawing["boxes"] if box["k"] in ("kernel", "host")]
    assert sorted(step for box in after for step in box["s"]) == list(range(len(data["steps"])))
    assert len(data["kernels"]) == len(exe.report.kernels)
    softmax = next(box for box in before if box["t"] == "Softmax")
    held = {operator for step in softmax["s"] for operator in data["steps"][step]["b"]}
    assert any(operator.startswith("Softmax") for operator in held)


def test_a_kernel_has_its_source_its_proof_and_the_reason_for_its_end(measured: str) -> None:
    data = data_of(measured)
    assert all("bounds" in kernel["p"] and "define" in kernel["x"] for kernel in data["kernels"])
    products = [step for step in data["steps"] if "MatMul" in step["o"] and step["k"] < 0]
    assert products
    assert all(any(code == "not-fused-opaque" for code, _ in step["y"]) for step in products)


def test_tables_are_sorted_by_cost_and_can_be_sorted_otherwise(measured: str) -> None:
    first = measured[measured.index("<h2>Kernels</h2>") :]
    first = first[: first.index("</table>")]
    shares = [float(cell) for cell in re.findall(r'data-value="([^"]*)"><span class="share"', first)]
    assert shares == sorted(shares, reverse=True)
    assert len(shares) > 1
    assert first.count('<th scope="col"') == first.count("<button")


def test_without_times_nothing_is_said_of_them(exe: gk.Executable) -> None:
    text = exe.report.to_html()
    data = data_of(text)
    assert not data["measured"]
    assert "share of the time" not in text
    assert "One run takes" not in text


def test_a_report_that_was_pickled_still_has_its_tables(exe: gk.Executable) -> None:
    import pickle

    again = pickle.loads(pickle.dumps(exe.report))
    assert again == exe.report
    assert "<h2>Kernels</h2>" in again.to_html()
    assert 'id="data"' not in again.to_html()


def test_a_graph_that_came_with_kernels_has_a_page_too() -> None:
    fused = gk.optimize(gk.trace(net, gk.spec((4, 8), "float32"), gk.spec((8, 8), "float32")))
    data = data_of(gk.compile(fused).report.to_html())
    assert data["before"][0]["boxes"]
    assert data["after"][0]["boxes"]


def test_names_of_a_model_are_text_wherever_they_stand() -> None:
    evil = "</script><img src=x onerror=alert(1)><!--"
    text = page(evil, "", {"name": evil, "nested": [evil]})
    assert "<img" not in text
    assert text.count("</script>") == 2  # the data's own and the script's
    assert data_of(text) == {"name": evil, "nested": [evil]}


def test_the_same_report_gives_the_same_page(exe: gk.Executable) -> None:
    assert exe.report.to_html() == exe.report.to_html()


# ---------------------------------------------------------------- places


def test_boxes_of_a_layer_do_not_overlap_and_edges_lead_down() -> None:
    edges = [(a, b) for b in range(1, 60) for a in {b // 2, b // 3, max(0, b - 7)} if a < b]
    widths = [60.0 + 7 * (n % 9) for n in range(60)]
    found = layered(widths, edges)
    assert all(found.layers[a] < found.layers[b] for a, b in edges)
    for layer in set(found.layers):
        row = sorted((found.middles[n], widths[n]) for n in range(60) if found.layers[n] == layer)
        assert all(b - a >= (v + w) / 2 for (a, v), (b, w) in pairwise(row))
    assert min(m - w / 2 for m, w in zip(found.middles, widths, strict=True)) >= 0
    assert max(m + w / 2 for m, w in zip(found.middles, widths, strict=True)) <= found.width
    for (a, b), passed in found.routes.items():
        assert len(passed) == found.layers[b] - found.layers[a] - 1


def test_a_chain_is_a_straight_line() -> None:
    found = layered([80.0, 120.0, 60.0, 100.0], [(0, 1), (1, 2), (2, 3)])
    assert max(found.middles) - min(found.middles) < 1


def boxes_of(group: Group) -> list[int]:
    return [box for part in group.parts for box in ([part] if isinstance(part, int) else boxes_of(part))]


@pytest.mark.parametrize(
    "names",
    [
        [f"/model/layer.{n // 20}/part{n % 3}/op{n}" for n in range(10_000)],
        [f"t{n}" for n in range(10_000)],
        [f"encoder.layer.{n // 11}.dense.{n % 11}" for n in range(4_000)],
        ["same"] * 3_000,
    ],
)
def test_large_graphs_come_in_drawings_that_fit_a_screen(names: list[str]) -> None:
    whole = grouped("net", [(), *map(path_of, names), ()])
    waiting, seen = [whole], 0
    while waiting:
        group = waiting.pop()
        seen += 1
        assert len(group.parts) <= MOST_BOXES
        waiting += [part for part in group.parts if isinstance(part, Group)]
    assert sorted(boxes_of(whole)) == list(range(len(names) + 2))
    assert seen < len(names) / 5


def test_a_fault_of_ours_stands_there_with_its_traceback() -> None:
    def broken(desc: Any, target: str) -> Any:
        raise AssertionError("a <table> that is not there")

    graph = gk.trace(lambda x: ops.tanh(x) * 2.0 + x, gk.spec((4, 4)), name="unlucky")
    told = gk.compile(graph, compiler=broken).report.to_html()
    assert "What could not be compiled" in told
    assert re.search(r"<details><summary>the fault at [^<]+</summary><pre>Traceback[^<]*in broken", told)
    assert "a &lt;table&gt; that is not there" in told
