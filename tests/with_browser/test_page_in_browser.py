"""The page of a report in a browser: it draws, answers clicks, keys and searches, and sorts."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import graphkernel as gk
from graphkernel import ops
from tests.support.browser import CHROMIUM

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--window-size=1400,1000", "--virtual-time-budget=2000",
)  # fmt: skip


def net(x: Any, w: Any) -> Any:
    for _ in range(3):
        x = ops.softmax(ops.matmul(ops.add(ops.mul(ops.tanh(x), 2.0), 1.0), w), axis=(-1,))
    return x


@pytest.fixture(scope="module")
def text() -> str:
    return gk.compile(gk.trace(net, gk.spec((4, 8), "float32"), gk.spec((8, 8), "float32"))).report.to_html()


def seen(folder: Path, text: str, script: str = "", fragment: str = "") -> str:
    """The page after its script, and then some more, has run."""
    file = folder / "page.html"
    file.write_text(text.replace("</body>", f"<script>{script}</script></body>"))
    command = [
        str(CHROMIUM),
        *FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        "--dump-dom",
        f"{file.as_uri()}{fragment}",
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def details(page: str) -> str:
    return page[page.index('<aside class="details"') : page.index("</aside>")]


def test_it_draws_both_graphs(tmp_path: Path, text: str) -> None:
    page = seen(tmp_path, text)
    assert len(re.findall(r"<svg [^>]*aria-label=\"(?:before|after): net\"", page)) == 2
    assert len(re.findall(r'class="box kernel', page)) > 6
    assert re.findall(r'<path class="edge', page)


def test_a_click_on_a_kernel_tells_all_of_it_and_marks_its_operators(tmp_path: Path, text: str) -> None:
    click = "document.querySelector('[data-side=after] .box.kernel').dispatchEvent(new MouseEvent('click'))"
    page = seen(tmp_path, text, click)
    told = details(page)
    assert all(word in told for word in ("Operators of the model", "Reads", "Writes", "Proof", "Source", "Computes"))
    assert len(re.findall(r'class="box kernel[^"]* on"', page)) > 1


def test_keys_move_and_choose(tmp_path: Path, text: str) -> None:
    keys = """const at = (key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    document.querySelector('[data-side=before] .box').focus(); at('ArrowDown'); at('ArrowDown'); at('Enter');"""
    told = details(seen(tmp_path, text, keys))
    assert "Choose a box" not in told
    assert "became part of" in told


def test_an_address_and_a_search_lead_to_a_step(tmp_path: Path, text: str) -> None:
    assert "<h4>Reads</h4>" in details(seen(tmp_path, text, fragment="#step=1"))
    find = """const field = document.getElementById('find'); field.value = 'softmax';
    field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' }));"""
    page = seen(tmp_path, text, find)
    assert "1 of 3" in page
    assert "Softmax" in details(page)


def test_a_head_of_a_table_sorts_it(tmp_path: Path, text: str) -> None:
    press = "document.querySelector('table.sortable th:nth-child(2) button').click();"
    for presses, order in ((press, "descending"), (press * 2, "ascending")):
        page = seen(tmp_path, text, presses)
        assert f'aria-sort="{order}"' in page
        table = page[page.index('<table class="sortable">') : page.index("</table>")]
        values = [
            float(x) for x in re.findall(r'<tr[^>]*><td>[^<]*</td><td class="number" data-value="([^"]*)"', table)
        ]
        assert values == sorted(values, reverse=order == "descending")
